"""The machine under a node: its clocks, files, threads, random bytes, listening sockets and databases.

Every module of `metalog`, `snapshots`, `client`, `planning`, `targets` and `server`, the index of last use, and
`ops.sync` reach the machine through the six objects of this module, through the running event loop, or through the
methods of a Path (tests/simulation/test_seams.py has the contract and its exceptions). Their attributes are the
functions of the operating system, so that a call costs as much as one through `os` or `time`. A simulation replaces the
attributes of all six for as long as it runs, and knows which simulated process calls: one object per interpreter, as
FoundationDB's g_network, instead of a parameter of every function that takes a path.
"""

import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from aclog.metalog.values import define

# Modules that commands seldom need are imported by the call: they would take a tenth of the start of a command.


def _mkdtemp(prefix: str | None = None) -> str:
    from tempfile import mkdtemp  # noqa: PLC0415

    return mkdtemp(prefix=prefix)


def _rmtree(*args: Any, **kwargs: Any) -> None:
    from shutil import rmtree  # noqa: PLC0415

    rmtree(*args, **kwargs)


def _getaddrinfo(*args: Any, **kwargs: Any) -> Any:
    from socket import getaddrinfo  # noqa: PLC0415

    return getaddrinfo(*args, **kwargs)


def _socket(*args: Any, **kwargs: Any) -> Any:
    from socket import socket  # noqa: PLC0415

    return socket(*args, **kwargs)


def _gethostname() -> str:
    from socket import gethostname  # noqa: PLC0415

    return gethostname()


def _sqlite(*args: Any, **kwargs: Any) -> Any:
    from sqlite3 import connect  # noqa: PLC0415

    return connect(*args, **kwargs)


def _uniform(low: float, high: float) -> float:
    from random import SystemRandom  # noqa: PLC0415 - of its own: it leaves the program's seed alone

    return SystemRandom().uniform(low, high)


def _boot_time() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


@define(eq=False, repr=False)
class Clock:
    """The clocks, as in `time`; `boot_time` is in seconds, and also counts suspension where the system does."""

    monotonic: Callable[[], float] = time.monotonic
    perf_counter: Callable[[], float] = time.perf_counter
    thread_time: Callable[[], float] = time.thread_time
    boot_time: Callable[[], float] = _boot_time
    time_ns: Callable[[], int] = time.time_ns
    sleep: Callable[[float], None] = time.sleep
    time: Callable[[], float] = time.time

    def wall_seconds(self) -> float:
        """Return the time in seconds since 1970: for a default value, which is bound when its class is made."""
        return self.time()

    def monotonic_seconds(self) -> float:
        """Return the monotonic clock; see wall_seconds."""
        return self.monotonic()


@define(eq=False, repr=False)
class Disk:
    """The calls with a file descriptor, as in `os`, and the locks of `fcntl`. Names are changed by methods of Path."""

    open: Callable[..., int] = os.open
    close: Callable[[int], None] = os.close
    read: Callable[[int, int], bytes] = os.read
    write: Callable[[int, Any], int] = os.write
    pread: Callable[[int, int, int], bytes] = os.pread
    preadv: Callable[[int, Any, int], int] = os.preadv
    pwrite: Callable[[int, Any, int], int] = os.pwrite
    fsync: Callable[[int], None] = os.fsync
    ftruncate: Callable[[int, int], None] = os.ftruncate
    fstat: Callable[[int], os.stat_result] = os.fstat
    stat: Callable[..., os.stat_result] = os.stat
    fchmod: Callable[[int, int], None] = os.fchmod
    listdir: Callable[[Any], list[str]] = os.listdir
    dup: Callable[[int], int] = os.dup
    fdopen: Callable[..., Any] = os.fdopen
    lockf: Callable[..., Any] = fcntl.lockf
    flock: Callable[..., Any] = fcntl.flock
    fcntl: Callable[..., Any] = fcntl.fcntl
    access: Callable[..., bool] = os.access
    mkdtemp: Callable[..., str] = _mkdtemp
    rmtree: Callable[..., Any] = _rmtree

    def sync(self, fd: int) -> None:
        """Make a file durable: `fsync`, for a default value, which is bound when its function is made."""
        self.fsync(fd)


@define(eq=False, repr=False)
class Threads:
    """The threads and locks of `threading`, and the id of the process."""

    Lock: Callable[[], Any] = threading.Lock
    Condition: Callable[..., Any] = threading.Condition
    Event: Callable[[], Any] = threading.Event
    Thread: Callable[..., Any] = threading.Thread
    current_thread: Callable[[], Any] = threading.current_thread
    getpid: Callable[[], int] = os.getpid

    def lock(self) -> Any:
        """Return a new Lock: for a default value, which is bound when its class is made."""
        return self.Lock()

    def condition(self) -> Any:
        """Return a new Condition; see lock."""
        return self.Condition()

    def event(self) -> Any:
        """Return a new Event; see lock."""
        return self.Event()

    def process_id(self) -> int:
        """Return the id of the process; see lock."""
        return self.getpid()


@define(eq=False, repr=False)
class Randomness:
    """Random bytes and numbers."""

    urandom: Callable[[int], bytes] = os.urandom
    uniform: Callable[[float, float], float] = _uniform
    """For delays that spread retries; not a secret."""

    def token_bytes(self, count: int) -> bytes:
        """Return `count` random bytes, as secrets.token_bytes."""
        return self.urandom(count)

    def token_hex(self, count: int) -> str:
        """Return `count` random bytes as hexadecimal digits, as secrets.token_hex."""
        return self.urandom(count).hex()


@define(eq=False, repr=False)
class Sockets:
    """Listening sockets, and the name of the host; connections come from the event loop."""

    getaddrinfo: Callable[..., Any] = _getaddrinfo
    socket: Callable[..., Any] = _socket
    gethostname: Callable[[], str] = _gethostname


@define(eq=False, repr=False)
class Databases:
    """SQLite databases, which have their own calls to the disk."""

    connect: Callable[..., Any] = _sqlite
    """sqlite3.connect."""


clock = Clock()
disk = Disk()
threads = Threads()
randomness = Randomness()
sockets = Sockets()
databases = Databases()
