"""Print the OpenAPI document: `python -m tests.support.openapi_document`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from setnet.web import create_app

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(create_app(Path(folder) / "library").openapi()))
