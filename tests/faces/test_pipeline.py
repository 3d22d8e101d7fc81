"""The whole way from a photo to described faces, with the real models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from setnet.errors import InvalidInputError, PhotoError
from setnet.faces import Face, FaceSettings, Photo, StageTimes, extract_faces

PERSONS = [f"P{number:03d}" for number in range(1, 11)]
FacesIn = Callable[[str, str], list[Face]]


def largest(faces: list[Face]) -> Face:
    return max(faces, key=lambda face: face.quality.size)


def test_a_face_has_all_its_parts(faces_in: FacesIn) -> None:
    (face,) = faces_in("P001", "studio_portrait")
    assert face.landmarks.shape == (5, 2)
    assert face.landmarks.dtype == np.float32
    assert face.descriptor.shape == (128,)
    assert face.descriptor.dtype == np.float32
    assert np.linalg.norm(face.descriptor) == pytest.approx(1, abs=1e-5)
    assert 0.9 < face.score == face.quality.score <= 1
    assert face.box.x0 < face.landmarks[:, 0].min() < face.landmarks[:, 0].max() < face.box.x1
    assert face.box.y0 < face.landmarks[:, 1].min() < face.landmarks[:, 1].max() < face.box.y1


def test_a_selfie_is_nearest_to_its_own_portrait(faces_in: FacesIn) -> None:
    portraits = np.stack([largest(faces_in(person, "studio_portrait")).descriptor for person in PERSONS])
    selfies = np.stack([largest(faces_in(person, "amateur_selfie")).descriptor for person in PERSONS])
    similarity = selfies @ portraits.T
    assert similarity.argmax(axis=1).tolist() == list(range(10))
    others = similarity[~np.eye(10, dtype=bool)]
    assert np.diag(similarity).mean() > others.mean() + 0.4


def test_the_same_photo_gives_the_same_faces(portrait: Photo) -> None:
    (first,), (second,) = extract_faces(portrait), extract_faces(portrait.pixels)
    np.testing.assert_array_equal(first.descriptor, second.descriptor)
    assert first.box == second.box
    assert first.quality == second.quality


def test_neighbours_in_a_photo_do_not_change_a_descriptor(faces_in: FacesIn, people: Path) -> None:
    from setnet.faces import load_descriptor, open_photo
    from setnet.faces.detector import Detections

    sheet = open_photo(people / "P007" / "assets" / "emotions_sheet.jpg")
    faces = faces_in("P007", "emotions_sheet")
    descriptor = load_descriptor("sface")
    detections = Detections(
        np.array([[f.box.x0, f.box.y0, f.box.x1, f.box.y1] for f in faces], np.float32),
        np.array([f.score for f in faces], np.float32),
        np.stack([f.landmarks for f in faces]),
    )
    crops = descriptor.crops(sheet.pixels, detections)
    one_by_one = np.concatenate([descriptor.describe([crop]) for crop in crops])
    together = descriptor.describe(crops + crops)  # 32: more than a batch
    np.testing.assert_allclose(together[:16], one_by_one, atol=2e-6)
    np.testing.assert_allclose(together[16:], one_by_one, atol=2e-6)


def test_a_file_may_be_given_directly(people: Path) -> None:
    path = people / "P002" / "assets" / "amateur_selfie.jpg"
    by_path, by_bytes = extract_faces(path), extract_faces(path.read_bytes())
    np.testing.assert_array_equal(by_path[0].descriptor, by_bytes[0].descriptor)
    with pytest.raises(PhotoError, match="pixels are more than the limit"):
        extract_faces(path, FaceSettings(max_pixels=1000))


def test_blur_lowers_sharpness_and_can_leave_a_face_out(small_portrait: npt.NDArray[np.uint8]) -> None:
    values = []
    for sigma in (0.01, 2, 4, 8):
        (face,) = extract_faces(np.asarray(cv2.GaussianBlur(small_portrait, (0, 0), sigma), np.uint8))
        values.append(face.quality.sharpness)
    assert values == sorted(values, reverse=True)
    assert values[0] > 2 * values[-1]
    blurred = np.asarray(cv2.GaussianBlur(small_portrait, (0, 0), 8), np.uint8)
    assert extract_faces(blurred, FaceSettings(min_sharpness=values[1])) == []
    assert len(extract_faces(small_portrait, FaceSettings(min_sharpness=values[1]))) == 1


def test_light_and_contrast_leave_sharpness_alone(small_portrait: npt.NDArray[np.uint8]) -> None:
    dim = (small_portrait * 0.6 + 40).astype(np.uint8)
    (bright,), (grey,) = extract_faces(small_portrait), extract_faces(dim)
    assert grey.quality.sharpness == pytest.approx(bright.quality.sharpness, rel=0.15)


def test_pose_follows_the_head(faces_in: FacesIn, small_portrait: npt.NDArray[np.uint8]) -> None:
    (frontal,) = extract_faces(small_portrait)
    assert abs(frontal.quality.yaw) < 10
    assert abs(frontal.quality.roll) < 5
    centre = (small_portrait.shape[1] / 2, small_portrait.shape[0] / 2)
    matrix = cv2.getRotationMatrix2D(centre, -20, 1)  # clockwise
    rotated = cv2.warpAffine(small_portrait, matrix, small_portrait.shape[1::-1])
    (tilted,) = extract_faces(np.asarray(rotated, np.uint8))
    assert tilted.quality.roll - frontal.quality.roll == pytest.approx(20, abs=4)
    # Tilting the photo must not look like turning the head.
    assert tilted.quality.yaw == pytest.approx(frontal.quality.yaw, abs=8)
    (mirrored,) = extract_faces(np.ascontiguousarray(small_portrait[:, ::-1]))
    assert mirrored.quality.yaw == pytest.approx(-frontal.quality.yaw, abs=6)
    turned = [abs(face.quality.yaw) for face in faces_in("P001", "character_sheet")]
    assert max(turned) > 40


def test_turned_heads_can_be_left_out(people: Path, faces_in: FacesIn) -> None:
    path = people / "P001" / "assets" / "character_sheet.jpg"
    few = extract_faces(path, FaceSettings(max_turn=30))
    assert 0 < len(few) < len(faces_in("P001", "character_sheet"))
    assert all(abs(face.quality.yaw) <= 30 for face in few)


def test_the_threshold_is_obeyed(portrait: Photo) -> None:
    assert extract_faces(portrait, FaceSettings(threshold=1.0)) == []


def test_time_is_measured_by_stage(small_portrait: npt.NDArray[np.uint8]) -> None:
    times = StageTimes()
    extract_faces(small_portrait, times=times)
    once = (times.detector, times.descriptor)
    extract_faces(small_portrait, times=times)
    assert 0 < once[0] < times.detector
    assert 0 < once[1] < times.descriptor


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((5, 5), np.uint8),
        np.zeros((5, 5, 4), np.uint8),
        np.zeros((5, 5, 3)),
        np.zeros((0, 5, 3), np.uint8),
        7,
    ],
)
def test_what_is_no_image_is_refused(image: object) -> None:
    with pytest.raises(InvalidInputError, match="image"):
        extract_faces(image)  # type: ignore[arg-type]


def test_settings_survive_json() -> None:
    settings = FaceSettings(detector="yunet", min_face=55, threshold=0.8, min_sharpness=0.1)
    assert FaceSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"min_face": 0}, "min_face must be a number from 1"),
        ({"threshold": 1.5}, "threshold must be"),
        ({"longest_side": "big"}, "longest_side must be"),
        ({"min_fase": 3}, "unknown face setting 'min_fase': valid are"),
    ],
)
def test_wrong_settings_are_named(values: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        FaceSettings.from_dict(values)


def test_an_unknown_model_is_answered_with_the_known_ones(portrait: Photo) -> None:
    with pytest.raises(
        InvalidInputError, match="unknown detector 'retina': valid are 'cascade', 'mtcnn', 'yunet'"
    ):
        extract_faces(portrait, FaceSettings(detector="retina"))


def test_faces_that_are_known_are_described_without_being_found_again(people: Path, tmp_path: Path) -> None:
    from PIL import Image

    from setnet.faces import describe_faces

    portrait = people / "P001" / "assets" / "studio_portrait.jpg"
    with Image.open(portrait) as opened:
        opened.convert("RGB").resize((3600, 3600)).save(
            tmp_path / "large.jpg", quality=92
        )  # decoded at a half
        opened.convert("RGB").resize((300, 300)).save(tmp_path / "small.jpg", quality=92)
    for photo in (portrait, tmp_path / "large.jpg", tmp_path / "small.jpg"):
        faces = extract_faces(photo)
        again = describe_faces(photo, [face.box for face in faces], [face.landmarks for face in faces])
        assert len(again) == len(faces) == 1
        np.testing.assert_allclose(again[0], faces[0].descriptor, atol=1e-3)
    assert describe_faces(portrait, [], []).shape == (0, 128)
    with pytest.raises(InvalidInputError, match="1 boxes and 0 landmarks"):
        describe_faces(portrait, [[0, 0, 9, 9]], [])
