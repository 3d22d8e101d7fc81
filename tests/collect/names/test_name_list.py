from __future__ import annotations

from pathlib import Path

import pytest

from setnet.collect import CollectRun, run_step
from setnet.collect.names.name_list import read_names
from setnet.errors import InvalidInputError


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("names.txt", "# people\nAnn Cole | Annie\n\nBen_Dole\n"),
        ("names.csv", "name,aliases\nAnn Cole,Annie\nBen Dole,\n"),
        ("names.json", '[{"name": "Ann Cole", "aliases": ["Annie"]}, "Ben Dole"]'),
    ],
)
def test_a_list_may_be_lines_csv_or_json(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    found = [(each.name, each.aliases) for each in read_names(tmp_path / file)]
    assert found == [("Ann Cole", ("Annie",)), ("Ben Dole", ())]


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        ("names.txt", "Zo\xeb".encode("latin-1"), "byte 2 is no UTF-8"),
        ("names.json", b'{"a": 1', "no list of names"),
        ("names.csv", b"person\nAnn\n", "column 'name'"),
        ("names.txt", b"\n", "empty"),
    ],
)
def test_a_list_that_cannot_be_read_is_named(tmp_path: Path, file: str, data: bytes, message: str) -> None:
    (tmp_path / file).write_bytes(data)
    with pytest.raises(InvalidInputError, match=message) as error:
        read_names(tmp_path / file)
    assert file in str(error.value)


def test_names_twice_or_without_portraits_are_named_and_left_out(tmp_path: Path) -> None:
    for name in ("Ann_Cole", "Ben_Dole", "Somebody_Else"):
        (tmp_path / "portraits" / name).mkdir(parents=True)
    (tmp_path / "photos").mkdir()
    (tmp_path / "names.txt").write_text("Ann Cole\nANN  COLE\nBen Dole\nCid Fox\n", encoding="utf-8")
    run = CollectRun.begin(
        tmp_path / "run",
        portraits=tmp_path / "portraits",
        photos=[tmp_path / "photos"],
        names=tmp_path / "names.txt",
    )
    run_step(run, "names")
    rows = {row["entry"]: row for row in run.manifest("names").rows()}
    assert [row["name"] for row in rows.values() if row["kept"]] == ["Ann Cole", "Ben Dole"]
    assert rows["names.txt:2"]["reason"] == "listed twice"
    assert rows["names.txt:4"]["reason"] == "no folder of portraits"
    assert rows[str(tmp_path / "portraits" / "Somebody_Else")]["reason"] == "not in the list of names"
