"""The fields of a JSON object from a file that nobody vouches for: each with the type it must have."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from setnet.errors import InvalidInputError


def refuse(at: str, expected: str) -> NoReturn:
    """Raise for something in a file of people that does not fit."""
    raise InvalidInputError(f"the file of people does not fit at {at or 'its beginning'}: {expected}")


class Fields:
    """A JSON object; reading a field that is missing or of another type is an error that says where."""

    def __init__(self, value: Any, at: str) -> None:
        if not isinstance(value, dict):
            refuse(at, "an object is expected")
        self.value, self.at = value, at

    def text(self, name: str, longest: int) -> str:
        """Return a text that can be written as UTF-8."""
        value = self.value.get(name)
        if not isinstance(value, str) or len(value) > longest:
            refuse(self._place(name), f"a text of at most {longest:,} characters is expected")
        if "\0" in value or not _is_unicode(value):
            refuse(
                self._place(name), "a text without null characters and halves of surrogate pairs is expected"
            )
        return value

    def text_or_none(self, name: str, longest: int) -> str | None:
        """Return a text, or None where the field is null or missing."""
        return None if self.value.get(name) is None else self.text(name, longest)

    def number(self, name: str | int, lowest: float, highest: float) -> float:
        """Return a number between two limits."""
        value = self.value.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            refuse(self._place(name), "a number is expected")
        if not lowest <= value <= highest or not math.isfinite(value):
            refuse(self._place(name), f"a number between {lowest:g} and {highest:g} is expected")
        return float(value)

    def integer(self, name: str, lowest: int, highest: int) -> int:
        """Return a whole number between two limits."""
        value = self.number(name, lowest, highest)
        if value != int(value):
            refuse(self._place(name), "a whole number is expected")
        return int(value)

    def flag(self, name: str) -> bool:
        """Return true or false; false where the field is missing."""
        value = self.value.get(name, False)
        if not isinstance(value, bool):
            refuse(self._place(name), "true or false is expected")
        return value

    def list(self, name: str, most: int) -> list[Any]:
        """Return a list, empty where the field is missing."""
        value = self.value.get(name, [])
        if not isinstance(value, list) or len(value) > most:
            refuse(self._place(name), f"a list of at most {most:,} is expected")
        return value

    def _place(self, name: str | int) -> str:
        return f"{self.at}.{name}".lstrip(".")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
