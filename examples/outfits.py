"""Sets of vectors that are not faces: outfits that contain a dress and a handbag.

The paper's other example (section 1): a customer who likes a dress and a handbag wants to see the outfits
that have both first, then those with one of them. Each garment is a vector here; any embedding will do.
Run it with ``python examples/outfits.py``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from setnet import SetIndex

KINDS = ["dress", "handbag", "shoes", "coat", "hat"]
rng = np.random.default_rng(0)


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), np.float32)


def photographed(garments: np.ndarray) -> np.ndarray:
    """The same garments seen again: a little different each time."""
    return unit(garments + 0.5 * rng.normal(size=garments.shape) / np.sqrt(garments.shape[-1]))


# a shop with 200 garments of each kind, and 5,000 street photos of people who wear some of them
shop = {kind: unit(rng.normal(size=(200, 64))) for kind in KINDS}
worn = [{kind: int(rng.integers(200)) for kind in KINDS if rng.random() < 0.6} for _ in range(5000)]
worn[1234] |= {"dress": 7, "handbag": 42}

folder = Path(tempfile.mkdtemp())
with SetIndex.create(folder / "outfits", dim=64) as index:
    elements = [photographed(shop[kind][number][None]) for outfit in worn for kind, number in outfit.items()]
    index.add(
        [f"photo {i}" for i in range(len(worn))],
        np.concatenate(elements),
        counts=[len(outfit) for outfit in worn],
        attributes=[{"season": ["spring", "summer", "autumn", "winter"][i % 4]} for i in range(len(worn))],
    )

    wanted = np.stack([shop["dress"][7], shop["handbag"][42]])
    print("a dress and a handbag:")
    for hit in index.search(wanted, k=5):
        seen = [f"{match.similarity:.2f}" for match in hit.matches if match.similarity > 0.4]
        print(f"  {hit.id:12} score {hit.score:.2f}  similarities {', '.join(seen)}")

    print("the dress without that handbag, in summer:")
    for hit in index.search(wanted[:1], k=3, without=wanted[1:], at_least=1, where={"season": "summer"}):
        print(f"  {hit.id:12} score {hit.score:.2f}")

    both = index.search(wanted, k=1)[0]
    assert both.id == "photo 1234", both
