"""Settings as a library stores them: whatever is there instead is refused with its name."""

from typing import Any

import pytest

from setnet.errors import InvalidInputError
from setnet.faces import FaceSettings


@pytest.mark.parametrize("values", [None, 5, "text", [], [{}], {"detector": 3}, {"descriptor": []}])
def test_what_holds_no_settings_is_refused(values: Any) -> None:
    with pytest.raises(InvalidInputError, match="must be"):
        FaceSettings.from_dict(values)


def test_a_preset_gives_way_to_what_is_chosen() -> None:
    assert FaceSettings.preset("default") == FaceSettings()
    quick = FaceSettings.preset("quick")
    assert quick == FaceSettings(detector="cascade")
    assert FaceSettings.preset("quick", detector="yunet", min_face=50) == FaceSettings("yunet", min_face=50)
    with pytest.raises(InvalidInputError, match="unknown preset 'fast': valid are 'default', 'quick'"):
        FaceSettings.preset("fast")
