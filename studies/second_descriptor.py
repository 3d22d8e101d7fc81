"""Does SetNet help a descriptor that was trained by another loss? dlib's ResNet, a pairwise hinge, on LFW.

    python -m studies.second_descriptor LFW/images --work dlib/ --json dlib.json

LFW's photos are boxes of a face detector, enlarged 2.2 times: that is where the faces are. The descriptor stays as it is. SetNet-2 and SetNet-3 of the paper's shape (8 clusters, 128 dimensions, eq. 2) are
trained on virtual people drawn from the moments of LFW's training half; the rate is the best of three on real
people of that half. The test half is then searched by them, by the pooled baselines with and without whitening,
and by every face. Needs dlib's network: ``pip install dlib-bin face-recognition-models`` (the extra `bench`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from setnet.cli.evaluate import run_study
from setnet.errors import MissingExtraError
from setnet.evaluate import stress
from setnet.evaluate.people import half_of
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.settings import Settings as BaseSettings
from setnet.evaluate.settings import experiment, option, setting
from setnet.evaluate.tables import Table
from setnet.library import read_descriptors
from setnet.library.descriptor_files import write_descriptor_file
from setnet.train import DescriptorSource, load_network, load_settings, run_sets
from setnet.train.faces import identity_photos, read_photo
from setnet.train.training import compute_elements, validation_ndcg

TITLE = "SetNet on a descriptor trained by a pairwise hinge (dlib)"
RATES = (0.002, 0.02, 0.2)
SHAPE = (
    "aggregator.clusters=8",
    "aggregator.dim=128",
    "sets.loss=logistic",
    "sets.freeze=true",
)
METHODS = ("mean", "mean +W", "mean +W after", "gm signed", "gm signed +W after", "memory")


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """SetNet on dlib's descriptor of LFW, which was trained by a pairwise hinge."""

    photos: Path = field(metadata=option("LFW's folders.", metavar="LFW", is_argument=True, counts=False))
    work: Path = field(
        metadata=option("Descriptors and networks are kept here.", metavar="DIR", counts=False)
    )
    steps: int = setting(3000, "Of set training.", minimum=1)
    sets: int = setting(64_000, "Sets to search.", minimum=100)


@experiment("second descriptor")
def run(run: Run, settings: Settings) -> None:
    """Describe, train and measure."""
    file, work = settings.work / "dlib.npz", settings.work
    if not file.is_file():
        run.say("describing photos")
        write_dlib_descriptors(settings.photos, file)
    rows, labels = read_descriptors(file)
    train = half_of(labels, "train")
    write_descriptor_file(work / "train.npz", rows[train], labels[train].tolist())
    real = DescriptorSource.open(work / "train.npz")
    draw = real.sample(np.random.default_rng(settings.seed), 4000)
    tried: dict[str, float] = {}

    def trained(size: int, rate: float) -> Path:
        out = work / f"SetNet-{size}-rate-{rate:g}"
        run.say(out.name)
        changes = [*SHAPE, f"sets.sizes=[{size}]", f"sets.rate={rate:g}", f"sets.steps={settings.steps}"]
        own = load_settings("default", [*changes, f"seed={settings.seed}"])
        run_sets(work / "train.npz", out, own, virtual=True)
        return out / "network.safetensors"

    for rate in RATES:
        network = load_network(trained(2, rate)).network
        elements = compute_elements(network, real, draw.picks)
        tried[f"{rate:g}"] = round(validation_ndcg(network, elements, draw.labels, settings.seed), 2)
    best = max(tried, key=lambda rate: tried[rate])
    run.note(rates=tried, rate=best)
    heads = [str(trained(size, float(best))) for size in (2, 3)]
    found = stress.run(
        stress.Settings(
            descriptors=file,
            methods=[*METHODS, *(f"{head} +W after" for head in heads)],
            heads=heads,
            sets=settings.sets,
            seed=settings.seed,
        )
    )
    run.note(**found.extra)
    for row in found.rows:
        name = row.name
        for size, head in zip((2, 3), heads, strict=True):
            name = name.replace(head, f"SetNet-{size}")
        run.add(Row(name, row.values, row.facts, row.bound, row.draws))


def write_dlib_descriptors(photos: Path, out: Path) -> None:
    """Describe the face in the middle of each photo."""
    found = find_spec("face_recognition_models")  # for its files; to import it takes more packages
    if found is None or find_spec("dlib") is None:
        raise MissingExtraError("this study", "dlib-bin and face-recognition-models", "bench")
    import dlib

    models = Path(str(found.origin)).parent / "models"
    landmarks = dlib.shape_predictor(str(models / "shape_predictor_5_face_landmarks.dat"))
    network = dlib.face_recognition_model_v1(str(models / "dlib_face_recognition_resnet_model_v1.dat"))
    rows, labels = [], []
    for path in (path for own in identity_photos(photos) for path in own):
        pixels = read_photo(path)
        middle, half = np.array(pixels.shape[1::-1]) / 2, min(pixels.shape[:2]) / 2.2 / 2
        box = dlib.rectangle(*(middle - half).round().astype(int), *(middle + half).round().astype(int))
        rows.append(list(network.compute_face_descriptor(pixels, landmarks(pixels, box))))
        labels.append(path.parent.name)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_descriptor_file(out, np.array(rows, np.float32), labels)


def tables(record: Record) -> list[Table]:
    """Return the tables of the stress test."""
    return stress.tables(record)


if __name__ == "__main__":
    import sys

    run_study(sys.modules[__name__], "python -m studies.second_descriptor")
