from __future__ import annotations

from importlib.util import find_spec

# the engine comes with the extra `cluster`, which `make install` installs
collect_ignore_glob = [] if find_spec("distributed") else ["test_processes.py", "test_s3_photos.py"]
