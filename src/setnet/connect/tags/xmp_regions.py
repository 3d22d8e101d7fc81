"""Reads face regions in XMP: those of the Metadata Working Group (MWG), of Microsoft and of ACDSee.

Lightroom, digiKam, Apple Photos and Picasa write the MWG's, with the centre of the rectangle; digiKam and
Windows Live Photo Gallery write Microsoft's, with its upper left corner. ACDSee's have the layout of the
MWG's, under names of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from setnet.connect.tags.rdf import Value, items, properties, text
from setnet.connect.tags.region_list import RegionList, number
from setnet.connect.tags.safe_xml import WIDE, parsed


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
    if not any(mark in data for mark in _MARKS) and not data.startswith(WIDE):
        return []
    return regions_in(parsed(data))


def regions_in(root: Element) -> list[RegionList]:
    """Return the lists of face regions in a parsed document."""
    return [*_with_layout(root, MWG), *_microsoft(root), *_with_layout(root, _ACDSEE)]


def _with_layout(root: Element, schema: _Schema) -> Iterator[RegionList]:
    for node in root.iter(f"{schema.own}Regions"):
        fields = properties(node)
        found = RegionList(schema.form, size=_size(fields.get(f"{schema.own}AppliedToDimensions"), schema))
        for item in items(fields.get(f"{schema.own}RegionList")):
            _add(found, properties(item), schema)
        yield found


def _size(value: Value | None, schema: _Schema) -> tuple[float, float] | None:
    fields = properties(value)
    width, height = (number(text(fields.get(f"{schema.size}{side}"))) for side in "wh")
    return (width, height) if 0 < width < math.inf and 0 < height < math.inf else None


def _add(found: RegionList, region: dict[str, Value], schema: _Schema) -> None:
    kind = text(region.get(f"{schema.own}Type")).lower()
    if kind not in ("", "face") or text(region.get(f"{schema.own}NameAssignType")) == "denied":
        return
    area = properties(region.get(f"{schema.own}{schema.rectangle}"))
    x, y, w, h = (number(text(area.get(f"{schema.area}{name}"))) for name in "xywh")
    if text(area.get(f"{schema.area}unit")) == "pixel" and found.size is not None:
        width, height = found.size
        x, y, w, h = x / width, y / height, w / width, h / height
    name = text(region.get(f"{schema.own}Name"))
    found.add(name, x - w / 2, y - h / 2, x + w / 2, y + h / 2)


def _microsoft(root: Element) -> Iterator[RegionList]:
    for node in root.iter(f"{_MICROSOFT}RegionInfo"):
        found = RegionList("microsoft")
        for item in items(properties(node).get(f"{_MICROSOFT_REGIONS}Regions")):
            fields = properties(item)
            rectangle = text(fields.get(f"{_MICROSOFT_REGION}Rectangle"))
            if not rectangle:  # it only says that somebody is in the photo
                continue
            parts = [number(part) for part in rectangle.split(",")]
            x, y, w, h = parts if len(parts) == 4 else [math.nan] * 4
            found.add(text(fields.get(f"{_MICROSOFT_REGION}PersonDisplayName")), x, y, x + w, y + h)
        yield found
