from __future__ import annotations

import numpy as np
import pytest
from learn_people import descriptors

from setnet.errors import TrainingError
from setnet.learn.descriptor_source import DescriptorSource
from setnet.learn.virtual_source import VirtualSource


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
    with pytest.raises(TrainingError, match="need 10 real ones"):
        VirtualSource.fit(DescriptorSource(*descriptors(5, 3)))
