"""Runs one target under Atheris, guided by which lines of setnet an input reaches.

A program for `tests.fuzz.__main__`: ``python -m tests.fuzz.guided TARGET [libFuzzer options] CORPUS``.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    import atheris

    os.environ["SETNET_FUZZ_GUIDED"] = "1"
    name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["setnet"]):
        from tests.fuzz.run import opened

        with opened(name) as function:
            atheris.Setup([sys.argv[0], *options], function)
            atheris.Fuzz()  # ends the process


if __name__ == "__main__":
    main()
