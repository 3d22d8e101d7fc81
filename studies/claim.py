"""The paper's claim on faces (SFace, trained on from its last blocks, on LFW) and on Chinese characters.

    python -m studies.claim faces LFW/images --out RUN --degraded COPIES --record FILE.json
    apt-get install $(python -m studies.claim packages)
    python -m studies.claim characters --out RUN --without

Every network of `setnet train paper` is trained, in several seeds, with a rate and a start of NetVLAD that are
chosen on validation identities. It continues where it stopped; what stands in the record is not done again, even
if RUN was lost.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, TrainingError
from setnet.evaluate import claim
from setnet.evaluate.claim import ClaimTrainer, evaluate_claim, over_seeds
from setnet.evaluate.claim_data import (
    FACES_WORLD,
    CachedPooling,
    Described,
    Domain,
    Rows,
    Test,
    divide_photos,
    row_variants,
    whiten_row,
)
from setnet.evaluate.ranking_calibration import best_logistic
from setnet.evaluate.record import Record
from setnet.evaluate.report import write_section
from setnet.evaluate.representations import EveryElement
from setnet.evaluate.stress_trial import Representation, measure_ranking
from setnet.evaluate.tables import Table
from setnet.train import NetworkAggregator, SetNetwork, TrainingSettings, load_settings, new_backbone
from setnet.train.calibration import Similarities, similarities
from setnet.train.faces import FacePhotos
from setnet.train.loop import default_workers, use_device
from setnet.train.stages import VARIANTS, Variant
from setnet.train.training import compute_elements
from studies.features import Features, FeatureViews, cache_features
from studies.glyphs import Glyphs, GlyphSource, font_packages, load_glyphs
from studies.sface import SFace, frozen_sface

TRAINED, VALIDATED = 3000, 500  # characters; the others are tested
HELD_OUT_TYPEFACES = 0.15  # share of the families
MEASURED = 12  # pictures of a character that calibration and tests use, at most
VIEWS = 3  # of a training photo: as it is at run time, and augmented


def faces_domain(photos: Path, out: Path, settings: TrainingSettings, copies: Sequence[Path] = ()) -> Domain:
    """Return LFW as the frozen part of SFace sees it, computed once: one half trains, the other is tested.

    `copies` are folders of degraded photos of the same names, which are tested as well.
    """
    paths, owner, (train, validation, test) = divide_photos(photos)
    frozen, kept = cache(frozen_sface), out / "features"

    def source(chosen: Rows, name: str, views: int = 1, root: Path = photos) -> FeatureViews:
        rows = np.flatnonzero(chosen)
        files = [root / paths[row].relative_to(photos) for row in rows.tolist()]
        labels, places = owner[rows], kept / f"{name}-places.bin"
        if missing := [file for file in files if not file.is_file()]:
            raise InvalidInputError(f"{missing[0]} is missing: degrade all photos of {photos}")

        def faces() -> FacePhotos:  # where the features are, no photo is read
            return FacePhotos(files, labels, SFace.spec, settings.augment, f"{name} faces", places)

        def make(view: int) -> Features:
            file, every = kept / f"{name}-{view}.npy", np.arange(len(rows))
            return cache_features(frozen(), faces, every, file, view)

        return FeatureViews(labels, name, make, views)

    learned, calibrate = source(train, "train", VIEWS), source(validation, "validation")
    tested = source(test, "test")
    tests = {"": Test(tested, repeats=10), "large sets": Test(tested, (10, 20), (10,))}
    tests |= {root.name: Test(source(test, root.name, root=root), depths=(10,)) for root in copies}
    sources = (learned, calibrate, tested)
    facts = {"identities": [one.people for one in sources], "pictures": [len(one.labels) for one in sources]}
    return Domain(
        "faces",
        learned,
        learned,
        calibrate,
        tests,
        (0, FACES_WORLD),
        (0, 6_000),
        facts,
        losses=("logistic", "contrastive"),
        others=[(settings.backbone.name, dim) for dim in (64, 32)],
    )


def glyphs_domain(folder: Path, settings: TrainingSettings) -> Domain:
    """Return characters: 3,000 train, 500 calibrate, the rest are tested; some typefaces are held out."""
    drawn = load_glyphs(folder, settings.augment.short_side)
    spec = new_backbone(settings).spec
    assert spec is not None
    order = np.random.default_rng(0).permutation(int(drawn.characters.max()) + 1)
    part = np.empty(len(order), np.int64)  # of each character: 0 train, 1 calibrate, 2 test
    part[order] = np.repeat([0, 1, 2], [TRAINED, VALIDATED, len(order) - TRAINED - VALIDATED])
    other = _held_out(drawn)[drawn.typefaces]
    of = part[drawn.characters]

    def source(chosen: NDArray[np.bool_]) -> GlyphSource:
        return GlyphSource(drawn, np.flatnonzero(chosen), spec, settings.augment)

    train = source((of == 0) & ~other)
    calibrate, test = (source(_some((of == p) & ~other, drawn.characters)) for p in (1, 2))
    tests = {
        "": Test(test),
        "held-out typefaces": Test(source(_some((of == 2) & other, drawn.characters))),
    }
    labelled = len(np.unique(test.labels)) * 7 // 10
    facts = {
        "identities": [train.people, calibrate.people, test.people],
        "pictures": [len(one.labels) for one in (train, calibrate, test)],
        "typefaces": len(drawn.names),
        "held_out": [drawn.names[i] for i in np.flatnonzero(_held_out(drawn))],
        "sha256": drawn.checksum,
    }
    return Domain(
        "characters", train, train, calibrate, tests, (labelled, 24_000), (400, 6_000), facts, worlds=3
    )


def _some(chosen: NDArray[np.bool_], characters: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return `chosen` with no more than `MEASURED` random pictures of a character."""
    rows = np.random.default_rng(2).permutation(np.flatnonzero(chosen))
    rows = rows[np.argsort(characters[rows], kind="stable")]
    first = np.flatnonzero(np.diff(characters[rows], prepend=-1))
    number = np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))
    kept = np.zeros_like(chosen)
    kept[rows[number < MEASURED]] = True
    return kept


