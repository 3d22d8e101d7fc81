"""Processes that crash, hang, fill the memory or lie: each is one clear error, and the pool goes on."""

from __future__ import annotations

import os
import pickle
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.errors import ModelError, PhotoError, WorkerError
from setnet.sandbox import Limits, Message, Service, WorkerPool
from setnet.sandbox.messages import as_bytes, send
from setnet.sandbox.process import WorkerProcess

OpenPool = Callable[..., WorkerPool]
Call = Callable[..., Message]
PidOf = Callable[[WorkerPool], int]


def test_a_process_serves_many_tasks(open_pool: OpenPool, call: Call, pid_of: PidOf) -> None:
    pool = open_pool()
    first = pid_of(pool)
    assert first != os.getpid()
    assert call(pool, "echo", text="ä\0", numbers=[1, 2.5, None]).fields == {
        "text": "ä\0",
        "numbers": [1, 2.5, None],
    }
    assert pid_of(pool) == first


def test_without_processes_tasks_run_here(open_pool: OpenPool, call: Call, pid_of: PidOf) -> None:
    pool = open_pool(workers=0)
    assert pid_of(pool) == os.getpid()
    with pytest.raises(PhotoError, match="no photo"):
        call(pool, "raise", kind="ours")


@pytest.mark.parametrize(
    ("task", "fields", "message"),
    [
        ("kill", {"signal": signal.SIGSEGV}, r"died \(signal 11\)"),
        ("kill", {"signal": signal.SIGKILL}, r"died \(signal 9\)"),
        ("exit", {"status": 0}, r"died \(exit status 0\)"),
        ("exit", {"status": 3}, r"died \(exit status 3\)"),
        ("hang", {}, "took longer than 0.3 s"),
    ],
)
def test_a_process_that_dies_or_hangs_is_replaced(
    open_pool: OpenPool, call: Call, pid_of: PidOf, task: str, fields: dict[str, int], message: str
) -> None:
    pool = open_pool()
    before = pid_of(pool)
    if task == "hang":
        _shorten(pool)
    with pytest.raises(WorkerError, match=message):
        call(pool, task, **fields)
    assert pid_of(pool) != before
    assert not _exists(before)


def test_processes_that_die_of_their_first_task_do_not_stop_the_others(
    open_pool: OpenPool, call: Call, pid_of: PidOf
) -> None:
    pool = open_pool()
    for _ in range(6):
        with pytest.raises(WorkerError, match="signal 11"):
            call(pool, "kill", signal=signal.SIGSEGV)
    assert pid_of(pool)


def test_a_process_that_died_while_idle_is_replaced_unnoticed(open_pool: OpenPool, pid_of: PidOf) -> None:
    pool = open_pool()
    before = pid_of(pool)
    (process,) = pool._calls
    process.kill()
    process._process.wait()
    assert pid_of(pool) != before


