"""Each command as a user runs it, on real photos: its exit code and what it prints.

`setnet` starts a real process, where bytes go in or out; `inside` runs the same code in this one.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from setnet.engine import kernel_level
from tests.support import command_line

pytest.importorskip("openpeople", reason="the demo's synthetic people are needed: pip install 'setnet[demo]'")
pytestmark = pytest.mark.xdist_group("commands")


def setnet(*arguments: object, library: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "100"}
    if library is not None:
        environment["SETNET_LIBRARY"] = str(library)
    return subprocess.run(
        [sys.executable, "-m", "setnet", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )


def answered(*arguments: object, code: int = 0, **options: Any) -> Any:
    done = inside(*arguments, "--json", **options)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def inside(
    *arguments: object, library: Path | None = None, keys: str | None = None
) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = command_line.setnet(library, *arguments, keys=keys)
    return done


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos of synthetic people, portraits to ask with, and a library made by `index`."""
    from setnet.cli.demo_album import picture, portrait_path

    place = tmp_path_factory.mktemp("cli")
    (place / "photos" / "trip").mkdir(parents=True)
    selfies = {
        name: Image.fromarray(picture(name, "amateur_selfie")).resize((424, 632)) for name in ("P001", "P003")
    }
    together = Image.new("RGB", (848, 632))
    for number, name in enumerate(selfies):
        together.paste(selfies[name], (424 * number, 0))
        selfies[name].save(place / "photos" / f"{name}.jpg")
        Image.open(portrait_path(name)).resize((512, 512)).save(place / f"{name}.jpg")
    exif = Image.Exif()
    exif[0x0132] = "2019:07:14 12:00:00"
    together.save(place / "photos" / "trip" / "both.jpg", exif=exif)
    Image.new("RGB", (300, 200), "gray").save(place / "photos" / "nobody.png")
    (place / "photos" / "broken.jpg").write_bytes(b"no photo")
    done = setnet("index", place / "photos", "--library", place / "library", "--workers", 1)
    assert done.returncode == 1  # one file is broken
    assert "5 photos seen, 4 new; 4 faces found" in done.stdout
    assert "broken.jpg: not a photo" in done.stderr
    return place


def test_index_again_finds_nothing_new_and_prune_removes(place: Path, tmp_path: Path) -> None:
    report = answered("index", place / "photos", "--library", place / "library")
    assert (report["added"], report["unchanged"], report["faces"]) == (0, 5, 0)
    (tmp_path / "own").mkdir()
    Image.open(place / "P001.jpg").resize((400, 400)).save(tmp_path / "own" / "one.jpg")
    first = answered(
        "index", tmp_path / "own", "--library", tmp_path / "library", "--detector", "yunet", "--workers", 0
    )
    assert (first["added"], first["faces"]) == (1, 1)
    (tmp_path / "own" / "notes.txt").touch()  # an empty folder may be that of a disk which is unplugged
    (tmp_path / "own" / "one.jpg").unlink()
    assert answered("index", "--library", tmp_path / "library")["vanished"] == [
        str(tmp_path / "own" / "one.jpg")
    ]
    assert answered("index", "--prune", "--yes", "--library", tmp_path / "library")["removed"] == 1
    done = inside("index", tmp_path / "own", "--library", tmp_path / "library", "--detector", "mtcnn")
    assert done.returncode == 2
    assert "--detector yunet, not mtcnn" in done.stderr


def test_a_quick_library_stays_quick(place: Path, tmp_path: Path) -> None:
    quick = ("index", place / "photos" / "trip", "--library", tmp_path / "library", "--workers", 0)
    assert answered(*quick, "--quick")["faces"] > 0
    assert answered(*quick)["unchanged"] > 0
    assert answered("status", "--library", tmp_path / "library")["settings"]["detector"] == "cascade"
    done = inside("index", "--quick", "--library", place / "library")
    assert done.returncode == 2
    assert "--detector mtcnn, not cascade" in done.stderr


def test_search_ranks_the_photo_with_both_first(place: Path) -> None:
    answer = answered("search", place / "P001.jpg", place / "P003.jpg", "--library", place / "library")
    first = answer["hits"][0]
    assert first["photo"] == str(place / "photos" / "trip" / "both.jpg")
    assert [match["person"] for match in first["matches"]] == ["P001", "P003"]
    assert [len(match["box"]) for match in first["matches"]] == [4, 4]
    assert first["score"] > 1.5 > answer["hits"][1]["score"]
    assert answer["searched"] == 4
    assert set(answer["seconds"]) == {"people", "search", "records"}