def _held_out(drawn: Glyphs) -> NDArray[np.bool_]:
    """Return which typefaces no network is trained on: whole families, so that no sister tells of them."""
    families = sorted(set(drawn.families))
    chosen = np.random.default_rng(1).permutation(families)[
        : max(1, round(HELD_OUT_TYPEFACES * len(families)))
    ]
    return np.isin(drawn.families, chosen)


def validation_quality(kept: Representation, described: Described) -> float:
    """Return the nDCG@10 of validation identities, calibrated on another draw of them: mean over sizes."""
    fitted, judged = described.validation
    logistic = best_logistic(kept, fitted)
    return float(np.mean([*measure_ranking(kept, [judged], logistic).values.values()]))


def verification(network: SetNetwork, domain: Domain, device: str = "cpu") -> float:
    """Return the % of pairs of test faces told apart, at the best threshold of validation pairs."""
    pairs = []
    for source in (domain.calibrate, domain.tests[""].source):
        rows = compute_elements(network.to(device), source, np.arange(len(source.labels)), device).numpy()
        pairs.append(similarities(rows, source.labels, np.random.default_rng(0), PAIRS))
    network.cpu()

    def accuracy(of: Similarities, bar: float) -> float:
        return 50.0 * float((of.same > bar).mean() + (of.different <= bar).mean())

    fitted, judged = pairs
    return accuracy(judged, max(np.linspace(-1, 1, 401).tolist(), key=lambda bar: accuracy(fitted, bar)))


PAIRS = 20_000
PAIRS = 20_000
ALPHAS = (1.0, 3.0, 10.0, 30.0)  # softness of NetVLAD's start
RATES = (0.25, 0.5, 1.0)  # of set training, times that of the settings
VERIFIED = 97.0  # % of pairs of test faces that a network of faces tells apart before it trains on sets
# What a family tries rates with: rows of the table themselves, so that the best trial is already one of them.
FAMILIES = {
    "average": Variant("Baseline-2", "average", 2),
    "gem": Variant("Baseline-GM-2", "gem", 2),
    "netvlad": Variant("SetNet-2", "netvlad", 2),
}
FAMILY_OF = {"before-fc": "average", "gem-per-dim": "gem", "average-fc": "netvlad", "hashed": "netvlad"}
# What SetNet-2 is without one of its parts each; the loss is the other thing to change.
WITHOUT = (
    Variant("SetNet-2, hard start", "netvlad", 2, alpha=0.0),
    Variant("SetNet-2, one cluster", "netvlad", 2, clusters=1),
)


def _best(found: Mapping[str, float]) -> str:
    return max(found, key=lambda name: found[name])


