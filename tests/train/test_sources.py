from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from setnet.collect import CollectRun, write_result
from setnet.errors import InvalidInputError, PhotoError, TrainingError
from setnet.faces import load_descriptor, load_detector, open_photo
from setnet.train import faces as face_places
from setnet.train import load_settings, new_backbone, run_sets
from setnet.train.backbones import InputSpec
from setnet.train.faces import FaceArray, FaceFolder, centre_crop, identity_photos, random_crop
from setnet.train.settings import AugmentSettings
from setnet.train.simulated import VirtualPeople
from setnet.train.sources import DescriptorSource, VirtualSource, stream
from setnet.train.stages import open_source
from setnet.train.training import set_sizes
from tests.support.invented_collect import invented_run
from tests.support.learn_people import descriptors, pattern, photo_folder

SPEC = InputSpec(32, (127.5, 127.5, 127.5), (128.0, 128.0, 128.0))
AUGMENT = AugmentSettings(short_side=36)


def test_a_draw_has_one_set_face_and_one_query_face_of_each_person() -> None:
    rows, labels = descriptors(60, 3)
    source = DescriptorSource(rows, labels)
    draw = source.draw(np.random.default_rng(0), 42, 2)
    assert len(draw.labels) == 84
    assert len(set(draw.labels[:42])) == 42
    assert (draw.labels[:42] == draw.labels[42:]).all()
    assert (draw.picks[:42] != draw.picks[42:]).all()


def test_sets_use_everybody_of_a_batch() -> None:
    rng = np.random.default_rng(0)
    assert set_sizes(42, [2], rng).tolist() == [2] * 21
    mixed = set_sizes(42, [2, 3, 4], rng)
    assert mixed.sum() == 42
    assert set(mixed[:-1]) <= {2, 3, 4}


def test_people_with_one_photo_are_left_out_and_counted(tmp_path: Path) -> None:
    photo_folder(tmp_path, 3, 2)
    (tmp_path / "alone").mkdir()
    Image.fromarray(pattern(99, 0)).save(tmp_path / "alone" / "0.jpg")
    source = FaceFolder(tmp_path, SPEC, AUGMENT)
    assert (source.people, source.skipped) == (3, 1)
    assert all(source.paths[face].parent.name != "alone" for face in source.faces)


def test_empty_and_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no faces"):
        FaceFolder(tmp_path, SPEC, AUGMENT)
    with pytest.raises(TrainingError, match="no such folder"):
        FaceFolder(tmp_path / "absent", SPEC, AUGMENT)
    photo_folder(tmp_path, 2, 1)
    with pytest.raises(TrainingError, match="2 people with one face each"):
        FaceFolder(tmp_path, SPEC, AUGMENT)


def test_a_batch_larger_than_the_people_says_what_to_do(tmp_path: Path) -> None:
    source = FaceFolder(photo_folder(tmp_path, 4, 2), SPEC, AUGMENT)
    with pytest.raises(TrainingError, match=r"set sets.identities to 4"):
        source.draw(np.random.default_rng(0), 42, 2)


def test_a_damaged_photo_is_named(tmp_path: Path) -> None:
    source = FaceFolder(photo_folder(tmp_path, 2, 2), SPEC, AUGMENT)
    source.paths[1].write_bytes(b"not a photo")
    with pytest.raises(PhotoError, match=str(source.paths[1])):
        source.load(np.array([1]), None)


def test_faces_are_normalised_and_augmented_by_their_own_stream() -> None:
    crops = np.stack([pattern(0, i) for i in range(4)])
    source = FaceArray(crops, np.zeros(4, np.int64), SPEC, AUGMENT)
    plain = source.load(np.arange(4), None)
    assert plain.shape == (4, 3, 32, 32)
    assert plain.min() >= -1
    assert plain.max() <= 1
    whole = source.load(np.arange(4), [stream(0, 5, i) for i in range(4)])
    part = source.load(np.arange(2, 4), [stream(0, 5, i) for i in range(2, 4)])
    assert torch.equal(whole[2:], part)
    assert not torch.equal(whole, source.load(np.arange(4), [stream(0, 6, i) for i in range(4)]))


def test_crops_keep_geometry() -> None:
    ramp = np.tile(np.arange(64, dtype=np.uint8)[None, :, None] * 4, (64, 1, 3))
    half = centre_crop(ramp, SPEC)
    assert half.shape == (32, 32, 3)
    assert (half[0, :, 0] == 8 * np.arange(32) + 2).all()
    still = AugmentSettings(short_side=32, flip=False, rotation=0.0)
    assert np.abs(random_crop(ramp, SPEC, still, stream(0, 0)).astype(int) - half).max() == 0
    flips = [
        random_crop(ramp, SPEC, AugmentSettings(32, True, 0.0), stream(0, i))[0, 0, 0] for i in range(20)
    ]
    assert min(flips) < 10
    assert max(flips) > 240


