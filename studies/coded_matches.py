"""What matches of single faces lose where the faces of a photo share a fixed number of bytes.

    setnet describe LFW/images --detector yunet --out lfw.npz
    python -m studies.coded_matches lfw.npz --page FILE.md

Pairs of faces of LFW's test half, at the threshold of the model: one face as floats (an example, a query), the
other as it is kept in a photo of so many faces; and, as groups are made, both as they are kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from setnet.cli.options import argument, make_app, option
from setnet.engine.budget import element_bytes, element_codec
from setnet.evaluate.people import LabelledPeople, half_of, read_people
from setnet.evaluate.report import replace_block
from setnet.evaluate.tables import Table
from setnet.faces import FaceSettings, model_entry

BUDGETS, FACES = (64, 128, 256), (1, 2, 3, 5, 10)
GENUINE, OTHERS = 60_000, 3_000_000  # pairs
AT_ONCE = 200_000
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
app = make_app()


@app.command()
def coded_matches(
    data: Annotated[Path, argument("LFW.npz", "Descriptor file of LFW.")],
    page: Annotated[Path | None, option("Put the table into this page.", metavar="FILE.md")] = None,
) -> None:
    """Compare faces kept in a share of 64, 128 and 256 bytes with faces kept as floats."""
    people = read_people(data)
    test = half_of(people.labels, "test")
    table = measure(LabelledPeople(people.descriptors[test], people.labels[test]))
    typer.echo(table.markdown())
    if page is not None:
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        made_by = "Made by `python -m studies.coded_matches lfw.npz`, LFW's test half."
        page.write_text(
            replace_block(text, "coded matches", f"{table.markdown()}\n{made_by}"), encoding="utf-8"
        )


def measure(people: LabelledPeople) -> Table:
    """Return which genuine pairs reach the threshold, and which others do."""
    bar = model_entry(FaceSettings().descriptor, "descriptor").calibration["threshold"]
    rows, rng = people.descriptors, np.random.default_rng(0)
    groups = people.groups(2)
    who = rng.integers(len(groups), size=GENUINE)
    same = np.array([rng.choice(groups[person], 2, replace=False) for person in who.tolist()]).T
    other = rng.integers(len(rows), size=(2, OTHERS))
    other = other[:, people.labels[other[0]] != people.labels[other[1]]]

    def cells(name: str, kept: Floats) -> tuple[str, ...]:
        reached = [
            np.concatenate([_dots(one, kept, part) >= bar for part in _parts(pairs)]).mean()
            for one, pairs in ((rows, same), (rows, other), (kept, same))
        ]
        return name, f"{100 * reached[0]:.1f}", f"{1e4 * reached[1]:.2f}", f"{100 * reached[2]:.1f}"

    found = [cells("floats", rows)]
    for budget in BUDGETS:
        for faces in FACES:
            codec = element_codec(element_bytes(budget, faces, people.dim), people.dim)
            found.append(cells(f"{budget} bytes, {faces} faces", codec.decode(codec.encode(rows))))
    columns = ("kept as", "genuine pairs, %", "others, of 10,000", "genuine pairs of two such, %")
    return Table("Pairs of faces at the threshold of a match", columns, tuple(found))


def _parts(pairs: Ints) -> list[Ints]:
    return [pairs[:, at : at + AT_ONCE] for at in range(0, pairs.shape[1], AT_ONCE)]


def _dots(first: Floats, second: Floats, pairs: Ints) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", first[pairs[0]], second[pairs[1]]))


if __name__ == "__main__":
    from setnet.cli.app import run

    run(app, "python -m studies.coded_matches")
