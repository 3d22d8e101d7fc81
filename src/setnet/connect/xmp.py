"""Reads face regions in XMP of the Metadata Working Group (MWG), Microsoft and ACDSee; writes the MWG's.

Lightroom, digiKam, Apple Photos and Picasa write the MWG's, with the centre of the rectangle; digiKam and
Windows Live Photo Gallery write Microsoft's, with its upper left corner. ACDSee's have the layout of the
MWG's, under names of its own. RDF structures are read whichever of their equivalent XML forms a program
wrote; documents are parsed with limits on size, depth and number of elements, and without entities.

Regions are written to a new sidecar, or into one that another program wrote. What that program wrote is kept
byte for byte: regions are inserted where their list ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser
from xml.parsers import expat

from setnet.connect.face_regions import FaceRegion, RegionList, parse_number
from setnet.connect.photo_names import PhotoNames
from setnet.errors import InvalidInputError
from setnet.faces import Box

LARGEST_XMP = 8 << 20  # bytes; sidecars have some kB, with the settings of a raw converter some hundred
_DEEPEST = 64
_MAX_ELEMENTS = 50_000
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"\0<", b"<\0")  # how documents in UTF-16 begin
_PADDING = b"\0 \t\r\n"  # fixed-size blocks in photo files are filled up with it


def parse_xml(data: bytes) -> Element:
    """Return the root of an XML document; what is no XML, or beyond the limits, is an error.

    A document type is refused whatever is in it: it is the only place where entities can be declared.

    >>> parse_xml(b"<a><b/></a>")[0].tag
    'b'
    >>> parse_xml(b"<!DOCTYPE a><a/>")
    Traceback (most recent call last):
    setnet.errors.InvalidInputError: has a document type declaration, which no XMP has: refused
    """
    if len(data) > LARGEST_XMP:
        raise InvalidInputError(f"larger than {LARGEST_XMP >> 20} MB: no XMP is")
    # The tree builder refuses what the checks of this linter rule are about.
    parser = XMLParser(target=_LimitedTree())  # noqa: S314
    try:
        parser.feed(data if data.startswith(_WIDE) else data.strip(_PADDING))
        root: Element = parser.close()
    except ParseError as error:
        raise InvalidInputError(f"no well-formed XML ({error})") from error
    except (ValueError, LookupError) as error:  # an encoding that nobody knows
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"no readable XML ({error})") from error
    return root


class _LimitedTree(TreeBuilder):
    """Builds the tree of a document as long as it stays within the limits."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = self._elements = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self._depth += 1
        self._elements += 1
        if self._depth > _DEEPEST:
            raise InvalidInputError(f"nested deeper than {_DEEPEST} elements: refused")
        if self._elements > _MAX_ELEMENTS:
            raise InvalidInputError(f"more than {_MAX_ELEMENTS:,} elements: refused")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        """Refuse the document."""
        raise InvalidInputError("has a document type declaration, which no XMP has: refused")


_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_Value = str | Element
_DESCRIPTION, _ITEM = f"{_RDF}Description", f"{_RDF}li"


def _properties(node: _Value | None) -> dict[str, _Value]:
    """Return the properties of a structure by qualified name.

    They are attributes or child elements, of the element itself (`rdf:parseType="Resource"`) or of an
    `rdf:Description` in it.
    """
    found: dict[str, _Value] = {}
    if isinstance(node, Element):
        for part in (node, *node.findall(_DESCRIPTION)):
            found |= {name: value for name, value in part.attrib.items() if not name.startswith(_RDF)}
            found |= {child.tag: child for child in part if child.tag != _DESCRIPTION}
    return found


def _items(node: _Value | None) -> list[Element]:
    """Return the items of a bag, a sequence or a list of alternatives."""
    return node.findall(f"*/{_ITEM}") if isinstance(node, Element) else []


def _text(value: _Value | None) -> str:
    """Return a simple value; of alternatives, such as one per language, the first."""
    if isinstance(value, Element):
        first = next(iter(_items(value)), value)
        value = "".join(first.itertext())
    return (value or "").strip()


class _Schema(NamedTuple):
    """A schema with the MWG's layout: namespaces of its properties, and its name for the rectangle."""

    form: str
    own: str
    area: str
    size: str
    rectangle: str


