"""Writes the people of a library to a file that another library can read."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from setnet.errors import InvalidInputError
from setnet.library.people.exchange.exchange_format import (
    ExampleRecord,
    PeopleFile,
    PersonRecord,
    VerdictRecord,
)
from setnet.library.people.people import People
from setnet.library.people.person import Person
from setnet.library.store.paths import shown


@dataclass(frozen=True, slots=True)
class PeopleExport:
    """How many people, examples and verdicts were written."""

    people: int
    examples: int
    verdicts: int

    def to_dict(self) -> dict[str, int]:
        """Return the numbers as values that JSON can hold."""
        return asdict(self)


def exported(people: People, model: str | None, dim: int) -> PeopleFile:
    """Return all people as a file; without the `model` that made them descriptors are left out."""
    records = tuple(_record(people, person, model is not None) for person in people)
    return PeopleFile(model, None if model is None else dim, records)


def write_people(file: PeopleFile, path: Path) -> PeopleExport:
    """Write a file whole or not at all, for its owner alone."""
    if not path.parent.is_dir():
        raise InvalidInputError(f"no folder {shown(path.parent)} for {shown(path.name)}: make it first")
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(file.to_bytes())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return PeopleExport(
        len(file.people),
        sum(len(person.examples) for person in file.people),
        sum(len(person.verdicts) for person in file.people),
    )


def _record(people: People, person: Person, has_descriptors: bool) -> PersonRecord:
    examples = tuple(
        ExampleRecord(
            example.descriptor if has_descriptors else None,
            example.origin,
            example.source,
            example.content,
            example.box,
            example.picture,
            example.added or 0.0,
            example.number == person.cover,
        )
        for example in people.examples(person)
    )
    verdicts = {
        verdict.id: VerdictRecord(
            verdict.says,
            verdict.content,
            verdict.box,
            verdict.descriptor if has_descriptors else None,
            verdict.added,
        )
        for verdict in people.verdicts(person)
    }
    return PersonRecord(
        person.id,
        person.name,
        person.aliases,
        person.note,
        person.added,
        examples,
        tuple(verdicts.values()),
    )
