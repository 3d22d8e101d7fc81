"""XMP as other programs write it, in the forms that tests read."""

from __future__ import annotations

_MWG = (
    'xmlns:mwg-rs="http://www.metadataworkinggroup.com/schemas/regions/" '
    'xmlns:stArea="http://ns.adobe.com/xmp/sType/Area#" '
    'xmlns:stDim="http://ns.adobe.com/xap/1.0/sType/Dimensions#"'
)
_MICROSOFT = (
    'xmlns:MP="http://ns.microsoft.com/photo/1.2/" '
    'xmlns:MPRI="http://ns.microsoft.com/photo/1.2/t/RegionInfo#" '
    'xmlns:MPReg="http://ns.microsoft.com/photo/1.2/t/Region#"'
)
_ACDSEE = (
    'xmlns:acdsee-rs="http://ns.acdsee.com/regions/" '
    'xmlns:acdsee-stArea="http://ns.acdsee.com/sType/Area#" '
    'xmlns:acdsee-stDim="http://ns.acdsee.com/sType/Dimensions#"'
)
Area = tuple[object, object, object, object]  # x and y of the centre, width, height
FACE: Area = (0.5, 0.25, 0.2, 0.1)


def packet(inner: str) -> bytes:
    """Return an XMP packet around an inner part of RDF."""
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF '
        f'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">{inner}</rdf:RDF></x:xmpmeta>\n'
        '<?xpacket end="w"?>'
    ).encode()


def lightroom(people: dict[str, Area], size: tuple[int, int] | None = None, kind: str = "Face") -> bytes:
    """Return MWG regions with attributes, each in an `rdf:Description`."""
    sides = ""
    if size is not None:
        sides = f'<mwg-rs:AppliedToDimensions stDim:w="{size[0]}" stDim:h="{size[1]}" stDim:unit="pixel"/>'
    regions = "".join(
        f'<rdf:li><rdf:Description mwg-rs:Rotation="0.0" mwg-rs:Name="{name}" mwg-rs:Type="{kind}">'
        f'<mwg-rs:Area stArea:x="{x}" stArea:y="{y}" stArea:w="{w}" stArea:h="{h}"/>'
        "</rdf:Description></rdf:li>"
        for name, (x, y, w, h) in people.items()
    )
    return packet(
        f'<rdf:Description rdf:about="" {_MWG}><mwg-rs:Regions rdf:parseType="Resource">{sides}'
        f"<mwg-rs:RegionList><rdf:Bag>{regions}</rdf:Bag></mwg-rs:RegionList></mwg-rs:Regions>"
        "</rdf:Description>"
    )


def elements(people: dict[str, Area], size: tuple[int, int]) -> bytes:
    """Return MWG regions with nothing but elements, as exiftool and digiKam may write them."""
    regions = "".join(
        '<rdf:li rdf:parseType="Resource"><mwg-rs:Area rdf:parseType="Resource">'
        f"<stArea:h>{h}</stArea:h><stArea:unit>normalized</stArea:unit><stArea:w>{w}</stArea:w>"
        f"<stArea:x>{x}</stArea:x><stArea:y>{y}</stArea:y></mwg-rs:Area><mwg-rs:Name>{name}</mwg-rs:Name>"
        "<mwg-rs:Type>Face</mwg-rs:Type></rdf:li>"
        for name, (x, y, w, h) in people.items()
    )
    return packet(
        f'<rdf:Description rdf:about="" {_MWG}><mwg-rs:Regions><rdf:Description>'
        f"<mwg-rs:AppliedToDimensions><rdf:Description><stDim:w>{size[0]}</stDim:w><stDim:h>{size[1]}"
        "</stDim:h></rdf:Description></mwg-rs:AppliedToDimensions>"
        f"<mwg-rs:RegionList><rdf:Bag>{regions}</rdf:Bag></mwg-rs:RegionList>"
        "</rdf:Description></mwg-rs:Regions></rdf:Description>"
    )


def microsoft(people: dict[str, str]) -> bytes:
    """Return Microsoft's regions: a rectangle as text by name."""
    regions = "".join(
        f'<rdf:li MPReg:PersonDisplayName="{name}" MPReg:Rectangle="{rectangle}"/>'
        for name, rectangle in people.items()
    )
    return packet(
        f'<rdf:Description rdf:about="" {_MICROSOFT}><MP:RegionInfo rdf:parseType="Resource"><MPRI:Regions>'
        f"<rdf:Bag>{regions}</rdf:Bag></MPRI:Regions></MP:RegionInfo></rdf:Description>"
    )


def acdsee(name: str, area: Area = FACE, how: str = "manual") -> bytes:
    """Return a region of ACDSee's, with the size of the picture."""
    x, y, w, h = area
    return packet(
        f'<rdf:Description rdf:about="" {_ACDSEE}><acdsee-rs:Regions rdf:parseType="Resource">'
        '<acdsee-rs:AppliedToDimensions acdsee-stDim:w="1600" acdsee-stDim:h="1200"/>'
        f'<acdsee-rs:RegionList><rdf:Bag><rdf:li><rdf:Description acdsee-rs:Type="Face" '
        f'acdsee-rs:Name="{name}" acdsee-rs:NameAssignType="{how}"><acdsee-rs:DLYArea '
        f'acdsee-stArea:x="{x}" acdsee-stArea:y="{y}" acdsee-stArea:w="{w}" acdsee-stArea:h="{h}"/>'
        "</rdf:Description></rdf:li></rdf:Bag></acdsee-rs:RegionList></acdsee-rs:Regions></rdf:Description>"
    )
