"""What similarities mean in one library: its calibration, its cohort, and the recognisers of people."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.library.calibration.stored import match_model_of
from setnet.library.recognition.cohort import Cohort
from setnet.library.recognition.person_vector import person_vector
from setnet.library.recognition.probability import MatchModel
from setnet.library.recognition.recogniser import Recogniser
from setnet.library.search.query_person import QueryPerson

if TYPE_CHECKING:
    from setnet.library.files import LibraryFiles


class _Known(NamedTuple):
    state: tuple[int, int]
    model: MatchModel
    cohort: Cohort


class Matching:
    """Makes the recognisers of a library's people; what they need is read again when the library changes."""

    def __init__(self, library: LibraryFiles) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._kept: _Known | None = None

    @property
    def model(self) -> MatchModel:
        """The library's own calibration, or that of its descriptor model."""
        return self._known().model

    @property
    def cohort(self) -> Cohort:
        """A sample of the library's faces."""
        return self._known().cohort

    @property
    def threshold(self) -> float:
        """The similarity from which two faces may be one person's."""
        known = self._known()
        nobody = np.zeros(self._library.dim, np.float32)
        return Recogniser.of(known.model, nobody, 1, known.model.strangers_to(1), known.cohort.faces).maybe

    def recogniser(self, person: QueryPerson) -> Recogniser:
        """Return what recognises a person in this library."""
        known = self._known()
        if not np.isfinite(person.descriptors).all():
            raise InvalidInputError(f"{person.name}: a descriptor holds NaN or infinity")
        vector = person_vector(person.descriptors, person.name)
        if vector.shape != (self._library.dim,):
            raise InvalidInputError(
                f"{person.name}: descriptors of {len(vector)} numbers; this library's have "
                f"{self._library.dim}"
            )
        examples = len(person.descriptors)
        strangers = known.cohort.strangers(vector, examples, known.model)
        refused = self._similarities(vector, person.refused)
        return Recogniser.of(known.model, vector, examples, strangers, known.cohort.faces, refused)

    def _similarities(
        self, vector: NDArray[np.float32], faces: frozenset[tuple[str, int]]
    ) -> NDArray[np.float32]:
        """Return how similar faces of photos are to a person; those that are gone are left out."""
        found: list[float] = []
        for photo, ordinal in sorted(faces):
            try:
                elements = self._library.set_index.elements(photo)
            except InvalidInputError:
                continue
            if ordinal < len(elements):
                found.append(float(elements[ordinal] @ vector))
        return np.array(found, np.float32)

    def _known(self) -> _Known:
        catalog, index = self._library.catalog, self._library.set_index
        state = catalog.commit(), len(index)
        with self._lock:
            if self._kept is None or self._kept.state != state:
                model = match_model_of(catalog, self._library.settings)
                self._kept = _Known(state, model, Cohort.of(index, catalog.counts().faces, model))
            return self._kept
