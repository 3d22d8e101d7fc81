"""The one training loop: steps, learning rate, progress, checkpoints, in one process or several (`torchrun`).

With several processes the numbers are those of one process with the whole batch. Each runs the backbone on
its share of the faces; the elements of all shares are gathered, so that every query meets every set of the
whole batch. Each process computes the whole loss divided by the number of processes, and gradients are
summed: the sum is the gradient of the one loss.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from setnet.errors import InvalidInputError, TrainingError
from setnet.system import usable_cores
from setnet.train.settings import Schedule

SECONDS_BETWEEN_LINES = 5.0
T = TypeVar("T")
logger = logging.getLogger(__name__)


_IN_LINES = ("loss", "validation nDCG@10")


class ProgressLog:
    """Logs a line every few seconds and all values to ``log.jsonl`` in `folder`; nothing when `quiet`."""

    def __init__(self, title: str, first: int, steps: int, folder: Path | None, quiet: bool = False) -> None:
        self.title, self.steps, self.quiet = title, steps, quiet
        self._first, self._started, self._logged = first, time.monotonic(), 0.0
        self._samples = 0
        self._file = None if folder is None or quiet else folder / "log.jsonl"
        if self._file is not None and self._file.is_file():  # steps after a checkpoint are done again
            lines = self._file.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if line.endswith("}\n") and json.loads(line)["step"] <= first]
            self._file.write_text("".join(kept), encoding="utf-8")

    def __enter__(self) -> ProgressLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if kind is KeyboardInterrupt and not self.quiet:
            logger.info("%s: stopped; the same command goes on from a checkpoint", self.title)

    def step(self, samples: int) -> None:
        """Note that a step of so many samples is done."""
        self._samples += samples

    def log(self, step: int, values: dict[str, float]) -> None:
        """Write values of a step to the logs."""
        if self.quiet:
            return
        seconds = time.monotonic() - self._started
        rate = self._samples / max(seconds, 1e-9)
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, **values, "samples per second": rate}) + "\n")
        if seconds - self._logged > SECONDS_BETWEEN_LINES or step == self.steps:
            self._logged = seconds
            left = seconds / max(step - self._first, 1) * (self.steps - step)
            found = [f"{name} {value:.4g}" for name, value in values.items() if name in _IN_LINES]
            progress = f"{self.title} {step}/{self.steps}  {', '.join(found)}"
            logger.info("%s  %.0f samples/s  %.0f s left", progress, rate, left)


KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """A stored step: where it is, and its JSON state."""

    folder: Path
    step: int
    state: dict[str, Any]


def save_checkpoint(
    root: Path,
    step: int,
    module: nn.Module,
    optimiser: torch.optim.SGD,
    settings: dict[str, Any],
    score: float | None = None,
) -> Path:
    """Write step `step` under `root`; drop all but the newest two and the one with the best score.

    Weights that are not finite are refused.
    """
    tensors = {f"model.{k}": v for k, v in module.state_dict().items()}
    bad = [k for k, v in tensors.items() if v.is_floating_point() and not bool(torch.isfinite(v).all())]
    if bad:
        raise TrainingError(f"step {step}: {bad[0]} holds NaN or infinity; not saved")
    for name, parameter in module.named_parameters():
        momentum = optimiser.state.get(parameter, {}).get("momentum_buffer")
        if momentum is not None:
            tensors[f"momentum.{name}"] = momentum
    tensors["rng.torch"] = torch.get_rng_state()
    plain = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
    folder, fresh = root / f"step-{step:08d}", root / f".step-{step:08d}.{os.getpid()}"
    fresh.mkdir(parents=True, exist_ok=True)
    save_file(plain, fresh / "tensors.safetensors")
    state = {"step": step, "settings": settings, "score": score}
    (fresh / "state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")
    if folder.exists():
        shutil.rmtree(folder)
    fresh.rename(folder)
    best = best_checkpoint(root)
    for old in _folders(root)[:-KEPT]:
        if best is None or old != best.folder:
            shutil.rmtree(old)
    return folder


def latest_checkpoint(root: Path) -> Checkpoint | None:
    """Return the newest stored step under `root`, or None."""
    folders = _folders(root)
    return _read_checkpoint(folders[-1]) if folders else None


def best_checkpoint(root: Path) -> Checkpoint | None:
    """Return the stored step with the highest score on validation people, the first of equals, or None."""
    scored = [one for one in map(_read_checkpoint, _folders(root)) if one.state["score"] is not None]
    return max(scored, key=lambda one: float(one.state["score"]), default=None)


def _read_checkpoint(folder: Path) -> Checkpoint:
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        return Checkpoint(folder, int(state["step"]), {"score": None} | state)
    except (OSError, ValueError, KeyError) as error:
        raise TrainingError(
            f"{folder}: damaged checkpoint ({error}); remove this folder to use the one before"
        ) from error


def load_checkpoint(checkpoint: Checkpoint, module: nn.Module, optimiser: torch.optim.SGD) -> None:
    """Put a stored step into a module and its optimiser, and restore torch's random state."""
    file = checkpoint.folder / "tensors.safetensors"
    try:
        tensors = load_file(file)
    except (OSError, SafetensorError) as error:
        raise TrainingError(
            f"{file}: damaged checkpoint ({error}); remove its folder to use the one before"
        ) from error
    try:
        module.load_state_dict(_part(tensors, "model."))
    except RuntimeError as error:
        raise TrainingError(f"{file}: made for another network; train into a new folder") from error
    momenta = _part(tensors, "momentum.")
    optimiser.state.clear()
    for name, parameter in module.named_parameters():
        if name in momenta:
            optimiser.state[parameter]["momentum_buffer"] = momenta[name].to(parameter.device)
    torch.set_rng_state(tensors["rng.torch"])