def test_memory_is_limited_and_the_process_lives_on(open_pool: OpenPool, call: Call, pid_of: PidOf) -> None:
    pool = open_pool(limits=Limits(memory=400 << 20))
    before = pid_of(pool)
    assert call(pool, "allocate", bytes=100 << 20).fields == {"bytes": 100 << 20}
    with pytest.raises(WorkerError, match=r"more memory than one task may use \(0.4 GB\)"):
        call(pool, "allocate", bytes=500 << 20)
    assert pid_of(pool) == before


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("ours", PhotoError, "^no photo$"),
        ("memory", WorkerError, "more memory"),
        ("hidden", WorkerError, "more memory"),
        ("other", WorkerError, r"^cannot be processed \(LookupError\)$"),
    ],
)
def test_what_a_task_raises_is_raised_by_its_caller(
    open_pool: OpenPool, call: Call, kind: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(open_pool(workers=0), "raise", kind=kind)


def test_a_task_that_is_not_listed_is_not_run(open_pool: OpenPool, call: Call) -> None:
    with pytest.raises(WorkerError, match="KeyError"):
        call(open_pool(), "os.system")


@pytest.mark.parametrize(
    "reply",
    [
        {"name": "ready", "fields": {}},
        {"name": "failed", "fields": {}},
        {"name": "failed", "fields": {"kind": 1, "text": "x"}},
    ],
)
def test_replies_that_are_neither_results_nor_errors_end_the_process(
    open_pool: OpenPool, call: Call, pid_of: PidOf, reply: dict[str, Any]
) -> None:
    pool = open_pool()
    before = pid_of(pool)
    with pytest.raises(WorkerError, match="invalid reply"):
        call(pool, "reply", **reply)
    assert pid_of(pool) != before


def test_only_classes_of_our_errors_can_be_named(open_pool: OpenPool, call: Call) -> None:
    pool = open_pool()
    for kind in ("choice_error", "annotations", "__builtins__", "SystemExit"):
        with pytest.raises(WorkerError, match="cannot be processed"):
            call(pool, "reply", name="failed", fields={"kind": kind, "text": ""})


def test_a_reply_that_the_caller_refuses_ends_the_process(open_pool: OpenPool, pid_of: PidOf) -> None:
    pool = open_pool()
    before = pid_of(pool)
    with pytest.raises(WorkerError, match="width is not a whole number"):
        pool.call(Message("echo", {"width": "1"}), lambda reply: reply.integer("width", 1, 9))
    assert pid_of(pool) != before


class _Exploit:
    """An object whose unpickling makes a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._file,)


def test_pickles_are_not_opened(open_pool: OpenPool, pid_of: PidOf, tmp_path: Path) -> None:
    pool = open_pool()
    exploit = pickle.dumps(_Exploit(tmp_path / "taken over"))
    pickle.loads(exploit)
    (tmp_path / "taken over").unlink()
    for sent in (exploit, len(exploit).to_bytes(4, "little") + exploit):
        with pytest.raises(WorkerError, match="invalid reply"):
            pool.call(Message("write", arrays={"bytes": as_bytes(sent)}), lambda reply: reply)
    assert pid_of(pool)
    assert not (tmp_path / "taken over").exists()


def test_a_reply_that_never_ends_is_given_up(open_pool: OpenPool, pid_of: PidOf) -> None:
    pool = open_pool()
    pool.warm_up()
    _shorten(pool)
    with pytest.raises(WorkerError, match="took longer"):
        pool.call(Message("write", arrays={"bytes": as_bytes(b"\x09\0\0\0{")}), lambda reply: reply)
    assert pid_of(pool)


def test_files_reach_a_process_and_are_closed_there(open_pool: OpenPool, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"what it holds")
    pool = open_pool()
    handles = set()
    for _ in range(3):
        with open(tmp_path / "file", "rb") as file:
            reply = pool.call(Message("read", files=(file.fileno(),)), lambda reply: reply)
        assert reply.data("data") == b"what it holds"
        handles.add(reply.integer("handles", 1, 1000))
    assert len(handles) == 1


def test_files_from_a_process_are_not_taken(open_pool: OpenPool, call: Call, pid_of: PidOf) -> None:
    pool = open_pool()
    assert pid_of(pool)
    before = os.listdir("/proc/self/fd")
    assert call(pool, "send handle").fields == {}
    assert os.listdir("/proc/self/fd") == before


def test_processes_that_cannot_start_are_an_error_that_says_so(open_pool: OpenPool, pid_of: PidOf) -> None:
    with pytest.raises(ModelError, match="as soon as they start"):
        pid_of(open_pool(dies=True))


def test_closing_ends_tasks_under_way(open_pool: OpenPool, call: Call, pid_of: PidOf) -> None:
    pool = open_pool(workers=2)
    assert pid_of(pool)
    failures: list[str] = []

    def hang() -> None:
        try:
            call(pool, "hang")
        except WorkerError as error:
            failures.append(str(error))

    threads = [threading.Thread(target=hang) for _ in range(3)]  # the third waits for a process
    for thread in threads:
        thread.start()
    pool.close()
    for thread in threads:
        thread.join(30)
    assert len(failures) == 3
    assert not pool._calls
    with pytest.raises(WorkerError, match="closed"):
        pid_of(pool)


def test_a_process_that_hangs_ends_without_its_parent() -> None:
    process = WorkerProcess(Service("tests.sandbox.hostile_service"), Limits(seconds=0.1))
    try:
        process.wait_until_ready()
        send(process._socket, Message("hang"))
        process._socket.close()
        assert process._process.wait(60) == -signal.SIGALRM
    finally:
        process.stop()


@pytest.mark.parametrize(
    ("task", "message"), [("exit", r"exit status 3"), ("hang", "took longer"), ("reply", "invalid reply")]
)
def test_tasks_that_were_sent_ahead_of_a_loss_run_elsewhere(
    open_pool: OpenPool, call: Call, task: str, message: str
) -> None:
    pool = open_pool(ahead=3, limits=Limits(seconds=2.0) if task == "hang" else None)
    outcomes: list[object] = []

    def run(number: int) -> None:
        try:
            if number == 0:
                call(pool, task, status=3, name="nonsense", fields={})
            outcomes.append(call(pool, "echo", number=number).fields["number"])
        except WorkerError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (error,) = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert re.search(message, error)
    assert sorted(outcome for outcome in outcomes if isinstance(outcome, int)) == [1, 2, 3]


@pytest.mark.parametrize("ahead", [0, 1])
def test_many_threads_share_the_processes(open_pool: OpenPool, ahead: int) -> None:
    pool = open_pool(workers=2, ahead=ahead)
    found: list[bool] = []

    def echo(number: int) -> None:
        for turn in range(20):
            array = np.full((3, turn), number, np.int64)
            reply = pool.call(Message("echo", arrays={"array": array}), lambda reply: reply)
            found.append(np.array_equal(reply.array("array", np.int64, 3, turn), array))

    threads = [threading.Thread(target=echo, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 120
    assert len(pool._calls) <= 2


def _shorten(pool: WorkerPool) -> None:
    """Give the processes there are little time; those to come have time, however slow the machine is."""
    for process in pool._calls:
        process._limits = Limits(seconds=0.3)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
