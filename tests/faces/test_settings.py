"""Settings as a library stores them: whatever is there instead is refused with its name."""

from typing import Any

import pytest

from setnet.errors import InvalidInputError
from setnet.faces import FaceSettings


@pytest.mark.parametrize("values", [None, 5, "text", [], [{}], {"detector": 3}, {"descriptor": []}])
def test_what_holds_no_settings_is_refused(values: Any) -> None:
    with pytest.raises(InvalidInputError, match="must be"):
        FaceSettings.from_dict(values)