def _folders(root: Path) -> list[Path]:
    return sorted(root.glob("step-*")) if root.is_dir() else []


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


EXPONENT_RATE = 10.0  # times the rate of the weights: at that of the weights exponents would stay at 3


@dataclass(frozen=True)
class TrainReport:
    """How a run ended: steps done in all, where it resumed, and the losses logged since."""

    steps: int
    resumed_at: int
    losses: tuple[tuple[int, float], ...]

    @property
    def last_loss(self) -> float:
        """The last logged loss (NaN when nothing was left to do)."""
        return self.losses[-1][1] if self.losses else math.nan


def make_deterministic(seed: int) -> None:
    """Make torch's arithmetic repeatable and seed it."""
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False


def learning_rate(schedule: Schedule, step: int) -> float:
    """Return the rate at a step: divided by 10 at each drop.

    >>> [round(learning_rate(Schedule(steps=100, rate=1.0, drops=(0.5, 0.9)), s), 3) for s in (0, 49, 50, 90)]
    [1.0, 1.0, 0.1, 0.01]
    """
    drops = sum(step >= share * schedule.steps for share in schedule.drops)
    return float(schedule.rate * 0.1**drops)


def make_optimiser(module: nn.Module, schedule: Schedule) -> torch.optim.SGD:
    """Return SGD over the trainable parameters; vectors and scalars (norms, biases, w, b, p) do not decay.

    Exponents of a generalised mean have a rate of their own. Of D exponents each has about a D-th of a single
    one's gradient; at the root of D times its rate, all together take a step of the same length.
    """
    trainable = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
    exponents = [p for name, p in trainable if name.endswith("aggregator.p")]
    weights = [p for _, p in trainable if p.ndim > 1]
    others = [p for name, p in trainable if p.ndim <= 1 and not name.endswith("aggregator.p")]
    times = EXPONENT_RATE * math.sqrt(sum(p.numel() for p in exponents))
    groups = [
        {"params": weights, "weight_decay": schedule.weight_decay, "times": 1.0},
        {"params": others, "weight_decay": 0.0, "times": 1.0},
        {"params": exponents, "weight_decay": 0.0, "times": times},
    ]
    return torch.optim.SGD([g for g in groups if g["params"]], lr=schedule.rate, momentum=schedule.momentum)


class _Steps(Dataset[Any]):
    """The batches of steps; an error comes back as a value, so that the caller raises it as it was."""

    def __init__(self, load: Callable[[int], Any]) -> None:
        self._load = load

    def __getitem__(self, step: int) -> Any:
        try:
            return self._load(step)
        except Exception as error:
            return error


def _start_worker(number: int) -> None:
    import cv2

    cv2.setNumThreads(0)  # a worker is one thread, as torch makes it


class BatchLoader:
    """Calls `load` for the steps ahead in worker processes; without workers when a batch is asked for.

    A batch is a function of its step alone, so that workers change no number.
    """

    def __init__(self, load: Callable[[int], T], workers: int = 0, device: str = "cpu") -> None:
        self._load, self._workers, self._pin = load, workers, device.startswith("cuda")
        self._ahead: Iterator[Any] = iter(())
        self._next = -1

    def __call__(self, step: int) -> Any:
        """Return the batch of a step."""
        if not self._workers:
            return self._load(step)
        if step != self._next:
            self._ahead = iter(
                DataLoader(
                    _Steps(self._load),
                    batch_size=None,
                    sampler=range(step, sys.maxsize),
                    num_workers=self._workers,
                    worker_init_fn=_start_worker,
                    pin_memory=self._pin,
                    generator=torch.Generator(),  # the global one is part of a checkpoint
                )
            )
        batch, self._next = next(self._ahead), step + 1
        if isinstance(batch, Exception):
            raise batch
        return batch


