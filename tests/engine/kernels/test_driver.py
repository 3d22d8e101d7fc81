"""The kernels answer like the reference on processors that this machine is not.

A driver without Python is compiled with the kernels: for this machine in every run of the tests, for 64-bit
ARM, emulated by qemu, in `make soak`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from docs.hooks.commands import ENVIRONMENT
from setnet.engine.kernels import backend, reference
from tests.engine.kernels.cases import write_cases

DRIVER = Path(__file__).with_name("driver.c")
C = Path(backend.__file__).parent / "c"
SOURCES = sorted(C.rglob("*.c"))
STRICT = ["-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra", "-Werror"]
ARM_COMPILER, ARM = "aarch64-linux-gnu-gcc", "qemu-aarch64"


def needs(packages: str, *programs: str) -> pytest.MarkDecorator:
    missing = ", ".join(program for program in programs if not shutil.which(program))
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {missing} (Debian: {packages})")


needs_arm = needs("gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user", ARM_COMPILER, ARM)


def compiled(compiler: str, folder: Path, *options: str) -> Path:
    program = folder / "driver"
    sources = [str(path) for path in SOURCES if path.name != "module.c"]
    command = [compiler, *STRICT, *options, f"-I{C}", str(DRIVER), *sources, "-lm"]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


def run(*command: str | Path) -> tuple[int, list[str]]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout.splitlines()


@needs("gcc", "gcc")
def test_the_driver_agrees_with_the_reference_and_notices_a_wrong_number(tmp_path: Path) -> None:
    program, cases = compiled("gcc", tmp_path, "-O1"), tmp_path / "cases"
    count = write_cases(cases, query_peak=64)  # what AVX2 can take against bytes
    status, lines = run(program, cases)
    assert status == 0, lines
    levels = [line.split(":")[0] for line in lines]
    assert lines == [f"{level}: {count} cases, 0 differ" for level in levels]
    assert backend.kernels is reference or levels == backend.kernels.levels()

    stored = bytearray(cases.read_bytes())
    stored[-1] ^= 1  # the sign or exponent of the last case's last number
    cases.write_bytes(stored)
    status, lines = run(program, cases)
    assert status == 1
    for level in levels:
        assert f"{level}: case {count - 1}, set_similarities (1, 1024, 128): 1 numbers differ" in lines


@pytest.mark.soak
@needs_arm
def test_neon_agrees_with_the_reference(tmp_path: Path) -> None:
    program, cases = compiled(ARM_COMPILER, tmp_path, "-O3", "-static"), tmp_path / "cases"
    count = write_cases(cases, query_peak=127)
    with_dot = ["portable", "neon", "neon_dot"]
    for processor, levels in {"cortex-a53": with_dot[:2], "cortex-a76": with_dot, "max": with_dot}.items():
        status, lines = run(ARM, "-cpu", processor, program, cases)
        assert (status, lines) == (0, [f"{level}: {count} cases, 0 differ" for level in levels])


@pytest.mark.soak
@needs_arm
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_whole_extension_compiles_for_arm(source: Path, tmp_path: Path) -> None:
    """Python's headers are those of this machine: what they say of sizes is the same on both."""
    unused = ["-Wno-unused-parameter", "-Wno-missing-field-initializers"] if source.name == "module.c" else []
    subprocess.run(
        [ARM_COMPILER, "-O3", *STRICT, *unused, "-isystem", sysconfig.get_path("include"), "-c", str(source),
         "-o", str(tmp_path / "object")],
        check=True,
    )  # fmt: skip


def test_the_docs_name_every_level() -> None:
    table = (C / "levels.c").read_text(encoding="utf-8")
    page = ENVIRONMENT["SETNET_KERNELS"]
    names = re.findall(r'\{"(\w+)", scan8_', table)
    assert set(backend.kernels.levels()) <= {*names, "reference"}
    assert [name for name in [*names, "reference"] if f"`{name}`" not in page] == []
