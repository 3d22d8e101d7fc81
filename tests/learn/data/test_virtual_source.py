from __future__ import annotations

import numpy as np
import pytest

from learn_people import descriptors
from setnet.errors import InvalidInputError
from setnet.learn.data.descriptor_source import DescriptorSource
from setnet.learn.data.virtual_people import VirtualPeople
from setnet.learn.data.virtual_source import VirtualSource, with_quality


def similarities(faces: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    matrix = faces @ faces.T
    same = labels[:, None] == labels[None, :]
    np.fill_diagonal(matrix, np.nan)
    return float(np.nanmean(matrix[same])), float(np.nanmean(matrix[~same]))


def test_virtual_people_resemble_themselves_as_real_people_do() -> None:
    real = DescriptorSource(*descriptors(300, 4))
    virtual = VirtualSource.fit(real)
    draw = virtual.sample(np.random.default_rng(0), 1200)
    ours = similarities(virtual.load(draw.picks, None).numpy(), draw.labels)
    theirs = similarities(real.load(real.faces, None).numpy(), real.labels)
    assert ours == pytest.approx(theirs, abs=0.05)


def test_nobody_appears_twice() -> None:
    virtual = VirtualSource.fit(DescriptorSource(*descriptors(50, 3)))
    first, second = (virtual.draw(np.random.default_rng(i), 20, 2).picks for i in range(2))
    assert not np.isclose(first, second).all(axis=1).any()


def test_a_handful_of_people_is_too_few() -> None:
    with pytest.raises(InvalidInputError, match="need 10 real ones"):
        VirtualSource.fit(DescriptorSource(*descriptors(5, 3)))


def test_the_spread_of_quality_is_found_again() -> None:
    rng = np.random.default_rng(0)
    eye = np.eye(32, dtype=np.float32)
    model = VirtualPeople(np.zeros(32, np.float32), eye, 0.1 * eye, person_spread=0.3, face_spread=0.4)
    owner = np.repeat(np.arange(200), 6)
    rows = model.faces(rng, model.people(rng, 200), owner)
    fitted = with_quality(VirtualPeople.fit(rows, owner), rows, owner)
    assert fitted.person_spread == pytest.approx(0.3, abs=0.1)
    assert fitted.face_spread == pytest.approx(0.4, abs=0.15)
    plain = with_quality(VirtualPeople.fit(rows, owner), *_without_quality(rng, model))
    assert plain.face_spread < 0.1


def _without_quality(rng: np.random.Generator, model: VirtualPeople) -> tuple[np.ndarray, np.ndarray]:
    calm = VirtualPeople(model.mean, model.between, model.within)
    owner = np.repeat(np.arange(200), 6)
    return calm.faces(rng, calm.people(rng, 200), owner), owner
