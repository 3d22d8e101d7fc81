"""Calls to shards: a deadline for each, a second copy when the first is late, and who is missing."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from time import monotonic

import numpy as np

from setnet.cluster.engine.protocol import Engine
from setnet.errors import (
    ClusterError,
    FencedError,
    MissingShardsError,
    NotAnIndexError,
    SetNetError,
    StorageError,
    WorkerError,
)
from setnet.workers import Limits, Message, failure_in

FIRST_PATIENCE = 0.1  # seconds until a second copy is asked, before any latency is known
LEAST_PATIENCE = 0.002
REMEMBERED = 200  # latest latencies
LATE = 95  # percentile: one call in twenty is asked of two copies
ATTEMPTS = 4  # of a change
CHANGE = 6  # times the deadline of a search that a change may take
LONG = 360  # and what reads or writes all of a shard
# What another process may do better: its disk, its memory and its time are others.
ELSEWHERE = (ClusterError, StorageError, NotAnIndexError, WorkerError, FencedError)


class Latencies:
    """How long calls took lately, for every thread that searches."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Remember how long a call took."""
        with self._lock:
            self._seconds.append(seconds)

    @property
    def patience(self) -> float:
        """Seconds after which a call is late."""
        with self._lock:
            known = list(self._seconds)
        if len(known) < 20:
            return FIRST_PATIENCE
        return max(LEAST_PATIENCE, float(np.percentile(known, LATE)))


@dataclass
class _Asked:
    """A shard that has not answered yet: the copies asked, and when the next one is."""

    call: Message
    copies: int
    tried: int = 0
    next_copy: float = 0.0
    began: dict[Future[Message], float] = field(default_factory=dict)
    reason: str = "no worker serves it"

    @property
    def is_lost(self) -> bool:
        return not self.began and self.tried >= self.copies


class Dispatcher:
    """Asks all shards at once; of two copies of a shard the first good answer counts."""

    def __init__(self, engine: Engine, deadline: float) -> None:
        self.engine, self.deadline = engine, deadline
        self.latencies = Latencies()

    def ask(
        self, calls: Mapping[int, Message], *, partial: bool = False, long: bool = False
    ) -> tuple[dict[int, Message], tuple[int, ...]]:
        """Return the replies of the shards, and with ``partial`` the shards without one.

        ``long`` is for calls that read all of a shard: they may take longer, and are asked of one copy.

        Raises
        ------
        MissingShardsError
            Naming the shards that do not answer within the deadline, unless ``partial``.
        SetNetError
            As a shard reports it, when the call itself is at fault.
        """
        deadline = self.deadline * LONG if long else self.deadline
        end = monotonic() + deadline
        patience = deadline if long else self.latencies.patience
        open_calls = {shard: _Asked(call, self.engine.copies(shard)) for shard, call in calls.items()}
        replies: dict[int, Message] = {}
        lost: dict[int, str] = {}
        while open_calls:
            now = monotonic()
            for shard, one in list(open_calls.items()):
                if now < end and one.tried < one.copies and (not one.began or now >= one.next_copy):
                    self._send(shard, one, end - now, patience)
                elif one.is_lost or now >= end:
                    lost[shard] = one.reason if one.is_lost else f"no answer within {deadline:g} s"
                    del open_calls[shard]
            self._wait(open_calls, end)
            for shard, one in list(open_calls.items()):
                reply = self._taken(one, remember=not long)
                if reply is not None:
                    replies[shard] = reply
                    del open_calls[shard]
        if lost and not partial:
            raise _missing(lost)
        return replies, tuple(sorted(lost))

    def _send(self, shard: int, one: _Asked, seconds: float, patience: float) -> None:
        future = self.engine.ask(shard, one.call, seconds, one.tried)
        one.tried += 1
        one.began[future] = monotonic()
        one.next_copy = monotonic() + patience

    @staticmethod
    def _wait(open_calls: Mapping[int, _Asked], end: float) -> None:
        """Wait until an answer comes, another copy is due, or time is up."""
        futures = [future for one in open_calls.values() for future in one.began]
        due = [one.next_copy for one in open_calls.values() if one.tried < one.copies]
        if futures:
            wait(futures, max(0.0, min([end, *due]) - monotonic()), FIRST_COMPLETED)

    def _taken(self, one: _Asked, *, remember: bool) -> Message | None:
        """Return the first good reply of a shard's copies; forget those that failed."""
        for future in [future for future in one.began if future.done()]:
            began = one.began.pop(future)
            error = future.exception()
            if error is None:
                failure = _failure(future.result())
                if failure is None:
                    if remember:
                        self.latencies.add(monotonic() - began)
                    for other in one.began:
                        other.cancel()
                    return future.result()
                if not isinstance(failure, ELSEWHERE):
                    raise failure
                error = failure
            elif not isinstance(error, (SetNetError, TimeoutError, OSError)):
                raise error
            one.reason = str(error) or "no answer in time"
        return None

    def change(self, shard: int, call: Message, *, long: bool = False) -> Message:
        """Return the reply of a shard's writer to a change, which may be repeated.

        It is asked of another process when the first cannot be reached, is late or was replaced.
        """
        deadline = self.deadline * (LONG if long else CHANGE)
        reason = "no worker is there"
        copies = self.engine.copies(shard)
        for attempt in range(ATTEMPTS if copies else 0):
            try:
                reply = self.engine.ask(shard, call, deadline, attempt % copies).result(deadline)
                failure = _failure(reply)
                if failure is None:
                    return reply
                if not isinstance(failure, (FencedError, ClusterError)):
                    raise failure
                reason = str(failure)
            except (ClusterError, TimeoutError, OSError) as error:
                reason = str(error) or f"no answer within {deadline:g} s"
        raise MissingShardsError(
            f"shard {shard} cannot be written: {reason}. What was acknowledged is stored; repeat the change "
            "when `setnet cluster status` shows workers",
            [shard],
        )


def _failure(reply: Message) -> SetNetError | None:
    return failure_in(reply, Limits())


def _missing(lost: Mapping[int, str]) -> MissingShardsError:
    names = ", ".join(map(str, sorted(lost)))
    reason = lost[min(lost)]
    return MissingShardsError(
        f"no exact answer: shards {names} cannot be asked ({reason}). `setnet cluster status` shows "
        "who is there; partial=True answers from the other shards",
        sorted(lost),
    )