def test_training_crops_show_the_photo_around_the_face() -> None:
    spec = InputSpec(224, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))  # the paper's: boxes
    across = np.tile(np.arange(250, dtype=np.uint8)[None, :, None], (300, 1, 3))
    down = np.tile((np.arange(300) * 0.8).astype(np.uint8)[:, None, None], (1, 250, 3))
    place = np.zeros(14, np.float32)
    place[:4] = 100, 100, 150, 180  # 50 x 80; extended 65 x 104, or 256 x 409.6
    crops = [
        random_crop(across, spec, AugmentSettings(256, False, 10.0), stream(0, i), place) for i in range(30)
    ]
    values = np.concatenate([crop[..., 0].ravel() for crop in crops]).astype(int)
    assert values.min() < 92 - 2, (
        "a turned crop reads the photo left of the extended box, which starts at 92.5"
    )
    assert values.max() > 158 + 2
    still = AugmentSettings(256, False, 0.0)
    tops = [random_crop(down, spec, still, stream(0, i), place)[0, 0, 0] / 0.8 for i in range(60)]
    assert min(tops) < 92, "the box's longer side enters: from its upper end"
    assert max(tops) > 125, "to the lowest place of a square"
    upright = random_crop(across, spec, still, stream(0, 0), place)
    assert abs(float(np.diff(upright[0, :, 0].astype(int)).mean()) - 65 / 256) < 0.01


@pytest.mark.parametrize("side", [20, 33, 48, 63])
def test_scaling_keeps_the_corner_in_place(side: int) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (side, side, 3), np.uint8)
    photo = np.asarray(cv2.GaussianBlur(noise, (0, 0), 3), np.uint8)
    expected = cv2.resize(photo, (32, 32), interpolation=cv2.INTER_LINEAR)
    inside = np.s_[2:-2, 2:-2]
    assert np.abs(centre_crop(photo, SPEC)[inside].astype(int) - expected[inside]).max() <= 2


