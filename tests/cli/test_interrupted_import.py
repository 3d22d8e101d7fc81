"""Ctrl-C while the command line itself is still being imported."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
module, sys.argv[1:] = sys.argv[1], ["search", "--help"]
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from setnet.cli import main
main()
"""


def test_ctrl_c_while_modules_are_imported_leaves_with_130_and_no_traceback() -> None:
    for module in ("setnet.cli.app", "typer", "setnet.cli.search"):
        done = subprocess.run([sys.executable, "-c", PROGRAM, module], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (130, ""), module
