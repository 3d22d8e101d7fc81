from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from setnet.collect import CollectRun, run_step
from setnet.collect.captions import embedded_caption
from setnet.collect.run import Row


@pytest.fixture
def run(tmp_path: Path) -> CollectRun:
    for folder in ("portraits", "photos/a", "photos/b"):
        (tmp_path / folder).mkdir(parents=True)
    return CollectRun.begin(tmp_path / "run", portraits=tmp_path / "portraits", photos=[tmp_path / "photos"])


def picture(**more: Any) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "JPEG", **more)
    return buffer.getvalue()


def captions(run: CollectRun) -> tuple[dict[str, Row], list[str]]:
    run_step(run, "captions", workers=0)
    rows = list(run.manifest("captions").rows())
    texts = {Path(row["photo"]).name: row for row in rows if row["kept"]}
    return texts, [row["detail"] for row in rows if not row["kept"]]


def test_texts_come_from_tables_own_files_and_the_photo_itself(run: CollectRun, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    for name in ("a/csv.jpg", "a/txt.jpg", "b/side.jpg", "b/ann_cole.jpg"):
        (photos / name).write_bytes(picture())
    exif = Image.Exif()
    exif[0x010E] = "by exif"
    (photos / "b" / "inside.jpg").write_bytes(picture(exif=exif))
    (photos / "a" / "captions.csv").write_text("photo,caption\ncsv.jpg,by table\n")
    (photos / "a" / "txt.txt").write_text("by text")
    (photos / "b" / "side.txt").write_text("by sidecar")
    texts, problems = captions(run)
    assert {name: row["text"] for name, row in texts.items()} == {
        "csv.jpg": "by table",
        "txt.jpg": "by text",
        "side.jpg": "by sidecar",
        "inside.jpg": "by exif",
        "ann_cole.jpg": "ann_cole",
    }
    assert texts["ann_cole.jpg"]["from"] == ["name"]
    assert problems == []


def test_what_is_wrong_in_caption_files_is_named_and_the_rest_is_read(
    run: CollectRun, tmp_path: Path
) -> None:
    photos = tmp_path / "photos"
    for name in ("a/one.jpg", "a/two.jpg", "b/three.jpg"):
        (photos / name).write_bytes(picture())
    (photos / "a" / "captions.csv").write_text("photo,caption\none.jpg,first\none.jpg,second\n")
    (photos / "a" / "two.txt").write_bytes("Zo\xeb".encode("latin-1"))
    (photos / "b" / "captions.csv").write_text("file,text\nthree.jpg,third\n")
    texts, problems = captions(run)
    assert texts["one.jpg"]["text"] == "first"
    assert texts["two.jpg"]["text"] == "two"
    assert set(texts) == {"one.jpg", "two.jpg", "three.jpg"}
    for part in ("no UTF-8 text", "expected the columns photo and caption"):
        assert any(part in problem for problem in problems), (part, problems)


XMP = """<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:p="http://ns.adobe.com/photoshop/1.0/"
 p:Headline="a headline"><dc:description><rdf:Alt><rdf:li>by xmp</rdf:li></rdf:Alt></dc:description>
</rdf:Description></rdf:RDF></x:xmpmeta>"""


def test_exif_iptc_and_xmp_are_read_and_damage_costs_nothing() -> None:
    exif = Image.Exif()
    exif[0x010E] = "a title"
    caption = b"by iptc"
    block = b"\x1c\x02\x78" + len(caption).to_bytes(2, "big") + caption
    resource = b"8BIM\x04\x04\x00\x00" + len(block).to_bytes(4, "big") + block + b"\0" * (len(block) % 2)
    segment = b"Photoshop 3.0\0" + resource
    data = picture(exif=exif, xmp=XMP.encode())
    with_iptc = data[:2] + b"\xff\xed" + (len(segment) + 2).to_bytes(2, "big") + segment + data[2:]
    assert set(embedded_caption(with_iptc).splitlines()) == {"a title", "by iptc", "a headline", "by xmp"}
    assert embedded_caption(data[:40]) == ""
    assert embedded_caption(b"") == ""
    bomb = XMP.replace("<x:xmpmeta", '<!DOCTYPE d [<!ENTITY a "aaaa">]><x:xmpmeta', 1)
    assert embedded_caption(picture(xmp=bomb.encode())) == ""


def test_a_run_cut_short_reads_only_what_is_left(
    run: CollectRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from setnet.collect import captions as reading

    for number in range(5):
        (tmp_path / "photos" / "a" / f"{number}.jpg").write_bytes(picture())
    read: list[str] = []
    original = reading._row

    def counted(photo: str, beside: list[str], inside: str) -> Row:
        read.append(photo)
        if len(read) == 4:
            raise KeyboardInterrupt
        return original(photo, beside, inside)

    monkeypatch.setattr(reading, "_row", counted)
    with pytest.raises(KeyboardInterrupt):
        run_step(run, "captions", workers=0)
    assert not run.manifest("captions").exists
    run_step(run, "captions", workers=0)
    assert [Path(photo).stem for photo in read] == ["0", "1", "2", "3", "3", "4"]
    assert run.manifest("captions").summary().kept == 5
