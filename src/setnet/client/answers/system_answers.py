"""Answers about the server, its library and its index runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from setnet.client.answers.base_answer import Answer


class HealthAnswer(Answer):
    """Whether requests are accepted."""

    status: Literal["ok", "stopping"]


class ProgressAnswer(Answer):
    """An index run under way: `done` of `total` files, unchanged ones not counted."""

    stage: str
    done: int
    total: int
    unchanged: int
    faces: int
    failed: int
    seconds: float
    rate: Annotated[float, Field(description="Photos per second")]
    seconds_left: float | None


class FailureAnswer(Answer):
    """A file that could not be read, and why."""

    photo: str
    reason: str


class FolderFailureAnswer(Answer):
    """A folder that could not be read, and why."""

    folder: str
    reason: str


class FailuresAnswer(Answer):
    """Files that could not be read."""

    failures: list[FailureAnswer]
    total: int


class ReportAnswer(Answer):
    """What an index run did; long lists are cut, their counts are whole."""

    scanned: int
    unchanged: int
    added: int
    changed: int
    moved: int
    copied: int
    removed: int
    faces: int
    vanished: list[str]
    failed: list[FailureAnswer]
    unreadable: list[FolderFailureAnswer]
    interrupted: bool
    seconds: float
    scan_seconds: float
    detect_seconds: float
    describe_seconds: float
    workers: int
    vanished_count: int
    failed_count: int
    unreadable_count: int
    partial: list[FailureAnswer]
    skipped: list[FailureAnswer]
    partial_count: int
    skipped_count: int
    prune_refused: bool


class GroupingAnswer(Answer):
    """What grouping the faces by person did."""

    faces: int
    groups: int
    new_groups: int
    moved: int
    anew: bool
    interrupted: bool
    seconds: float


class IndexAnswer(Answer):
    """The latest run, which indexed or only grouped."""

    state: Literal["idle", "running", "stopping", "stopped", "done", "failed"]
    folders: list[str]
    started: Annotated[float | None, Field(description="Seconds since 1970")]
    progress: ProgressAnswer | None
    report: ReportAnswer | None
    grouping: GroupingAnswer | None
    error: str | None


class LimitsAnswer(Answer):
    """What the server takes at most."""

    upload_bytes: int
    pixels: int
    people: int


class StatusAnswer(Answer):
    """What the library holds, its settings, and the limits of the server."""

    version: str
    library: str
    photos: int
    without_faces: int
    faces: int
    timed: int
    failed: int
    unfinished: int
    people: int
    folders: list[str]
    settings: dict[str, Any]
    dim: int
    threshold: float
    modes: list[str]
    index: IndexAnswer
    limits: LimitsAnswer
    token: Annotated[bool, Field(description="Whether requests need one")]


class ForgottenAnswer(Answer):
    """How many photos' data was deleted."""

    photos: int


class FolderAnswer(Answer):
    """A folder of the server's machine."""

    path: str
    name: str


class FoldersAnswer(Answer):
    """The folders in a folder, and how many photos lie in it directly."""

    path: Annotated[str | None, Field(description="Null in the list of places to begin")]
    parent: str | None
    folders: list[FolderAnswer]
    photos: int
    has_more: Annotated[bool, Field(description="Not all of it is listed or counted")]
