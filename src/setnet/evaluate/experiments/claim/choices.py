"""What is chosen on validation identities: the softness of NetVLAD's start, and the rate of set training.

Every family of methods chooses its rate from the same grid, each rate tried with the whole budget, so that no
family is better trained than another. The first training seed chooses, the others keep it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from setnet.evaluate.experiments.claim.described import Described
from setnet.evaluate.experiments.claim.ways import Pooled, formed, forms, quality
from setnet.evaluate.report.record import Run
from setnet.train import SetNetwork, TrainingSettings, Variant

ALPHAS = (1.0, 3.0, 10.0, 30.0)  # softness of NetVLAD's start
RATES = (0.25, 0.5, 1.0)  # of set training, times that of the settings
# What a family tries rates with: rows of the table themselves, so that the best trial is already one of them.
FAMILIES = {
    "average": Variant("Baseline-2", "average", 2),
    "gem": Variant("Baseline-GM-2", "gem", 2),
    "netvlad": Variant("SetNet-2", "netvlad", 2),
}
FAMILY_OF = {"before-fc": "average", "gem-per-dim": "gem"}


class Choices:
    """Chooses on validation identities what the run does not know yet, and keeps it there.

    Parameters
    ----------
    trained
        Returns a variant's network: variant, loss, rate (None for no set training).
    described
        Returns a network's elements.
    """

    def __init__(
        self,
        run: Run,
        settings: TrainingSettings,
        trained: Callable[[Variant, str, float | None], SetNetwork],
        described: Callable[[SetNetwork], Described],
        say: Callable[[str], None],
    ) -> None:
        self.run, self.settings = run, settings
        self.trained, self.described, self.say = trained, described, say

    def with_alpha(self, variant: Variant, baseline: Described) -> Variant:
        """Return a variant of NetVLAD with the start that ranks best untrained, unless it has its own."""
        if variant.aggregator != "netvlad" or variant.alpha is not None:
            return variant
        if "alpha" not in self.run.extra:
            self.say("choosing the softness of NetVLAD's start on validation identities")
            found = {}
            for alpha in ALPHAS:
                tried = Variant(f"alpha {alpha:g}", "netvlad", None, alpha=alpha)
                network = self.trained(tried, "", None)
                way = formed(network, Pooled(network), "after", 2, baseline)
                found[f"{alpha:g}"] = round(quality(way, baseline), 2)
            self.run.note(alphas=found, alpha=float(_best(found)))
        return replace(variant, alpha=float(self.run.extra["alpha"]))

    def rate(self, variant: Variant, loss: str, baseline: Described) -> float:
        """Return the rate with which the variant's family ranks best, in the better of its forms."""
        family = FAMILY_OF.get(variant.aggregator, variant.aggregator)
        chosen: dict[str, dict[str, Any]] = self.run.extra.get("rates", {})
        if family not in chosen.get(loss, {}):
            tried = self.with_alpha(FAMILIES[family], baseline)
            found = {}
            for times in RATES:
                rate = float(f"{times * self.settings.sets.rate:g}")  # as folders name it
                network = self.trained(tried, loss, rate)
                self.say(f"judging {tried.name} ({loss}, rate {rate:g}) on validation identities")
                found[f"{rate:g}"] = round(self._quality(network, tried), 2)
            one = {family: {"tried": found, "rate": float(_best(found))}}
            chosen = {**chosen, loss: chosen.get(loss, {}) | one}
            self.run.note(rates=chosen)
        return float(chosen[loss][family]["rate"])

    def _quality(self, network: SetNetwork, variant: Variant) -> float:
        described, pooled = self.described(network), Pooled(network)
        found = [
            quality(formed(network, pooled, place, variant.size or 2, described), described)
            for _, place in forms(variant)
        ]
        network.before = network.after = None
        return max(found)


def _best(found: dict[str, float]) -> str:
    return max(found, key=lambda name: found[name])