def test_search_prints_a_table_and_writes_a_sheet(place: Path, tmp_path: Path) -> None:
    done = inside(
        "search", place / "P001.jpg", "--library", place / "library", "--sheet", tmp_path / "out.html"
    )
    assert done.returncode == 0
    assert "P001 0." in done.stdout
    assert str(place / "photos" / "P001.jpg") in done.stdout
    assert "searched in" in done.stderr
    assert "data:image/jpeg" in (tmp_path / "out.html").read_text()


def test_search_gives_its_photos_to_other_programs(place: Path, tmp_path: Path) -> None:
    both = ("search", place / "P001.jpg", place / "P003.jpg", "--all", "--library", place / "library")
    photo = str(place / "photos" / "trip" / "both.jpg")
    assert setnet(*both, "--paths").stdout == f"{photo}\n"
    assert setnet(*both, "-0").stdout == f"{photo}\0"
    rows = list(csv.DictReader(inside(*both, "--csv").stdout.splitlines()))
    assert [(row["photo"], row["matched"], row["taken"]) for row in rows] == [
        (photo, "2", "2019-07-14T12:00:00")
    ]
    done = inside(*both, "--copy-to", tmp_path / "new" / "copies")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new" / "copies" / "both.jpg").read_bytes() == Path(photo).read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--paths", "--csv"], "one of --paths, --csv and --json"),
        (["--sheet", "out.pdf"], "a sheet is an .html file"),
        (["--copy-to", "{photos}/nobody.png"], "cannot write"),
    ],
)
def test_search_refuses_outputs_before_it_searches(
    place: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str
) -> None:
    monkeypatch.setattr("setnet.faces.extract_faces", None)
    given = [option.replace("{photos}", str(place / "photos")) for option in options]
    done = inside("search", place / "P001.jpg", *given, library=place / "library")
    assert done.returncode == 2
    assert words in done.stderr


def test_search_says_what_is_sure_and_what_a_guess(place: Path, tmp_path: Path) -> None:
    library = place / "library"
    sure = inside("search", place / "P001.jpg", "--sure", library=library)
    assert "P001?" not in sure.stdout
    assert "2 photos with this person" in sure.stderr
    guesses = inside("search", place / "P001.jpg", "--min-similarity", "-1", "-n", "9", library=library)
    assert "P001? " in guesses.stdout
    assert "2 photos and maybe 1 with this person" in guesses.stderr
    there = answered("search", place / "P001.jpg", "--in", place / "photos" / "trip", library=library)
    assert there["warnings"] == []
    found = answered("search", place / "P001.jpg", "--min-similarity", "0.2", library=library)
    matches = [match for hit in found["hits"] for match in hit["matches"]]
    assert {type(match["sure"]) for match in matches} == {bool}
    assert all(0 <= match["probability"] <= 1 for match in matches)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--all"], ["both.jpg"]),
        (["--only", "--at-least", "1", "-n", "1"], ["both.jpg"]),
        (["--after", "2019-07", "--before", "2019-08"], ["both.jpg"]),
        (["--faces", "2+"], ["both.jpg"]),
        (["--mode", "fast", "--all"], ["both.jpg"]),
        (["--after", "2020", "--before", "2021"], []),
        (["--in", "/nowhere"], []),
    ],
)  # fmt: skip
def test_search_options_narrow_the_answer(place: Path, options: list[str], found: list[str]) -> None:
    answer = answered(
        "search", place / "P001.jpg", place / "P003.jpg", *options,
        library=place / "library", code=0 if found else 1,
    )  # fmt: skip
    assert [Path(hit["photo"]).name for hit in answer["hits"]] == found