class ChoosingTrainer(ClaimTrainer):
    """Trains with the rate, and from the start of NetVLAD, that rank validation identities best."""

    is_verified = False  # a network must tell pairs of faces apart before it trains on sets

    def best_baseline(self, loss: str) -> str:
        """Return the baseline that was best on validation identities."""
        rates = self.run.extra.get("rates", {}).get(loss, {})
        pooled = [family for family in rates if family != "netvlad"] or ["average"]
        best = max(pooled, key=lambda family: max(rates[family]["tried"].values()) if rates else 0)
        return FAMILIES[best].name

    def measure(self, loss: str) -> None:
        """Train and measure all, after all is chosen."""
        for variant in VARIANTS:
            if variant.size is not None:
                self.check_backbone()
                self.rate(variant, loss)
        super().measure(loss)

    def check_backbone(self) -> None:
        """Refuse to train sets with a network that cannot tell faces apart."""
        found: dict[str, float] = self.run.extra.get("verification", {})
        if self.is_verified and self.label not in found:
            accuracy = verification(self.untrained, self.domain, self.device)
            self.run.note(verification=found | {self.label: round(accuracy, 2)})
            found = self.run.extra["verification"]
        is_usual = self.label.startswith("seed")  # of fewer dimensions less is expected
        if is_usual and found.get(self.label, 100.0) < VERIFIED:
            raise TrainingError(
                f"the network tells {found[self.label]} % of pairs of test faces apart before set training, "
                f"{VERIFIED:g} % are needed: train it longer (pretrain.steps, pretrain.rate)"
            )

    def with_start(self, variant: Variant) -> Variant:
        """Return a variant of NetVLAD with the start that ranks best untrained, unless it has its own."""
        if variant.aggregator not in ("netvlad", "hashed") or variant.alpha is not None:
            return variant
        if "alpha" not in self.run.extra:
            self.say("choosing the softness of NetVLAD's start on validation identities")
            found = {}
            for alpha in ALPHAS:
                tried = Variant(f"alpha {alpha:g}", "netvlad", None, alpha=alpha)
                network = self.trained(tried, "", None)
                kept = whiten_row(network, CachedPooling(network), "after", 2, self.baseline)
                found[f"{alpha:g}"] = round(validation_quality(kept, self.baseline), 2)
            self.run.note(alphas=found, alpha=float(_best(found)))
        return replace(variant, alpha=float(self.run.extra["alpha"]))

    def rate(self, variant: Variant, loss: str) -> float:
        """Return the rate with which the variant's family ranks best, in the better of its forms."""
        family = FAMILY_OF.get(variant.aggregator, variant.aggregator)
        chosen: dict[str, dict[str, Any]] = self.run.extra.get("rates", {})
        found = dict(chosen.get(loss, {}).get(family, {}).get("tried", {}))
        for times in RATES:
            rate = float(f"{times * self.settings.sets.rate:g}")  # as folders name it
            if f"{rate:g}" not in found:
                tried = self.with_start(FAMILIES[family])
                network = self.trained(tried, loss, rate)
                self.say(f"judging {tried.name} ({loss}, rate {rate:g}) on validation identities")
                found[f"{rate:g}"] = round(self._quality(network, tried), 2)
                one = {family: {"tried": found, "rate": float(_best(found))}}
                chosen = {**chosen, loss: chosen.get(loss, {}) | one}
                self.run.note(rates=chosen)
        return float(chosen[loss][family]["rate"])

    def _quality(self, network: SetNetwork, variant: Variant) -> float:
        described, pooled = self.described(network), CachedPooling(network)
        found = [
            validation_quality(whiten_row(network, pooled, place, variant.size or 2, described), described)
            for _, place in row_variants(variant)
        ]
        network.before = network.after = None
        return max(found)


class VerifiedTrainer(ChoosingTrainer):
    """The same for faces."""

    is_verified = True


class PartsTrainer(ChoosingTrainer):
    """Also measures SetNet-2 without its parts, and what each family loses before it pools."""

    def measure(self, loss: str) -> None:
        """Train and measure all, then the parts."""
        super().measure(loss)
        for variant in WITHOUT:
            self.rows_of(variant, loss)
        for variant in FAMILIES.values():
            self._elements_of(variant, loss)

    def _elements_of(self, variant: Variant, loss: str) -> None:
        """Measure every element's own vector kept."""
        name = f"Every element of {variant.name}"
        if key := self.missing(name, loss):
            variant = self.with_start(variant)
            network = self.trained(variant, loss, self.rate(variant, loss))
            facts: dict[str, object] = {"bytes_per_element": NetworkAggregator(network, name).bytes_per_item}
            kept = EveryElement(change=NetworkAggregator(network, "").describe)
            self.add(key, name, loss, kept, self.described(network), facts, bound=True)


