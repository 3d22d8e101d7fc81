"""Virtual people: descriptors drawn from the between- and within-person statistics of real ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, ModelError
from setnet.heads import unit
from setnet.library.descriptor_files import read_arrays

Floats = NDArray[np.float32]
ARRAYS = ("mean", "between", "within")
NUMBERS = ("person_spread", "face_spread")


@dataclass(frozen=True, eq=False)
class SimulatedIdentities:
    """Some virtual people: where each one's faces lie, and how much that person's photos vary."""

    centres: Floats
    spread: Floats

    def __len__(self) -> int:
        return len(self.centres)


@dataclass(frozen=True, eq=False)
class VirtualPeople:
    """A face is ``unit(mean + z_person between + q z_face within)``, z standard normal.

    ``between`` and ``within`` are square roots of the covariances between people and within one person;
    q = exp(person_spread a + face_spread b), a drawn once per person and b once per face, makes people with
    good and poor photos and good and poor photos of each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> eye = np.eye(8, dtype=np.float32)
    >>> model = VirtualPeople(np.zeros(8, np.float32), eye, 0.1 * eye, 0.0, 0.0)
    >>> identities = model.people(rng, 2)
    >>> faces = model.faces(rng, identities, np.array([0, 0, 1]))
    >>> bool(faces[0] @ faces[1] > 0.9)
    True
    """

    mean: Floats
    between: Floats
    within: Floats
    person_spread: float = 0.0
    face_spread: float = 0.0

    @property
    def dim(self) -> int:
        """Dimension of the descriptors."""
        return len(self.mean)

    def people(self, rng: np.random.Generator, count: int) -> SimulatedIdentities:
        """Return ``count`` new people."""
        drawn = rng.standard_normal((count, self.dim), dtype=np.float32)
        spread = np.exp(self.person_spread * rng.standard_normal(count, dtype=np.float32))
        return SimulatedIdentities(self.mean + drawn @ self.between, spread.astype(np.float32))

    def faces(
        self,
        rng: np.random.Generator,
        identities: SimulatedIdentities,
        who: NDArray[np.int64],
        shared: float = 0.0,
    ) -> Floats:
        """Return one new face, at unit length, for each person of ``identities`` named in ``who``.

        ``shared`` is the part of the variance within a person that all faces of that person in this call have
        in common, as photos of one occasion do: their mean is then no better than such photos allow.
        """
        noise = rng.standard_normal((len(who), self.dim), dtype=np.float32)
        if shared:
            common = rng.standard_normal((len(identities), self.dim), dtype=np.float32)
            noise = np.sqrt(np.float32(1 - shared)) * noise + np.sqrt(np.float32(shared)) * common[who]
        noise = noise @ self.within
        quality = identities.spread[who] * np.exp(
            self.face_spread * rng.standard_normal(len(who), dtype=np.float32)
        )
        return unit(identities.centres[who] + noise * quality[:, None])

    def harder(self, difficulty: float) -> VirtualPeople:
        """Return people whose faces vary ``difficulty`` times as much; 1 leaves them as real as fitted."""
        if not (np.isfinite(difficulty) and difficulty > 0):
            raise InvalidInputError(f"difficulty {difficulty} must be a positive number; 1 is as fitted")
        return replace(self, within=self.within * np.float32(difficulty))

    @classmethod
    def fit(cls, descriptors: NDArray[np.floating], owner: NDArray[np.int64]) -> VirtualPeople:
        """Return the moments of real people; ``owner`` says whose face each row is.

        People of one face say nothing about the spread within a person and count for the mean only. Each
        person weighs the same, whatever their number of photos.
        """
        rows = unit(np.asarray(descriptors, np.float32)).astype(np.float64)
        order = np.argsort(owner, kind="stable")
        _, start, counts = np.unique(owner[order], return_index=True, return_counts=True)
        groups = [rows[order[s : s + n]] for s, n in zip(start, counts, strict=True) if n > 1]
        if len(groups) < 10:
            raise InvalidInputError(
                f"{len(groups)} people with two faces or more: virtual people need 10 real ones"
            )
        centres = np.array([group.mean(axis=0) for group in groups])
        mean = centres.mean(axis=0)
        within = np.zeros((rows.shape[1],) * 2)
        shrink = 0.0
        for group, centre in zip(groups, centres, strict=True):
            off = group - centre
            within += off.T @ off / (len(group) - 1) / len(groups)
            shrink += 1.0 / len(group) / len(groups)
        # a centre of n faces carries 1 / n of their spread
        between = np.cov(centres.T) - within * shrink
        return cls(mean.astype(np.float32), _root(between), _root(within))

    def with_quality(self, rows: Floats, owner: NDArray[np.int64]) -> VirtualPeople:
        """Return these people with their spread of quality fitted: how much deviations vary in length.

        The logarithm of a deviation's length varies between people and between photos; what chance alone
        gives Gaussian deviations is taken off, and the mean square deviation is kept.
        """
        unit_rows = unit(rows)
        logs, numbers = [], []
        for person in np.unique(owner):
            own = unit_rows[owner == person]
            if len(own) > 2:  # two faces deviate by the same length from their mean
                off = (own - own.mean(0)) * np.sqrt(len(own) / (len(own) - 1))
                logs.append(np.log(np.linalg.norm(off, axis=1) + 1e-12))
                numbers.append(len(own))
        if len(logs) < 10:
            return self
        variances = np.linalg.eigvalsh(self.within.astype(np.float64) @ self.within.T)
        chance = 0.5 * float((variances**2).sum() / variances.sum() ** 2)
        photos = float(np.mean([log.var(ddof=1) for log in logs]))
        people = float(np.var([log.mean() for log in logs], ddof=1)) - photos * float(
            np.mean(1 / np.array(numbers))
        )
        face, person = max(photos - chance, 0.0), max(people, 0.0)
        scale = np.float32(np.exp(-(face + person)))
        return replace(
            self,
            within=self.within * scale,
            person_spread=float(np.sqrt(person)),
            face_spread=float(np.sqrt(face)),
        )

    def save(self, path: str | Path) -> None:
        """Write the parameters as a small ``.npz``."""
        arrays = {name: getattr(self, name).astype(np.float16) for name in ARRAYS}
        numbers = {name: np.float64(getattr(self, name)) for name in NUMBERS}
        np.savez_compressed(str(path), **arrays, **numbers)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> VirtualPeople:
        """Read what `save` wrote."""
        try:
            found = read_arrays(path, (*ARRAYS, *NUMBERS))
            mean, between, within = (array.astype(np.float32) for array in found[: len(ARRAYS)])
            person_spread, face_spread = (float(number) for number in found[len(ARRAYS) :])
        except (InvalidInputError, TypeError, ValueError) as error:
            raise ModelError(f"{path} holds no parameters of virtual people: {error}") from error
        return cls(mean, between, within, person_spread, face_spread)


def _root(covariance: NDArray[np.float64]) -> Floats:
    """Return R with R^T R = covariance, negative directions of the estimate dropped."""
    values, axes = np.linalg.eigh(covariance)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T, dtype=np.float32)
