"""What a package exports, and what importing it costs."""

from __future__ import annotations

import ast
import inspect
import json
import pydoc
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import setnet

PACKAGES = [
    "setnet",
    *(f"setnet.{name}" for name in ("engine", "heads", "faces", "video", "sandbox", "library", "connect")),
    *(f"setnet.{name}" for name in ("collect", "train", "evaluate", "web")),
]
HEAVY = {"cv2", "fastapi", "onnxruntime", "scipy", "torch"}


def imported_by(code: str) -> set[str]:
    """Return the top-level modules that are loaded after running ``code``."""
    program = f"import json, sys\n{code}\nprint(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_exists_and_is_known_to_type_checkers(name: str) -> None:
    package = import_module(name)
    source = ast.parse(Path(package.__file__ or "").read_text(encoding="utf-8"))
    declared = {
        alias.asname or alias.name
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("setnet.")
        for alias in node.names
    }
    assert all(getattr(package, public) is not None for public in package.__all__)
    assert set(package.__all__) - {"__version__"} == declared - {"MissingExtraError", "lazy_names"}
    assert {*package.__all__} <= {*dir(package)}
    assert not hasattr(package, "no_such_name")


def test_the_top_of_the_package_is_what_the_documentation_shows() -> None:
    assert setnet.__all__ == ["Hit", "Library", "Match", "SetIndex", "SetNet", "SetNetError", "__version__"]
    assert dict(inspect.getmembers(setnet))["SetIndex"] is setnet.SetIndex
    assert "class SetIndex" in pydoc.plain(pydoc.render_doc(setnet))


def test_importing_any_package_loads_no_heavy_library() -> None:
    assert not imported_by("\n".join(f"import {name}" for name in PACKAGES)) & HEAVY


def test_importing_setnet_does_not_load_numpy() -> None:
    assert "numpy" not in imported_by("import setnet")


def test_a_missing_extra_is_an_import_error_that_names_it() -> None:
    missing = [
        ("setnet.web", "create_app", "fastapi", "app"),
        ("setnet.train", "train_sets", "torch", "train"),
        ("setnet.evaluate", "evaluate_claim", "torch", "train"),
        ("setnet.connect", "PostgresSets", "psycopg", "postgres"),
        ("setnet.faces", "extract_faces", "onnxruntime", "photos"),
    ]
    program = "import sys\n" + "".join(
        f"sys.modules[{library!r}] = None\n"
        f"try:\n    from {package} import {name}\n"
        "except ImportError as error:\n    print(error)\n"
        for package, name, library, _ in missing
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for line, (package, _, library, extra) in zip(done.stdout.splitlines(), missing, strict=True):
        remedy = f"install it with `pip install 'setnet[{extra}]'`"
        assert re.fullmatch(rf"{package} needs {library}(\.sql)?: {re.escape(remedy)}", line)


def test_scipy_is_for_experiments_and_training_alone() -> None:
    sources = Path(setnet.__file__).parent
    importing = {
        file.relative_to(sources).parts[0]
        for file in sources.rglob("*.py")
        if re.search(r"^\s*(import|from) scipy\b", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert importing <= {"collect", "evaluate", "train"}


# Blocks everything that is installed beside Python and setnet but for NumPy.
NUMPY_ALONE = """
import sys
from importlib.abc import MetaPathFinder
from importlib.metadata import packages_distributions

class Blocked(MetaPathFinder):
    names = {*packages_distributions()} - {"numpy", "setnet", "_distutils_hack"} - {*sys.stdlib_module_names}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def test_sets_of_vectors_and_heads_need_numpy_alone(tmp_path: Path) -> None:
    program = f"""{NUMPY_ALONE}
import numpy as np
from setnet import SetIndex, SetNet
vectors = np.random.default_rng(0).standard_normal((6, 128)).astype("f4")
with SetIndex.create({str(tmp_path / "i")!r}, dim=128, head="sface-128") as index:
    index.add(["a", "b"], vectors, [2, 4])
    for mode in ("exact", "fast", "set"):
        assert index.search(vectors[:2], k=1, mode=mode)[0].id == "a"
    assert index.search(vectors[2:4], k=1, matching="optimal")[0].id == "b"
SetNet.load("sface-512").save({str(tmp_path / "head.safetensors")!r})
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_command_without_photos_says_what_to_install(tmp_path: Path) -> None:
    program = f"{NUMPY_ALONE}\nfrom setnet.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "setnet: this command needs typer: install it with `pip install 'setnet[photos]'`\n"
    )
