"""What onnxruntime computes with: names, and the comparison with the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.errors import InvalidInputError, ModelError
from setnet.faces import load_descriptor, model_entry, model_paths
from setnet.faces.sessions import check_answers, chosen_providers, open_session


@pytest.mark.parametrize("value", ["", " , ", "cpu", "CPUExecutionProvider, cpu"])
def test_the_cpu_computes_unless_another_provider_is_chosen(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETNET_PROVIDERS", value)
    assert chosen_providers() == ["CPUExecutionProvider"]


def test_a_provider_that_onnxruntime_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETNET_PROVIDERS", "abacus")
    with pytest.raises(InvalidInputError, match=r"provider in SETNET_PROVIDERS 'abacus': valid are .*'cpu'"):
        load_descriptor("sface")


@pytest.mark.parametrize("network", ["pnet", "rnet", "onet"])
def test_equal_answers_pass_and_those_of_another_network_do_not(network: str) -> None:
    paths = model_paths(model_entry("mtcnn", "detector"))
    right = open_session(paths[network])
    check_answers(right, open_session(paths[network]), "other")

    class Slightly:
        """A provider that computes a little wrong."""

        def get_inputs(self) -> object:
            return right.get_inputs()

        def run(self, names: None, images: dict[str, np.ndarray]) -> list[np.ndarray]:
            return [answer * 1.05 for answer in right.run(names, images)]

    with pytest.raises(ModelError, match=r"other answers otherwise than the CPU.*unset SETNET_PROVIDERS"):
        check_answers(Slightly(), right, "other")
