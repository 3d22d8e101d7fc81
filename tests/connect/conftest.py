from __future__ import annotations

from importlib.util import find_spec

# psycopg comes with the extra `postgres`, which `make install` installs
collect_ignore_glob = [] if find_spec("psycopg") else ["postgres/*", "immich/*"]