def mixed_precision(schedule: Schedule, device: str) -> AbstractContextManager[Any]:
    """Return the context for the faces' way through the network: in bfloat16 where the schedule says so."""
    kind = torch.device(device).type
    return torch.autocast(kind, torch.bfloat16, enabled=schedule.precision == "bfloat16")


def train_loop(
    title: str,
    module: nn.Module,
    step_loss: Callable[[int], Tensor],
    schedule: Schedule,
    *,
    folder: Path | None = None,
    settings: dict[str, Any] | None = None,
    samples: int = 0,
    group: ProcessGroup | None = None,
    stop_at: int | None = None,
    validate: Callable[[], float] | None = None,
) -> TrainReport:
    """Run the steps that are left, from the newest checkpoint of `folder` when it holds one.

    Parameters
    ----------
    step_loss
        The loss of a step, a pure function of the step number and the weights: so resuming is exact.
        With several processes it returns this process's share (the shares add up to the loss).
    folder
        Where checkpoints and logs are kept; without it nothing is kept and no progress is shown.
    settings
        Stored with each checkpoint; a run is not resumed with others.
    samples
        Faces per step, for the progress line.
    stop_at
        End after this step, with a checkpoint, instead of after the schedule's last.
    validate
        The score of the weights as they are, of each checkpoint; that of the best one is kept, and the module
        ends with its weights.
    """
    group = group or ProcessGroup()
    optimiser = make_optimiser(module, schedule)
    checkpoints = None if folder is None else folder / "checkpoints"
    stored = settings or {}
    first = _resume(checkpoints, module, optimiser, stored)
    group.broadcast(module)
    last = schedule.steps if stop_at is None else stop_at

    def save(step: int) -> dict[str, float]:
        if checkpoints is None or group.rank > 0:
            return {}
        score = validate() if validate and step else None
        save_checkpoint(checkpoints, step, module, optimiser, stored, score)
        return {} if score is None else {"validation nDCG@10": score}

    if first == 0 and schedule.steps:
        save(0)  # so that a diverging first step leaves a checkpoint
    losses: list[tuple[int, float]] = []
    quiet = folder is None or group.rank > 0
    with ProgressLog(title, first, schedule.steps, folder, quiet) as progress:
        for step in range(first, last):
            rate = learning_rate(schedule, step)
            for parameters in optimiser.param_groups:
                parameters["lr"] = rate * parameters["times"]
            optimiser.zero_grad(set_to_none=True)
            share = step_loss(step)
            share.backward()  # type: ignore[no-untyped-call]
            group.sum_gradients(module)
            loss, norm = float(group.sum(share.detach())), _clip_gradients(module, schedule.clip)
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise TrainingError(_divergence_message(title, step, loss, checkpoints, rate))
            optimiser.step()
            done = step + 1
            progress.step(samples)
            values = save(done) if done % schedule.save_every == 0 or done == last else {}
            if done % schedule.log_every == 0 or done == last:
                losses.append((done, loss))
                values |= {"loss": loss, "rate": rate, "gradient norm": norm}
            if values:
                progress.log(done, values)
    if checkpoints is not None and validate and stop_at is None:
        best = best_checkpoint(checkpoints) if group.rank == 0 else None
        if best is not None:
            load_checkpoint(best, module, optimiser)
            logger.info("%s: step %s is best, nDCG@10 %.1f", title, best.step, best.state["score"])
        group.broadcast(module)
    return TrainReport(max(first, last), first, tuple(losses))


def _resume(
    checkpoints: Path | None, module: nn.Module, optimiser: torch.optim.SGD, settings: dict[str, Any]
) -> int:
    stored = latest_checkpoint(checkpoints) if checkpoints else None
    if stored is None:
        return 0
    if stored.state["settings"] != json.loads(json.dumps(settings)):  # tuples were stored as lists
        raise TrainingError(
            f"{checkpoints} holds a run with other settings or data: train into another folder, or remove "
            "this one"
        )
    load_checkpoint(stored, module, optimiser)
    return stored.step


def _clip_gradients(module: nn.Module, clip: float) -> float:
    gradients = [p for p in module.parameters() if p.grad is not None]
    return float(nn.utils.clip_grad_norm_(gradients, clip if clip > 0 else math.inf))


def _divergence_message(title: str, step: int, loss: float, checkpoints: Path | None, rate: float) -> str:
    stored = latest_checkpoint(checkpoints) if checkpoints else None
    kept = f"the last good checkpoint is {stored.folder}" if stored else "no checkpoint was written"
    return (
        f"{title}: loss {loss} or its gradient is not finite at step {step + 1}; {kept}. "
        f"Lower the rate (now {rate:g}), set a clip, or look for broken input"
    )