def test_descriptor_files_without_pickle(tmp_path: Path) -> None:
    rows, labels = descriptors(5, 2)
    np.savez(tmp_path / "good.npz", descriptors=rows, labels=np.where(labels == "4", "", labels))
    source = DescriptorSource.open(tmp_path / "good.npz")
    assert source.people == 4
    norms = source.load(np.arange(4), None).norm(dim=1)
    torch.testing.assert_close(norms, torch.ones(4))
    np.savez(tmp_path / "pickled.npz", descriptors=rows, labels=labels.astype(object))
    np.savez(tmp_path / "nameless.npz", descriptors=rows)
    np.savez(tmp_path / "nan.npz", descriptors=np.full((2, 3), np.nan, np.float32), labels=labels[:2])
    np.savez(tmp_path / "short.npz", descriptors=rows, labels=labels[:3])
    np.savez(tmp_path / "letters.npz", descriptors=np.array([["a"]]), labels=labels[:1])
    (tmp_path / "text.npz").write_text("no zip")
    (tmp_path / "empty.npz").touch()
    np.savez_compressed(tmp_path / "bent.npz", descriptors=rows, labels=labels)
    bent = bytearray((tmp_path / "bent.npz").read_bytes())
    bent[200:260] = bytes(60)
    (tmp_path / "bent.npz").write_bytes(bent)
    for name, message in [
        ("pickled", "not a readable"),
        ("nameless", "labels"),
        ("nan", "row 0"),
        ("short", "do not fit"),
        ("letters", "must be numbers"),
        ("text", "not a readable"),
        ("empty", "not a readable"),
        ("bent", "not a readable"),
        ("absent", "no such"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            DescriptorSource.open(tmp_path / f"{name}.npz")


def test_faces_are_cut_as_at_run_time_and_looked_for_once(
    tmp_path: Path, portrait_file: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "photos"
    for name in ("P001", "P002"):
        (root / name).mkdir(parents=True)
        for number in range(2):
            (root / name / f"{number}.jpg").write_bytes(portrait_file(name).read_bytes())
    spec = InputSpec(112, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    source = FaceFolder(root, spec, AugmentSettings(short_side=112), tmp_path / "run" / "places.bin")
    detector, descriptor = load_detector("mtcnn"), load_descriptor("sface")
    photo = open_photo(source.paths[0])
    seen = detector.detect(photo.pixels, min_face=40, threshold=0.7, longest_side=1600)
    (crop,) = descriptor.crops(photo.pixels, seen)
    given = source.load(np.array([0]), None)[0].permute(1, 2, 0).numpy()
    assert np.abs(given - crop).max() <= 1, "what a descriptor is given"

    monkeypatch.setattr(face_places, "load_detector", lambda name: pytest.fail("looked for again"))
    again = FaceFolder(root, spec, AugmentSettings(short_side=112), tmp_path / "run" / "places.bin")
    assert (again.place(3) == source.place(3)).all()


def test_places_are_appended_and_a_cut_record_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = [path for own in identity_photos(photo_folder(tmp_path / "photos", 3, 2)) for path in own]
    looked: list[Path] = []

    def place(path: Path, detector: object) -> np.ndarray:
        if len(looked) == 4:
            raise KeyboardInterrupt
        looked.append(path)
        return np.full(14, photos.index(path), np.float32)

    monkeypatch.setattr(face_places, "_place", place)
    monkeypatch.setattr(face_places, "load_detector", lambda name: object())
    monkeypatch.setattr(face_places, "KEPT_EVERY", 2)
    cache = tmp_path / "places.bin"
    with pytest.raises(KeyboardInterrupt):
        face_places.face_places(photos, cache)
    first = cache.read_bytes()
    assert len(first) == 4 * 64
    cache.write_bytes(first[:-1])
    looked.clear()
    for known in (photos, photos[::-1]):
        found = face_places.face_places(known, cache)[:, 0].tolist()
        assert found == [photos.index(path) for path in known]
    assert looked == photos[3:]
    assert cache.read_bytes()[: 3 * 64] == first[: 3 * 64]


def test_a_photo_without_a_face_gives_its_middle(tmp_path: Path) -> None:
    source = FaceFolder(photo_folder(tmp_path, 2, 2), SPEC, AUGMENT)
    whole = np.asarray(Image.open(source.paths[0]))
    middle = (cv2.resize(whole[11:29, 11:29], (32, 32)) - 127.5) / 128
    assert np.abs(source.load(np.array([0]), None)[0].permute(1, 2, 0).numpy() - middle).mean() < 0.05


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
    fitted = VirtualPeople.fit(rows, owner).with_quality(rows, owner)
    assert fitted.person_spread == pytest.approx(0.3, abs=0.1)
    assert fitted.face_spread == pytest.approx(0.4, abs=0.15)
    plain = VirtualPeople.fit(rows, owner).with_quality(*_without_quality(rng, model))
    assert plain.face_spread < 0.1


def _without_quality(rng: np.random.Generator, model: VirtualPeople) -> tuple[np.ndarray, np.ndarray]:
    calm = VirtualPeople(model.mean, model.between, model.within)
    owner = np.repeat(np.arange(200), 6)
    return calm.faces(rng, calm.people(rng, 200), owner), owner


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("collected")
    run = invented_run(place, 6, [(a, b) for a in range(6) for b in range(a + 1, 6)])
    for number, row in enumerate(run.manifest("labels").rows()):
        pixels = np.random.default_rng(number).integers(0, 255, (100, 200, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(row["photo"])
    run = CollectRun.begin(run.path, split=(1.0, 0.0, 0.0))
    write_result(run, place / "set", unanswered="unknown")
    return place / "set"


def test_a_data_set_is_a_source_of_descriptors(collected: Path) -> None:
    source = DescriptorSource.open(collected)
    assert (source.people, source.dim) == (6, 128)
    assert len(source.faces) == 2 * 15 + 3 * 6  # in photos, and portraits


def test_a_data_set_is_a_source_of_faces_cut_out_of_its_photos(collected: Path, tmp_path: Path) -> None:
    settings = load_settings("tiny", ["augment.short_side=40"])
    source = open_source(collected, new_backbone(settings), settings, tmp_path)
    assert source.people == 6
    faces = source.load(np.array([0, 1]), None)
    assert faces.shape[:2] == (2, 3)


@pytest.mark.usefixtures("one_thread")
def test_sets_are_trained_on_a_data_set(collected: Path, tmp_path: Path) -> None:
    head = ["aggregator.dim=8", "aggregator.clusters=2", "aggregator.start_sets=50"]
    sets = ["sets.steps=2", "sets.identities=4", "sets.sizes=[2]"]
    settings = load_settings("default", ["backbone.dim=128", *head, *sets])
    report = run_sets(collected, tmp_path / "run", settings)
    assert report.steps == 2
    assert (tmp_path / "run" / "network.safetensors").is_file()