def test_search_without_a_person_and_in_a_folder(place: Path) -> None:
    answer = answered(
        "search", place / "P001.jpg", "--without", place / "P003.jpg", "--in", place / "photos",
        library=place / "library",
    )  # fmt: skip
    assert [Path(hit["photo"]).name for hit in answer["hits"]] == ["P001.jpg"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search"], "nobody to look for"),
        (["search", "nobody-like-that"], "neither a saved person nor a file or folder"),
        (["search", "{photos}/nobody.png"], "no face found in"),
        (["search", "{photos}/broken.jpg"], "not a photo"),
        (["search", "{photos}/trip/both.jpg#3"], "has 2 face(s)"),
        (["search", "{photos}/P001.jpg", "--mode", "quick"], "unknown mode 'quick'"),
        (["search", "{photos}/P001.jpg", "--after", "soon"], "not a date"),
        (["search", "{photos}/P001.jpg", "--library", "{photos}"], "no library in"),
        (["search", "{photos}/P001.jpg", "--at-least", "2"], "at least 2 of 1"),
        (["index", "/nowhere/at/all"], "no folder or photo"),
        (["people", "show", "zoe"], "no person 'zoe'"),
        (["forget"], "say what to forget"),
        (["faces", "{photos}/broken.jpg"], "not a photo"),
        (["export", "out.csv"], ".npz"),
        (["serch"], "Did you mean 'search'"),
    ],
)
def test_wrong_use_is_told_without_a_traceback(place: Path, arguments: list[str], message: str) -> None:
    filled = [a.format(photos=place / "photos") for a in arguments]
    done = inside(*filled, library=place / "library")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_folder_that_is_not_there_leaves_no_library_behind(tmp_path: Path) -> None:
    assert inside("index", tmp_path / "Photso", "--library", tmp_path / "library").returncode == 2
    assert not (tmp_path / "library").exists()


