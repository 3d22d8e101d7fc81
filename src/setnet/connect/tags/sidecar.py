"""Writes MWG face regions as XMP: a new sidecar, or into one that another program wrote.

The names of fields are those of the Metadata Working Group's guidelines. What another program wrote is kept
byte for byte: regions are inserted where their list ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from xml.parsers import expat

from setnet.connect.tags.rdf import RDF
from setnet.connect.tags.region_list import FaceRegion
from setnet.connect.tags.safe_xml import WIDE, parsed
from setnet.connect.tags.xmp_regions import MWG, regions_in
from setnet.errors import InvalidInputError
from setnet.faces import Box

_RDF_NAME = f'xmlns:rdf="{RDF[1:-1]}"'
_NAMES = f'xmlns:mwg-rs="{MWG.own[1:-1]}" xmlns:stArea="{MWG.area[1:-1]}" xmlns:stDim="{MWG.size[1:-1]}"'


def new_sidecar(regions: Sequence[FaceRegion], size: tuple[int, int]) -> bytes:
    """Return a sidecar with face regions in fractions of a picture of this width and height."""
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
        '<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="setnet">\n'
        f" <rdf:RDF {_RDF_NAME}>\n{_description(regions, size)} </rdf:RDF>\n"
        '</x:xmpmeta>\n<?xpacket end="w"?>\n'
    ).encode()


def with_regions(data: bytes, regions: Sequence[FaceRegion], size: tuple[int, int]) -> bytes:
    """Return a sidecar with regions added to its list, or with a list where it has none.

    All other bytes stay as they are. A document in which there is no safe place for them is an error.
    """
    parsed(data)  # refuses what must not be parsed without limits
    if data.startswith(WIDE):
        raise InvalidInputError("is not in UTF-8: left as it is")
    places = _Places(data)
    if places.list_end is not None:
        at, text = places.list_end, "".join(_item(region, _names()) for region in regions)
    elif places.rdf_end is not None and not places.has_regions:
        at, text = places.rdf_end, _description(regions, size)
    else:
        raise InvalidInputError("its regions are written in a form that cannot be added to: left as it is")
    merged = data[:at] + text.encode() + data[at:]
    expected = {region.name for region in regions}
    found = {r.name for each in regions_in(parsed(merged)) if each.form == MWG.form for r in each.regions}
    if not expected <= found:
        raise InvalidInputError("regions that were added would not be read: left as it is")
    return merged


class _Places:
    """Where in a document regions can be inserted: byte offsets of end tags."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._open: list[str] = []
        self.list_end: int | None = None
        self.rdf_end: int | None = None
        self.has_regions = False
        self._parser = expat.ParserCreate(namespace_separator="}")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.XmlDeclHandler = self._declared
        try:
            self._parser.Parse(data.rstrip(b"\0 \t\r\n"), True)
        except expat.ExpatError as error:
            raise InvalidInputError(f"no well-formed XML ({error}): left as it is") from error

    def _declared(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "utf8", "us-ascii"):
            raise InvalidInputError(f"is in {encoding}, not in UTF-8: left as it is")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append("{" + name)
        self.has_regions |= self._open[-1] == f"{MWG.own}Regions"

    def _end(self, name: str) -> None:
        at = self._parser.CurrentByteIndex
        is_tag = self._data[at : at + 2] == b"</"  # not of an element that is empty and closes itself
        if is_tag and self._open[-1] == f"{RDF}RDF":
            self.rdf_end = at
        parents = [tag for tag in self._open if tag != f"{RDF}Description"]
        in_list = [f"{MWG.own}Regions", f"{MWG.own}RegionList"]
        if is_tag and parents[-3:-1] == in_list and self.list_end is None:
            self.list_end = at
        self._open.pop()


def _names() -> str:
    return f" {_RDF_NAME} {_NAMES}"


def _description(regions: Sequence[FaceRegion], size: tuple[int, int]) -> str:
    width, height = size
    return (
        f'  <rdf:Description rdf:about=""{_names()}>\n'
        '   <mwg-rs:Regions rdf:parseType="Resource">\n'
        f'    <mwg-rs:AppliedToDimensions stDim:w="{width}" stDim:h="{height}" stDim:unit="pixel"/>\n'
        "    <mwg-rs:RegionList>\n     <rdf:Bag>\n"
        f"{''.join(map(_item, regions))}"
        "     </rdf:Bag>\n    </mwg-rs:RegionList>\n   </mwg-rs:Regions>\n  </rdf:Description>\n"
    )


def _item(region: FaceRegion, names: str = "") -> str:
    """Return a region as an item of the list; `names` declares namespaces where the document may not."""
    box: Box = region.area
    numbers = {
        "x": (box.x0 + box.x1) / 2,
        "y": (box.y0 + box.y1) / 2,
        "w": box.width,
        "h": box.height,
    }
    area = " ".join(f'stArea:{name}="{value:.6f}"' for name, value in numbers.items())
    return (
        f'      <rdf:li{names}>\n       <rdf:Description mwg-rs:Name="{escape(region.name)}" '
        f'mwg-rs:Type="Face">\n        <mwg-rs:Area {area} stArea:unit="normalized"/>\n'
        "       </rdf:Description>\n      </rdf:li>\n"
    )
