"""A PostgreSQL server of the tests' own, on a socket in a folder of its own."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.support.memory import quick_place

USER = "postgres"  # a server does not run as root


def binaries() -> Path | None:
    """Return the folder of PostgreSQL's programs, or None.

    That of a version, where there is one: on Debian, what lies in the path needs packages more.
    """
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    folders += map(Path, os.environ.get("PATH", "").split(os.pathsep))
    return next((folder for folder in folders if (folder / "initdb").is_file()), None)


def missing() -> str:
    """Return what is missing for a server, or nothing."""
    if binaries() is None:
        return "PostgreSQL is not installed: its stores were not tested"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(USER)
        except KeyError:
            return f"there is no user {USER}, and PostgreSQL does not run as root"
    return ""


class PostgresServer:
    """A server that can be killed and started again."""

    def __init__(self) -> None:
        found = binaries()
        assert found is not None
        self._binaries = found
        place = quick_place() or "/tmp"  # noqa: S108  (sockets need a short path)
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir=place))
        self._as_user = {"user": USER, "group": USER} if os.geteuid() == 0 else {}
        if self._as_user:
            shutil.chown(self.folder, USER, USER)
        self._databases = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._call("initdb", "-D", self.folder / "data", "-U", USER, "-A", "trust", "--no-sync")

    def _call(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [self._binaries / program, *map(str, arguments)], check=False,
            capture_output=True, text=True, cwd=self.folder, timeout=120, **self._as_user,
        )  # fmt: skip
        assert not done.returncode, f"{program}: {done.stderr}\n{self._last_words()}"

    def start(self) -> None:
        """Start the server, and wait until it answers.

        One that was killed may leave shared memory in use for a moment: it is then started again.
        """
        ready = [self._binaries / "pg_isready", "-q", "-h", self.folder]
        deadline = time.monotonic() + 120
        while True:
            if self._process is None or self._process.poll() is not None:
                self._launch()
            if not subprocess.run(ready, check=False).returncode:
                return
            assert time.monotonic() < deadline, self._last_words()
            time.sleep(0.05)

    def _last_words(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""

    def _launch(self) -> None:
        settings = {"unix_socket_directories": self.folder, "listen_addresses": "",
                    "max_connections": 100, "shared_buffers": "64MB"}  # fmt: skip
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", str(self.folder / "data"), *options],
                stdout=log, stderr=log, cwd=self.folder, **self._as_user,
            )  # fmt: skip

    def new_database(self, folder: Path | None = None) -> str:
        """Make an empty database, of which the files lie in a folder; return its address."""
        self.start()  # where a test left it killed, or starting
        self._databases += 1
        name = f"store{self._databases}"
        at: tuple[str, ...] = ()
        if folder is not None:
            if self._as_user:
                shutil.chown(folder, USER, USER)
            self._sql("postgres", f"CREATE TABLESPACE {name} LOCATION '{folder}'")
            at = ("-D", name)
        self._call("createdb", "-h", self.folder, "-U", USER, *at, name)
        return f"postgresql://{USER}@/{name}?host={self.folder}"

    def program(self, name: str) -> str:
        """Return the path of one of PostgreSQL's programs."""
        return str(self._binaries / name)

    def set_for_all(self, address: str, setting: str, value: str) -> None:
        """Change a setting of a database, and end the sessions that have the old one."""
        name = _name(address)
        self._sql("postgres", f"ALTER DATABASE {name} SET {setting} = {value}")
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
        self._sql("postgres", f"{ended} '{name}'")

    def _sql(self, database: str, sql: str) -> None:
        self._call("psql", "-h", self.folder, "-U", USER, "-d", database, "-c", sql)

    def kill(self) -> None:
        """Kill the server and all of its processes, as a power cut would."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGSTOP)  # so that it starts no more of them
        children = subprocess.run(
            ["pgrep", "-P", str(self._process.pid)], capture_output=True, text=True, check=False
        )
        for pid in [self._process.pid, *map(int, children.stdout.split())]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def remove(self) -> None:
        """Kill the server and delete its files."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _name(address: str) -> str:
    """Return the database of an address."""
    return address.partition("@/")[2].partition("?")[0]