@pytest.mark.parametrize("out", ["d.csv", "absent/d.npz"])
def test_describe_refuses_a_place_it_cannot_write_before_it_works(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.setattr("setnet.library.describe.PhotoReader", None)
    done = inside("describe", place / "photos", "--out", tmp_path / out)
    assert done.returncode == 2
    assert Path(out).name in done.stderr


def test_a_file_whose_name_is_no_text_can_be_asked_with(place: Path, tmp_path: Path) -> None:
    strange = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jpg"))
    strange.write_bytes((place / "P001.jpg").read_bytes())
    done = setnet("search", strange, "--library", place / "library")
    assert done.returncode == 0, done.stderr
    assert "caf\\xe9" in done.stdout


def test_a_file_name_gives_no_orders_to_a_terminal(place: Path, tmp_path: Path) -> None:
    strange = tmp_path / "a\x1b[31mred\u202egpj.\n.jpg"
    strange.write_bytes(b"no photo")
    done = inside("faces", strange, "--library", place / "library")
    everything = done.stdout + done.stderr
    assert "\\x1b[31mred\\u202egpj." in everything
    assert not {"\x1b", "\u202e"} & set(everything)


def test_ctrl_c_while_a_library_is_loaded_leaves_with_130(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr("setnet.faces.extract_faces", interrupted)
    done = inside("search", place / "P001.jpg", library=place / "library")
    assert (done.returncode, done.stderr) == (130, "")


def test_a_missing_library_of_the_system_is_told_with_the_remedy(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unloadable(*_: object) -> None:
        raise ImportError("libGL.so.1: cannot open shared object file: No such file or directory", name="cv2")

    monkeypatch.setattr("setnet.faces.extract_faces", unloadable)
    done = inside("search", place / "P001.jpg", library=place / "library")
    assert done.returncode == 2
    assert done.stderr.startswith("setnet: libGL.so.1: cannot open")
    assert "pip install --force-reinstall --no-deps opencv-python-headless" in done.stderr


def test_a_path_the_system_refuses_is_told_without_a_traceback(place: Path) -> None:
    done = inside("search", place / "P001.jpg", "--library", "/" + "x" * 300)
    assert done.returncode == 2
    assert "too long" in done.stderr


def test_people_are_added_listed_shown_renamed_merged_and_removed(place: Path) -> None:
    library = place / "library"
    added = inside("people", "add", "Ann", place / "P001.jpg", library=library)
    assert (added.returncode, added.stdout) == (0, "Ann: 1 example face\n")
    assert (
        answered("people", "add", "Bea", place / "photos" / "trip" / "both.jpg#2", library=library)[
            "examples"
        ]
        == 1
    )
    listed = answered("people", "list", library=library)["people"]
    assert [(person["name"], person["examples"]) for person in listed] == [("Ann", 1), ("Bea", 1)]
    shown = answered("people", "show", "ann", library=library)
    assert shown["photos"] == 2
    assert shown["examples"][0]["source"] == str(place / "P001.jpg")
    by_name = answered("search", "ann", "bea", library=library)
    assert Path(by_name["hits"][0]["photo"]).name == "both.jpg"
    assert answered("people", "rename", "bea", "Cleo", library=library)["name"] == "Cleo"
    assert answered("people", "merge", "ann", "cleo", "--unlike", library=library)["examples"] == 2
    refused = inside("people", "remove", "ann", library=library)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    removed = answered("people", "remove", "ann", "--yes", library=library)
    assert (removed["removed"], removed["for_good"]) == (["ann"], False)
    assert inside("people", "list", library=library).stdout == ""


def test_faces_are_listed_and_shown_on_a_page(place: Path, tmp_path: Path) -> None:
    photo = place / "photos" / "trip" / "both.jpg"
    seen = answered("faces", photo, "--sheet", tmp_path / "faces.html", library=place / "library")
    assert [face["number"] for face in seen["faces"]] == [1, 2]
    assert "data:image/jpeg" in (tmp_path / "faces.html").read_text()
    assert "sharpness" in inside("faces", photo, library=place / "none").stdout
    assert answered("faces", place / "photos" / "nobody.png", code=1)["faces"] == []


def test_status_and_check_tell_the_state(place: Path) -> None:
    now = answered("status", library=place / "library")
    assert (now["photos"], now["faces"], now["failed"]) == (4, 4, 1)
    assert now["failures"][0]["photo"] == str(place / "photos" / "broken.jpg")
    text = inside("status", library=place / "library").stdout
    assert "4 (1 without a face)" in text
    assert re.search(rf"kernels +{kernel_level()}\b", text)
    assert "not a photo" in text
    assert inside("check", library=place / "library").stdout == "the library is sound\n"
    assert answered("check", library=place / "library") == {"ok": True, "problems": []}


def test_check_leaves_with_1_when_a_byte_is_wrong(place: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(place / "library", tmp_path / "library")
    segment = next((tmp_path / "library" / "index" / "segments").iterdir())
    data = bytearray(segment.read_bytes())
    data[200] ^= 4
    segment.write_bytes(data)
    done = inside("check", "--library", tmp_path / "library")
    assert done.returncode == 1
    assert segment.name in done.stdout


def test_models_lists_what_is_here(tmp_path: Path) -> None:
    models = {model["name"]: model for model in answered("models")["models"]}
    assert {"cascade", "mtcnn", "yunet", "sface"} <= set(models)
    assert models["sface"]["dim"] == 128
    assert all(models[name]["hash_ok"] for name in ("cascade", "mtcnn", "yunet", "sface"))
    assert "Apache-2.0" in inside("models").stdout


def test_export_and_describe_write_descriptor_files(place: Path, tmp_path: Path) -> None:
    assert inside("export", tmp_path / "all.npz", library=place / "library").returncode == 0
    facts = answered("export", tmp_path / "all.npz", library=place / "library")
    assert (facts["photos"], facts["faces"]) == (4, 4)
    done = inside("describe", place / "photos" / "trip", "--out", tmp_path / "d.npz", "--workers", 0)
    assert done.returncode == 0
    assert "1 descriptor of 1 person from 1 photo " in done.stdout
    with np.load(tmp_path / "d.npz", allow_pickle=False) as data:
        assert data["labels"].tolist() == ["trip"]


def test_forget_asks_first_and_then_deletes(place: Path, tmp_path: Path) -> None:
    import shutil

    library = tmp_path / "library"
    shutil.copytree(place / "library", library)
    piped = inside("forget", "--everything", library=library)
    assert (piped.returncode, "without a terminal to ask, --yes" in piped.stderr) == (2, True)
    refused = inside("forget", "--everything", library=library, keys="n\n")
    assert refused.returncode == 1
    assert "nothing was deleted" in refused.stderr
    done = inside("forget", place / "photos" / "trip", library=library, keys="y\n")
    assert done.stdout.strip() == "forgot 1 photo"
    assert answered("status", library=library)["photos"] == 3
    assert answered("forget", "--everything", "--yes", library=library) == {"photos": 3, "everything": True}
    assert not library.exists()
    assert inside("status", library=library).returncode == 2
