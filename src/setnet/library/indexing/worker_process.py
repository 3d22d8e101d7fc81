"""The main module of a worker process: `python -m setnet.library.indexing.worker_process FD SETTINGS`."""

from __future__ import annotations

import json
import sys
from multiprocessing.connection import Connection

from setnet.faces import FaceSettings
from setnet.library.indexing.worker import serve_tasks

if __name__ == "__main__":
    serve_tasks(Connection(int(sys.argv[1])), FaceSettings.from_dict(json.loads(sys.argv[2])))