@dataclass(frozen=True)
class ProcessGroup:
    """How many processes train together and which one this is."""

    rank: int = 0
    number: int = 1

    def after_first(self, make: Callable[[], T]) -> T:
        """Return what `make` returns; the first process calls it first, so that others find what it kept."""
        if self.number == 1:
            return make()
        made = make() if self.rank == 0 else None
        self.wait()
        return make() if made is None else made

    def wait(self) -> None:
        """Return when all processes are here."""
        if self.number > 1:
            dist.barrier()

    def share(self, total: int) -> slice:
        """Return the rows of a batch of `total` that are this process's."""
        return slice(self.rank * total // self.number, (self.rank + 1) * total // self.number)

    def gather(self, rows: Tensor, total: int) -> Tensor:
        """Return the rows of all processes in order, differentiably."""
        if self.number == 1:
            return rows
        whole = rows.new_zeros((total, *rows.shape[1:]))
        whole[self.share(total)] = rows  # shares may differ by one row, so no plain all_gather
        out: Tensor = _Sum.apply(whole)  # type: ignore[no-untyped-call]
        return out

    def broadcast(self, module: nn.Module) -> None:
        """Give all processes the weights and statistics of the first: k-means and PCA may differ in rounding.

        It returns when all processes are here.
        """
        if self.number > 1:
            for tensor in (*module.parameters(), *module.buffers()):
                dist.broadcast(tensor.data, 0)

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum over processes, for reporting."""
        if self.number > 1:
            value = value.detach().clone()
            dist.all_reduce(value)
        return value

    def sum_gradients(self, module: nn.Module) -> None:
        """Add up the gradients of all processes, in place."""
        if self.number == 1:
            return
        for parameter in module.parameters():
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                dist.all_reduce(parameter.grad)


def default_workers() -> int:
    """Return how many processes load photos for one that trains, unless somebody says so."""
    return min(8, max(1, usable_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))


def use_device(device: str, threads: int = 0) -> None:
    """Refuse a device that torch does not have here, and set its number of threads unless 0."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise InvalidInputError(f"--device {device}: valid are cpu, cuda and cuda:NUMBER")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InvalidInputError("--device cuda: torch sees no GPU here; use --device cpu")
    if threads:
        torch.set_num_threads(threads)


def own_device(device: str) -> str:
    """Return the device of this process: with ``cuda`` and several processes, each has a GPU of its own."""
    return f"cuda:{os.environ['LOCAL_RANK']}" if device == "cuda" and "LOCAL_RANK" in os.environ else device


_PATIENCE = timedelta(days=7)  # for the first process, which may look for the faces in millions of photos


@contextmanager
def process_group(device: str = "cpu") -> Iterator[ProcessGroup]:
    """Join the processes that `torchrun` started (gloo on CPU, nccl on GPU), or be the only one."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield ProcessGroup()
        return
    backend = "nccl" if device.startswith("cuda") else "gloo"
    dist.init_process_group(backend, timeout=_PATIENCE)
    try:
        yield ProcessGroup(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


class _Sum(torch.autograd.Function):
    """The sum over processes, of values and of gradients."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        out = value.clone()
        dist.all_reduce(out)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        out = gradients[0].contiguous().clone()
        dist.all_reduce(out)
        return out


class _SynchronisedNorm(nn.BatchNorm2d):
    """Batch norm over the faces of all processes (torch's own runs on GPUs only)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (torch's name)
        if not self.training:
            return super().forward(input)
        given, input = input.dtype, input.to(self.weight.dtype)  # noqa: A001
        rows = input.new_tensor([input.numel() / input.shape[1]])
        sums = torch.cat([input.sum((0, 2, 3)), rows])
        total: Tensor = _Sum.apply(sums)  # type: ignore[no-untyped-call]
        mean = total[:-1] / total[-1]
        centred = input - mean[None, :, None, None]
        spread: Tensor = _Sum.apply((centred**2).sum((0, 2, 3)))  # type: ignore[no-untyped-call]
        variance = spread / total[-1]
        with torch.no_grad():
            assert self.running_mean is not None
            assert self.running_var is not None
            assert self.num_batches_tracked is not None
            momentum = self.momentum if self.momentum is not None else 0.1
            self.num_batches_tracked += 1
            self.running_mean.lerp_(mean, momentum)
            self.running_var.lerp_(variance * (total[-1] / (total[-1] - 1)), momentum)
        scale = self.weight * torch.rsqrt(variance + self.eps)
        return (centred * scale[None, :, None, None] + self.bias[None, :, None, None]).to(given)


def synchronise_norms(module: nn.Module, group: ProcessGroup) -> None:
    """Make all 2-D batch norms of `module` use the statistics of the whole batch."""
    if group.number > 1:
        for part in module.modules():
            if type(part) is nn.BatchNorm2d:
                part.__class__ = _SynchronisedNorm
