"""Turns face crops into descriptors: unit vectors that are similar for the same person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setnet.errors import ModelError
from setnet.faces.align import box_crop, five_point_crop, five_point_scale
from setnet.faces.detector import Detections
from setnet.faces.pixels import Pixels
from setnet.faces.registry import ModelEntry

Floats = npt.NDArray[np.float32]
_BATCH = 8  # more gains nothing on a CPU and costs memory


class Descriptor:
    """Any descriptor model of the registry, run by onnxruntime in batches; safe to call from threads."""

    def __init__(self, entry: ModelEntry, session: Any) -> None:
        if entry.dim is None:
            raise ModelError(f"model {entry.name!r}: its entry does not say 'dim'")
        if entry.metric is not None and len(entry.metric.offset) != entry.dim:
            raise ModelError(
                f"model {entry.name!r}: its metric has {len(entry.metric.offset)} numbers, its descriptors "
                f"{entry.dim}"
            )
        self.name, self.dim = entry.name, entry.dim
        self._entry, self._session = entry, session
        inputs, outputs = session.get_inputs(), [output.name for output in session.get_outputs()]
        if len(inputs) != 1:
            raise ModelError(f"model {self.name!r} takes {len(inputs)} inputs; a descriptor model takes one")
        if entry.output is not None and entry.output not in outputs:
            raise ModelError(f"model {self.name!r} has no output {entry.output!r}; it has {outputs}")
        self._input, self._output = inputs[0].name, entry.output or outputs[0]
        self._batch = _BATCH

    @property
    def size(self) -> int:
        """Pixels of a side of the square that the model takes."""
        return self._entry.size

    def crops(self, pixels: Pixels, found: Detections) -> list[Pixels]:
        """Return each face cut out the way this model was trained to see it: by the entry's alignment."""
        size = self._entry.size
        if self._entry.align == "box":
            return [box_crop(pixels, tuple(box), size, self._entry.extend) for box in found.boxes.tolist()]
        return [five_point_crop(pixels, points, size) for points in found.landmarks]

    def enlargement(self, found: Detections) -> npt.NDArray[np.float64]:
        """Return how many times larger than in the photo each face is in its crop; below 1 it is smaller."""
        size = self._entry.size
        if self._entry.align == "box":
            sides = np.minimum(*(found.boxes[:, 2:] - found.boxes[:, :2]).T) * (1 + self._entry.extend)
            return np.asarray(size / np.maximum(sides, 1.0), np.float64)
        return np.array([five_point_scale(points, size) for points in found.landmarks], np.float64)

    def describe(self, crops: Sequence[Pixels]) -> Floats:
        """Return the descriptors of square crops of the entry's size, (n, dim), each of length 1."""
        if len(crops) == 0:
            return np.zeros((0, self.dim), np.float32)
        images = self._prepare(np.stack(crops))
        parts = [self._run(images[at : at + _BATCH]) for at in range(0, len(images), _BATCH)]
        vectors = np.concatenate(parts)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(vectors).all() or (lengths == 0).any():
            raise ModelError(f"model {self.name!r} returned zeros or NaN: is the file damaged?")
        descriptors = np.asarray(vectors / lengths, np.float32)
        return descriptors if self._entry.metric is None else self._entry.metric.apply(descriptors)

    def _prepare(self, crops: Pixels) -> Floats:
        colours = crops if self._entry.colour == "rgb" else crops[..., ::-1]
        images = np.ascontiguousarray(colours.transpose(0, 3, 1, 2), dtype=np.float32)
        if any(self._entry.mean):
            # The entry lists the mean in the model's own colour order.
            images -= np.array(self._entry.mean, np.float32)[:, None, None]
        if self._entry.scale != 1.0:
            images *= np.float32(self._entry.scale)
        return images

    def _run(self, images: Floats) -> Floats:
        if self._batch == 1 and len(images) > 1:
            return np.concatenate([self._run(images[i : i + 1]) for i in range(len(images))])
        try:
            answer = np.asarray(self._session.run([self._output], {self._input: images})[0], np.float32)
            if answer.shape[:1] == (len(images),) and answer.size == len(images) * self.dim:
                return answer.reshape(len(images), self.dim)
            problem = f"it returned shape {answer.shape}, its entry says (n, {self.dim})"
        except Exception as error:  # onnxruntime has no common base of its errors
            problem = str(error)
        if len(images) > 1:  # some exporters bake the batch of 1 into the graph: go one by one
            self._batch = 1
            return self._run(images)
        raise ModelError(f"model {self.name!r} cannot describe a {self._entry.size}-pixel face: {problem}")
