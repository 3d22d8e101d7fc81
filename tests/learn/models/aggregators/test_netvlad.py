from __future__ import annotations

import numpy as np
import torch

from setnet.learn.models.aggregators.netvlad import NetVLAD, NetVLADAggregator


def literal_netvlad(x: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Equation 1, loop by loop, each face's contribution normalised, then the vector normalised."""
    total = np.zeros((len(a), x.shape[1]))
    for face in x:
        weights = np.array([np.exp(a[k] @ face + b[k]) for k in range(len(a))])
        weights /= weights.sum()
        part = np.array([weights[k] * (face - c[k]) for k in range(len(a))])
        total += part / np.linalg.norm(part)
    return (total / np.linalg.norm(total)).ravel()


def vlad(seed: int = 0) -> NetVLAD:
    torch.manual_seed(seed)
    made = NetVLAD(6, 4).double()
    made.b.data.normal_()
    return made


def test_it_is_equation_1_with_normalised_contributions() -> None:
    made = vlad()
    x = torch.randn(5, 6, dtype=torch.float64)
    a, b, c = (t.detach().numpy() for t in (made.a, made.b, made.c))
    ours = made(x, torch.tensor([2, 3])).detach().numpy()
    np.testing.assert_allclose(ours[0], literal_netvlad(x[:2].numpy(), a, b, c), rtol=1e-10)
    np.testing.assert_allclose(ours[1], literal_netvlad(x[2:].numpy(), a, b, c), rtol=1e-10)


def test_every_face_contributes_the_same_length() -> None:
    made = vlad()
    x = torch.randn(7, 6, dtype=torch.float64) * torch.logspace(-2, 2, 7, dtype=torch.float64)[:, None]
    lengths = made.contributions(x).norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))


def test_gradients_reach_elements_and_all_three_parameters() -> None:
    made = vlad()
    x = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    counts = torch.tensor([1, 4])

    def run(e: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = torch.func.functional_call(made, {"a": a, "b": b, "c": c}, (e, counts))
        return out

    assert torch.autograd.gradcheck(run, (x, made.a, made.b, made.c))


def test_the_aggregator_is_netvlad_fc_batch_norm_and_l2() -> None:
    torch.manual_seed(1)
    made = NetVLADAggregator(6, 5, clusters=4).double()
    x, counts = torch.randn(8, 6, dtype=torch.float64), torch.tensor([3, 5])
    assert made.norm.running_mean is not None
    assert made.norm.running_var is not None
    made.norm.running_mean.normal_()
    made.eval()
    pooled = made.vlad(x, counts) @ made.fc.weight.T
    normed = (pooled - made.norm.running_mean) / torch.sqrt(made.norm.running_var + made.norm.eps)
    expected = normed / normed.norm(dim=1, keepdim=True)
    torch.testing.assert_close(made(x, counts), expected)