def tables(record: Record) -> list[Table]:
    """Return the tables of the comparison, and what was chosen with the nDCG@10 of all that was tried."""
    extra = record.extra
    cells = [
        (f"verification before set training, {name}", f"{accuracy} %", "")
        for name, accuracy in extra.get("verification", {}).items()
    ]
    if "alpha" in extra:
        cells.append(("start of NetVLAD, alpha", f"{extra['alpha']:g}", _tried(extra["alphas"])))
    for loss, families in extra.get("rates", {}).items():
        for family, one in families.items():
            cells.append(
                (f"rate of set training, {family} ({loss})", f"{one['rate']:g}", _tried(one["tried"]))
            )
    for row in over_seeds(record):
        if "exponents" in row.facts and "+ W" not in row.name:
            low, high = row.facts["exponents"]
            cells.append((f"exponent p learned from 3, {row.name}", f"{low:.2f} to {high:.2f}", ""))
    columns = ("what", "chosen", "nDCG@10 of those tried")
    return [*claim.tables(record), Table("Chosen on validation identities", columns, tuple(cells))]


def _tried(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name}: {quality}" for name, quality in found.items())


def write_page(record: Record, page: Path) -> Path:
    """Put the tables into a page; a run without parts has its own section."""
    parts = any(row.facts["row"] in {variant.name for variant in WITHOUT} for row in record.rows)
    subject = record.settings["elements"] + (" by parts" if parts else "")
    name, title = f"claim-{subject.replace(' ', '-')}", f"The paper's claim on {subject}"
    return write_section(page, name, title, record, tables(record), "python -m studies.claim")


def main(words: Sequence[str] | None = None) -> None:
    """Run the claim in one domain."""
    parser = argparse.ArgumentParser("python -m studies.claim", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="domain", required=True)
    commands.add_parser("packages", help="print the Debian packages of the typefaces, for apt-get")
    for name, about in (("faces", "LFW"), ("characters", "characters of some 60 typefaces")):
        one = commands.add_parser(name, help=about)
        one.add_argument("--out", type=Path, required=True, help="the run's folder; made or continued")
        one.add_argument(
            "--set", action="append", default=[], metavar="NAME=VALUE", help="override a setting"
        )
        one.add_argument("--loss", action="append", default=[], help="the first trains all [default: both]")
        one.add_argument("--seeds", type=int, default=0, help="train everything so often [default: 3]")
        one.add_argument("--worlds", type=int, default=0, help="test worlds [default: 1, characters 3]")
        one.add_argument("--record", type=Path, help="each training adds to it [default: RUN/claim.json]")
        one.add_argument("--report", type=Path, help="also put the tables into this page")
        one.add_argument("--device", default="cpu", help="cpu, cuda or cuda:NUMBER")
        one.add_argument("--workers", type=int, default=default_workers(), help="processes that load photos")
        one.add_argument("--threads", type=int, default=0, help="of torch; 0 leaves it to torch")
        if name == "faces":
            one.add_argument("photos", type=Path, help="LFW's folders")
            copies = "copies by python -m studies.degrade, to test on; repeatable"
            one.add_argument("--degraded", type=Path, action="append", default=[], help=copies)
        else:
            one.add_argument(
                "--without", action="store_true", help="also leave out SetNet-2's parts one by one"
            )
    options = parser.parse_args(words)
    if options.domain == "packages":
        print(" ".join(font_packages()))
        return
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # what training reports
    use_device(options.device, options.threads)
    file = Path(__file__).with_name("faces.toml" if options.domain == "faces" else "glyphs.toml")
    settings, out = load_settings(str(file), options.set), options.out
    trainer: type[ChoosingTrainer]
    if options.domain == "faces":
        domain, trainer = faces_domain(options.photos, out, settings, options.degraded), VerifiedTrainer
    else:
        domain = glyphs_domain(out / "glyphs", settings)
        trainer = PartsTrainer if options.without else ChoosingTrainer
    record = evaluate_claim(
        domain,
        out,
        settings,
        seeds=options.seeds,
        worlds=options.worlds,
        losses=options.loss,
        record=options.record,
        device=options.device,
        workers=options.workers,
        say=print,
        trainer=trainer,
    )
    for table in tables(record):
        print(table.markdown())
    for page in filter(None, (out / "claim.md", options.report)):
        print(write_page(record, page))


if __name__ == "__main__":
    main()
