"""Fuzz everything that reads what others wrote: ``python -m tests.fuzz`` from the root of the repository.

Without names, all targets run with the numbers of inputs and the time budgets of `tests.fuzz.targets`; those
that reach the kernels run with sanitizers, once per instruction set. ``--guided`` uses coverage (Atheris:
pip install 'setnet[fuzz]'); ``--survey`` goes on after findings and lists them; ``--replay HEX`` runs one.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.run import LONGEST, MEMORY, corpus_of, keep, replay, run, survey
from tests.fuzz.sanitized import sanitized
from tests.fuzz.targets import TARGETS


def main() -> int:
    options = _options()
    if options.replay:
        replay(options.targets[0], [bytes.fromhex(options.replay)])
        return 0
    if options.here:
        return _here(options)
    failed = [name for name in options.targets or TARGETS if not _all_kernels(name, options)]
    print(f"findings in {', '.join(failed)}" if failed else "no findings")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--first", type=int, default=0, help="seed of the first input")
    parser.add_argument("--inputs", type=int, help="instead of the target's own number")
    parser.add_argument("--seconds", type=float, help="instead of the target's own time budget")
    parser.add_argument("--guided", action="store_true", help="guided by coverage, with Atheris")
    parser.add_argument("--plain", action="store_true", help="without sanitizers")
    parser.add_argument("--survey", action="store_true", help="go on after findings")
    parser.add_argument("--replay", metavar="HEX", help="try this input only")
    parser.add_argument("--keep", action="store_true", help="keep inputs that reach new code in the corpus")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"unknown target {min(unknown)}: valid are {', '.join(TARGETS)}")
    return options


def _all_kernels(name: str, options: argparse.Namespace) -> bool:
    """Run a target in a process of its own, or in one per instruction set of the kernels."""
    target = TARGETS[name]
    inputs, seconds = options.inputs or target.inputs, options.seconds or target.seconds
    if options.plain or options.guided or not target.sanitized:  # ASan hides coverage from libFuzzer
        return _run(name, options, dict(os.environ), inputs, seconds, "")
    from setnet.engine.kernels.backend import kernels

    levels = kernels.levels()
    with tempfile.TemporaryDirectory(prefix="setnet-sanitized-") as folder:
        environment = sanitized(Path(folder))
        done = []
        for level in levels:
            chosen = environment | {"SETNET_KERNELS": level}
            how = f" (sanitized, {level})"
            done.append(_run(name, options, chosen, inputs // len(levels), seconds / len(levels), how))
        return all(done)


def _run(
    name: str, options: argparse.Namespace, environment: dict[str, str], inputs: int, seconds: float, how: str
) -> bool:
    print(f"{name}{how}: ", end="", flush=True)
    if options.guided:
        return _guided(name, options, environment, inputs, seconds)
    command = [sys.executable, "-m", "tests.fuzz", "--here", name, "--inputs", str(inputs)]
    command += ["--seconds", str(seconds), "--first", str(options.first)]
    return (
        subprocess.run([*command, *(["--survey"] if options.survey else [])], env=environment).returncode == 0
    )


def _here(options: argparse.Namespace) -> int:
    (name,) = options.targets
    if options.survey:
        ran, found = survey(name, options.first, options.inputs, options.seconds)
        for place, (times, data) in sorted(found.items(), key=lambda item: -item[1][0]):
            print(f"\n  {times} x {place}\n    {data.hex()}")
    else:
        ran, found = run(name, options.first, options.inputs, options.seconds), {}
    print(f"{ran.inputs} inputs, {ran.rate:.0f} per second")
    return 1 if found else 0


def _guided(
    name: str, options: argparse.Namespace, environment: dict[str, str], inputs: int, seconds: float
) -> bool:
    with tempfile.TemporaryDirectory(prefix="setnet-corpus-", dir=MEMORY) as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        for number, data in enumerate(corpus_of(name)):
            (corpus / f"kept-{number}").write_bytes(data)
        command = [
            sys.executable, "-m", "tests.fuzz.guided", name, f"-runs={inputs}",
            f"-max_total_time={int(seconds)}", f"-max_len={LONGEST}", f"-seed={options.first + 1}",
            f"-artifact_prefix={folder}/", "-print_final_stats=1", "-len_control=0", "-timeout=120",
            "-rss_limit_mb=0", str(corpus),
        ]  # fmt: skip
        environment |= {"SETNET_FUZZ_FOLDER": folder}  # libFuzzer ends its process without cleaning up
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
        stats = dict(re.findall(r"stat::(\w+):\s+(\d+)", ended.stderr))
        covered = re.findall(r" cov: (\d+) ft: (\d+)", ended.stderr)
        print(
            f"{stats.get('number_of_executed_units', '?')} inputs, {stats.get('average_exec_per_sec', '?')} "
            f"per second, coverage {' and '.join(covered[-1]) if covered else 'unknown'} (edges and features)"
        )
        found = [path for path in Path(folder).iterdir() if path.is_file()]
        for path in found:
            print(f"  finding: {path.read_bytes().hex()}")
        if ended.returncode:
            print(ended.stderr[-4000:])
        elif options.keep:
            keep(name, [path.read_bytes() for path in corpus.iterdir()])
        return not ended.returncode


if __name__ == "__main__":
    sys.exit(main())
