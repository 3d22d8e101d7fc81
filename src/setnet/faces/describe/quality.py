"""Measures how good a found face is, from its landmarks and its pixels."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from setnet.faces.describe.align import five_point_crop

# Proportions of an average head, in distances between the eyes: how far the nose's tip stands out
# in front of them, and how far below them the mouth is. The nose halves that way when seen frontally.
_NOSE_OUT, _EYES_TO_MOUTH, _NOSE_DOWN = 0.55, 1.15, 0.495


def pose(landmarks: npt.NDArray[np.float32]) -> tuple[float, float, float]:
    """Return estimates of yaw, pitch and roll in degrees from the five landmarks.

    The nose's tip lies in front of the plane of eyes and mouth, so that turning the head moves it
    sideways by the tangent of the angle; nodding moves it up or down likewise.
    """
    left, right, nose, mouth_left, mouth_right = np.asarray(landmarks, np.float64)
    across = right - left
    roll = math.atan2(across[1], across[0])
    turn_back = np.array([[math.cos(roll), math.sin(roll)], [-math.sin(roll), math.cos(roll)]])
    eyes, mouth = (left + right) / 2, (mouth_left + mouth_right) / 2
    tip, down = turn_back @ (nose - eyes), turn_back @ (mouth - eyes)
    between_eyes, to_mouth = max(float(np.hypot(*across)), 1e-6), max(float(down[1]), 1e-6)
    # The middle line of a face runs from between the eyes to the mouth, not straight down.
    aside = tip[0] - down[0] * tip[1] / to_mouth
    yaw = math.atan(aside / between_eyes / _NOSE_OUT)
    pitch = -math.atan((tip[1] / to_mouth - _NOSE_DOWN) * _EYES_TO_MOUTH / _NOSE_OUT)
    return math.degrees(yaw), math.degrees(pitch), math.degrees(roll)


def sharpness(pixels: npt.NDArray[np.uint8], landmarks: npt.NDArray[np.float32]) -> float:
    """Return the share of the aligned face's contrast that is fine detail.

    Faces that are blurred, or so small that the crop had to be enlarged, have little of it; light
    and contrast do not matter.
    """
    import cv2

    grey = cv2.cvtColor(five_point_crop(pixels, landmarks), cv2.COLOR_RGB2GRAY).astype(np.float32)
    face = grey[16:96, 16:96]  # without the corners, which show the background
    contrast = float(face.std())
    if contrast < 1.0:
        return 0.0
    return float((face - cv2.GaussianBlur(face, (0, 0), 1.5)).std()) / contrast
