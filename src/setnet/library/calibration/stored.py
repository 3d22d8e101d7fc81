"""Which constants give similarities their meaning in a library: its own, or those of its descriptor model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from setnet.errors import InvalidInputError
from setnet.library.database import Database
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.recognition.probability import MatchModel

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_KEY = "calibration"


def match_model_of(catalog: PhotoCatalog, settings: FaceSettings) -> MatchModel:
    """Return the library's own calibration if it has one for its descriptor model, else the model's."""
    return own_calibration(catalog, settings) or model_calibration(settings)


def model_calibration(settings: FaceSettings) -> MatchModel:
    """Return the constants of the library's descriptor model."""
    from setnet.faces import calibration_of

    return MatchModel.of(calibration_of(settings.descriptor, "match"))


def own_calibration(catalog: PhotoCatalog, settings: FaceSettings) -> MatchModel | None:
    """Return what `setnet calibrate` fitted to the library; None without, or for another model or metric."""
    text = catalog.meta(_KEY)
    if text is None:
        return None
    try:
        stored = json.loads(text)
        return MatchModel.of(stored["model"]) if stored["descriptor"] == _fitted_to(settings) else None
    except (ValueError, TypeError, KeyError, InvalidInputError):
        return None  # of a later setnet: the model's own constants are always right enough


def store_calibration(database: Database, settings: FaceSettings, model: MatchModel | None) -> None:
    """Store a library's own calibration; None removes it."""
    with database.writing() as db:
        if model is None:
            db.execute("DELETE FROM meta WHERE key = ?", (_KEY,))
            return
        text = json.dumps({"descriptor": _fitted_to(settings), "model": model.to_dict()})
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_KEY, text))


def _fitted_to(settings: FaceSettings) -> str:
    """Return which descriptors similarities are of: under a new metric, they have another meaning."""
    from setnet.faces import model_entry

    return model_entry(settings.descriptor, "descriptor").identity
