"""Parses XML that others wrote, with limits on size, depth and number of elements, and without entities."""

from __future__ import annotations

from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from setnet.errors import InvalidInputError

LARGEST = 8 << 20  # bytes; sidecars have some kB, with the settings of a raw converter some hundred
_DEEPEST = 64
_MOST_ELEMENTS = 50_000
WIDE = (b"\xff\xfe", b"\xfe\xff", b"\0<", b"<\0")  # how documents in UTF-16 begin
_PADDING = b"\0 \t\r\n"  # fixed-size blocks in photo files are filled up with it


def parsed(data: bytes) -> Element:
    """Return the root of an XML document; what is no XML, or beyond the limits, is an error.

    A document type is refused whatever is in it: it is the only place where entities can be declared.

    >>> parsed(b"<a><b/></a>")[0].tag
    'b'
    >>> parsed(b"<!DOCTYPE a><a/>")
    Traceback (most recent call last):
    setnet.errors.InvalidInputError: has a document type declaration, which no XMP has: refused
    """
    if len(data) > LARGEST:
        raise InvalidInputError(f"larger than {LARGEST >> 20} MB: no XMP is")
    # The tree builder refuses what the checks of this linter rule are about.
    parser = XMLParser(target=_LimitedTree())  # noqa: S314
    try:
        parser.feed(data if data.startswith(WIDE) else data.strip(_PADDING))
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
        if self._elements > _MOST_ELEMENTS:
            raise InvalidInputError(f"more than {_MOST_ELEMENTS:,} elements: refused")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        """Refuse the document."""
        raise InvalidInputError("has a document type declaration, which no XMP has: refused")
