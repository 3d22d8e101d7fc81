"""Checkpoints: safetensors and JSON, each step a folder that appears whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from setnet.errors import TrainingError

KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """A stored step: where it is, and its JSON state."""

    folder: Path
    step: int
    state: dict[str, Any]


def save_checkpoint(
    root: Path, step: int, module: nn.Module, optimiser: torch.optim.SGD, settings: dict[str, Any]
) -> Path:
    """Write step `step` under `root` and drop all but the newest two; refuses weights that are not finite."""
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
    state = {"step": step, "settings": settings}
    (fresh / "state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")
    if folder.exists():
        shutil.rmtree(folder)
    fresh.rename(folder)
    for old in _folders(root)[:-KEPT]:
        shutil.rmtree(old)
    return folder


def latest_checkpoint(root: Path) -> Checkpoint | None:
    """Return the newest stored step under `root`, or None."""
    folders = _folders(root)
    if not folders:
        return None
    try:
        state = json.loads((folders[-1] / "state.json").read_text(encoding="utf-8"))
        return Checkpoint(folders[-1], int(state["step"]), state)
    except (OSError, ValueError, KeyError) as error:
        raise TrainingError(
            f"{folders[-1]}: damaged checkpoint ({error}); remove this folder to use the one before"
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
