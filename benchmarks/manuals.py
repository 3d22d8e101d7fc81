"""Debian's manual pages as sets of token vectors: how often a page is found by what it says it does.

    python benchmarks/manuals.py                             # prints the table; two minutes
    python benchmarks/manuals.py --write docs/research.md    # as a section of a page

The query is the sentence of a page's section NAME, the document the rest of the page. Vectors are wordllama's, one for
each token whatever its context. Pages of other vendors (gcloud has 17,000) are left out. `--also` adds folders of pages,
such as those of a package unpacked by `dpkg -x`.
"""

from __future__ import annotations

import argparse
import gzip
import re
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import wordllama
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from setnet import SetIndex
from support.performance_page import machine, write_section

MARKS = re.compile(r"(?m)^[.'](\\\".*|[A-Za-z]+ ?)|\\f(\[\w*\]|\(..|.)|\\[-&|,/^%]?")
NAME = re.compile(r'^\.S[Hh] "?NAME"?\s*\n(.*?)^\.S[Hh]', re.DOTALL | re.MULTILINE)
QUERIES = 500
WAYS: dict[str, dict[str, Any]] = {
    "sum of maxima (`maxsim`)": {"matching": "maxsim"},
    "one to one (`greedy`)": {},
    "mean of all tokens (`set`)": {"mode": "set"},
}


def pages(folders: list[Path]) -> Iterator[tuple[str, str, str]]:
    """Yield name, sentence and text of each manual page."""
    for page in sorted(path for folder in folders for path in folder.glob("man[1-8]/*.gz")):
        if page.is_symlink() or page.name.startswith("gcloud"):
            continue
        source = gzip.open(page, "rt", errors="replace").read()
        named = NAME.search(source)
        parts = re.split(r"\s-+\s", MARKS.sub(" ", named[1].replace("\\-", "-")), maxsplit=1) if named else []
        if named and len(parts) == 2 and len(text := MARKS.sub(" ", source[named.end() :])) > 500:
            yield page.stem, parts[1], text[:20_000]


def main() -> None:
    """Parse, index, search, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--also", type=Path, nargs="*", default=[])
    parser.add_argument("--write", type=Path, help="write the table to this page, as a section of its own")
    args = parser.parse_args()
    package = files(wordllama)
    tokenizer = Tokenizer.from_file(str(package / "tokenizers/l2_supercat_tokenizer_config.json"))
    vectors = load_file(package / "weights/l2_supercat_256.safetensors")["embedding.weight"].astype(
        np.float32
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def tokens_of(text: str) -> NDArray[np.int64]:
        return np.unique(tokenizer.encode(text, add_special_tokens=False).ids)

    found = {
        name: (tokens_of(said), tokens_of(text))
        for name, said, text in pages([Path("/usr/share/man"), *args.also])
    }
    frequency = np.bincount(np.concatenate([text for _, text in found.values()]), minlength=len(vectors))
    weights = np.log(len(found) / (1 + frequency)).clip(0.1).astype(np.float32)[:, None]
    asked = [name for name, (said, _) in found.items() if len(said) >= 4]
    asked = np.random.default_rng(0).permutation(asked)[:QUERIES].tolist()
    lines = ["| score | in the first ten | mean reciprocal rank |", "|---|---|---|"]
    with SetIndex.create(
        Path(tempfile.mkdtemp(), "manuals"), dim=vectors.shape[1], precision="float16"
    ) as index:
        for at in range(0, len(found), 500):
            index.add({name: vectors[found[name][1]] for name in list(found)[at : at + 500]})
        for way, options in {**WAYS, "`maxsim`, rare tokens count more": {"matching": "maxsim"}}.items():
            ranks = []
            for name in asked:
                said = found[name][0]
                hits = index.search(vectors[said] * (weights[said] if "rare" in way else 1), k=10, **options)
                ranks.append(hits.ids.index(name) + 1 if name in hits.ids else 0)
            share = np.mean([rank > 0 for rank in ranks])
            reciprocal = np.mean([1 / rank if rank else 0 for rank in ranks])
            lines.append(f"| {way} | {share:.0%} | {reciprocal:.2f} |")
            print(lines[-1], flush=True)
    made_by = f"Written by `python benchmarks/manuals.py{' --also PAGES' * bool(args.also)}` on {machine('numpy', 'wordllama')}: {len(found):,} pages of "
    made_by += (
        f"{np.mean([len(text) for _, text in found.values()]):.0f} different tokens, {len(asked)} queries."
    )
    if args.write:
        write_section(args.write, "manuals", "\n".join(["## Manual pages", "", made_by, "", *lines]))


if __name__ == "__main__":
    main()