MWG = _Schema(
    "mwg",
    "{http://www.metadataworkinggroup.com/schemas/regions/}",
    "{http://ns.adobe.com/xmp/sType/Area#}",
    "{http://ns.adobe.com/xap/1.0/sType/Dimensions#}",
    "Area",
)
_ACDSEE = _Schema(
    "acdsee",
    "{http://ns.acdsee.com/regions/}",
    "{http://ns.acdsee.com/sType/Area#}",
    "{http://ns.acdsee.com/sType/Dimensions#}",
    "DLYArea",
)
_MICROSOFT = "{http://ns.microsoft.com/photo/1.2/}"
_MICROSOFT_REGIONS = "{http://ns.microsoft.com/photo/1.2/t/RegionInfo#}"
_MICROSOFT_REGION = "{http://ns.microsoft.com/photo/1.2/t/Region#}"
# Most photos have no region: the namespaces are looked for before anything is parsed (in UTF-16 they do not
# show).
_MARKS = tuple(schema.encode() for schema in ("schemas/regions/", "t/RegionInfo#", "acdsee.com/regions/"))


def regions_in_xmp(data: bytes) -> list[RegionList]:
    """Return the lists of face regions in an XMP packet or sidecar; what cannot be parsed is an error."""
    if not any(mark in data for mark in _MARKS) and not data.startswith(_WIDE):
        return []
    return _regions_in(parse_xml(data))


def _regions_in(root: Element) -> list[RegionList]:
    """Return the lists of face regions in a parsed document."""
    return [*_with_layout(root, MWG), *_microsoft(root), *_with_layout(root, _ACDSEE)]


def _with_layout(root: Element, schema: _Schema) -> Iterator[RegionList]:
    for node in root.iter(f"{schema.own}Regions"):
        fields = _properties(node)
        found = RegionList(schema.form, size=_size(fields.get(f"{schema.own}AppliedToDimensions"), schema))
        for item in _items(fields.get(f"{schema.own}RegionList")):
            _add(found, _properties(item), schema)
        yield found


def _size(value: _Value | None, schema: _Schema) -> tuple[float, float] | None:
    fields = _properties(value)
    width, height = (parse_number(_text(fields.get(f"{schema.size}{side}"))) for side in "wh")
    return (width, height) if 0 < width < math.inf and 0 < height < math.inf else None


def _add(found: RegionList, region: dict[str, _Value], schema: _Schema) -> None:
    kind = _text(region.get(f"{schema.own}Type")).lower()
    if kind not in ("", "face") or _text(region.get(f"{schema.own}NameAssignType")) == "denied":
        return
    area = _properties(region.get(f"{schema.own}{schema.rectangle}"))
    x, y, w, h = (parse_number(_text(area.get(f"{schema.area}{name}"))) for name in "xywh")
    if _text(area.get(f"{schema.area}unit")) == "pixel" and found.size is not None:
        width, height = found.size
        x, y, w, h = x / width, y / height, w / width, h / height
    name = _text(region.get(f"{schema.own}Name"))
    found.add(name, x - w / 2, y - h / 2, x + w / 2, y + h / 2)


def _microsoft(root: Element) -> Iterator[RegionList]:
    for node in root.iter(f"{_MICROSOFT}RegionInfo"):
        found = RegionList("microsoft")
        for item in _items(_properties(node).get(f"{_MICROSOFT_REGIONS}Regions")):
            fields = _properties(item)
            rectangle = _text(fields.get(f"{_MICROSOFT_REGION}Rectangle"))
            if not rectangle:  # it only says that somebody is in the photo
                continue
            parts = [parse_number(part) for part in rectangle.split(",")]
            x, y, w, h = parts if len(parts) == 4 else [math.nan] * 4
            found.add(_text(fields.get(f"{_MICROSOFT_REGION}PersonDisplayName")), x, y, x + w, y + h)
        yield found


_DC = "{http://purl.org/dc/elements/1.1/}"
_TEXTS = (f"{_DC}title", f"{_DC}description", "{http://ns.adobe.com/photoshop/1.0/}Headline")
_PERSON_IN_IMAGE = "{http://iptc.org/std/Iptc4xmpExt/2008-02-29/}PersonInImage"
_HIERARCHIES = {
    "{http://ns.adobe.com/lightroom/1.0/}hierarchicalSubject": "|",
    "{http://www.digikam.org/ns/1.0/}TagsList": "/",
    "{http://ns.microsoft.com/photo/1.0/}LastKeywordXMP": "/",
}
_PEOPLE_TAGS = ("people", "personen", "personnes", "personas", "persone")  # above the names in a tree of tags


