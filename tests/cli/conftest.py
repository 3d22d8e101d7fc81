from __future__ import annotations

from importlib.util import find_spec

# psycopg comes with the extra `postgres`, which `make install` installs
collect_ignore = [] if find_spec("psycopg") else ["test_immich.py", "test_pg.py"]
