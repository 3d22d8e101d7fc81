"""Reads RDF structures as XMP uses them, whichever of their equivalent XML forms a program wrote."""

from __future__ import annotations

from xml.etree.ElementTree import Element

RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
Value = str | Element
_DESCRIPTION, _ITEM = f"{RDF}Description", f"{RDF}li"


def properties(node: Value | None) -> dict[str, Value]:
    """Return the properties of a structure by qualified name.

    They are attributes or child elements, of the element itself (`rdf:parseType="Resource"`) or of an
    `rdf:Description` in it.
    """
    found: dict[str, Value] = {}
    if isinstance(node, Element):
        for part in (node, *node.findall(_DESCRIPTION)):
            found |= {name: value for name, value in part.attrib.items() if not name.startswith(RDF)}
            found |= {child.tag: child for child in part if child.tag != _DESCRIPTION}
    return found


def items(node: Value | None) -> list[Element]:
    """Return the items of a bag, a sequence or a list of alternatives."""
    return node.findall(f"*/{_ITEM}") if isinstance(node, Element) else []


def text(value: Value | None) -> str:
    """Return a simple value; of alternatives, such as one per language, the first."""
    if isinstance(value, Element):
        first = next(iter(items(value)), value)
        value = "".join(first.itertext())
    return (value or "").strip()