def names_in_xmp(data: bytes) -> PhotoNames:
    """Return who is said to be in a photo without a place, and its caption and keywords."""
    found = PhotoNames()
    if not any(mark in data for mark in (b"dc/elements", b"PersonInImage", b"RegionInfo#", b"TagsList")):
        return found
    for node in parse_xml(data).iter(_DESCRIPTION):
        fields = _properties(node)
        found.names += [_text(item) for item in _items(fields.get(_PERSON_IN_IMAGE))]
        for tag, separator in _HIERARCHIES.items():
            for item in _items(fields.get(tag)):
                above, _, name = _text(item).rpartition(separator)
                if above.rpartition(separator)[2].casefold() in _PEOPLE_TAGS:
                    found.names.append(name)
        found.texts += [_text(fields.get(name)) for name in _TEXTS]
        found.texts += [_text(item) for item in _items(fields.get(f"{_DC}subject"))]
        for item in _items(
            _properties(fields.get(f"{_MICROSOFT}RegionInfo")).get(f"{_MICROSOFT_REGIONS}Regions")
        ):
            region = _properties(item)
            if not _text(region.get(f"{_MICROSOFT_REGION}Rectangle")):
                found.names.append(_text(region.get(f"{_MICROSOFT_REGION}PersonDisplayName")))
    return PhotoNames([name for name in found.names if name], [text for text in found.texts if text])


_RDF_NAME = f'xmlns:rdf="{_RDF[1:-1]}"'
_NAMES = (
    f' {_RDF_NAME} xmlns:mwg-rs="{MWG.own[1:-1]}" xmlns:stArea="{MWG.area[1:-1]}" '
    f'xmlns:stDim="{MWG.size[1:-1]}"'
)


def new_sidecar(regions: Sequence[FaceRegion], size: tuple[int, int]) -> bytes:
    """Return a sidecar with face regions in fractions of a picture of this width and height."""
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
        '<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="setnet">\n'
        f" <rdf:RDF {_RDF_NAME}>\n{_description(regions, size)} </rdf:RDF>\n"
        '</x:xmpmeta>\n<?xpacket end="w"?>\n'
    ).encode()


def add_regions(data: bytes, regions: Sequence[FaceRegion], size: tuple[int, int]) -> bytes:
    """Return a sidecar with regions added to its list, or with a list where it has none.

    All other bytes stay as they are. A document in which there is no safe place for them is an error.
    """
    parse_xml(data)  # refuses what must not be parsed without limits
    if data.startswith(_WIDE):
        raise InvalidInputError("is not in UTF-8: left as it is")
    places = _Places(data)
    if places.list_end is not None:
        at, text = places.list_end, "".join(_item(region, _NAMES) for region in regions)
    elif places.rdf_end is not None and not places.has_regions:
        at, text = places.rdf_end, _description(regions, size)
    else:
        raise InvalidInputError("its regions are written in a form that cannot be added to: left as it is")
    merged = data[:at] + text.encode() + data[at:]
    expected = {region.name for region in regions}
    found = {r.name for each in _regions_in(parse_xml(merged)) if each.form == MWG.form for r in each.regions}
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
        self._parser.XmlDeclHandler = self._on_declaration
        try:
            self._parser.Parse(data.rstrip(_PADDING), True)
        except expat.ExpatError as error:
            raise InvalidInputError(f"no well-formed XML ({error}): left as it is") from error

    def _on_declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "utf8", "us-ascii"):
            raise InvalidInputError(f"is in {encoding}, not in UTF-8: left as it is")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append("{" + name)
        self.has_regions |= self._open[-1] == f"{MWG.own}Regions"

    def _end(self, name: str) -> None:
        at = self._parser.CurrentByteIndex
        is_tag = self._data[at : at + 2] == b"</"  # not of an element that is empty and closes itself
        if is_tag and self._open[-1] == f"{_RDF}RDF":
            self.rdf_end = at
        parents = [tag for tag in self._open if tag != f"{_RDF}Description"]
        in_list = [f"{MWG.own}Regions", f"{MWG.own}RegionList"]
        if is_tag and parents[-3:-1] == in_list and self.list_end is None:
            self.list_end = at
        self._open.pop()


def _description(regions: Sequence[FaceRegion], size: tuple[int, int]) -> str:
    width, height = size
    return (
        f'  <rdf:Description rdf:about=""{_NAMES}>\n'
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
