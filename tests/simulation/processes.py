"""Simulated processes on hosts, and the simulated machine that they get from aclog.metalog.machine."""

import asyncio
import concurrent.futures._base
import gc
import io
import logging
import pathlib
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from aclog.metalog import machine
from tests.simulation.databases import connect
from tests.simulation.disk import ROOT, Files, SimDisk
from tests.simulation.loop import SimLoop
from tests.simulation.network import Network, Socket
from tests.simulation.scheduler import Condition, Fiber, Lock, ProcessDeathError, Scheduler, Thread, ThreadEvent

EPOCH = 1_790_000_000.0
"""The time at which every world begins, in seconds since 1970."""


class Host:
    """A machine with an address, a disk and a wall clock; runs one process at a time."""

    def __init__(self, scheduler: Scheduler, network: Network, name: str, number: int) -> None:
        self.scheduler, self.network, self.name = scheduler, network, name
        self.address = f"10.0.0.{number}"
        self.disk = SimDisk(number)
        self.clock_offset = 0.0
        self.has_power = True
        self.boots = 0
        self.process: Process | None = None
        self.disk.mkdir(f"{ROOT}/{name}/tmp", parents=True, exist_ok=True)
        self.disk.sync_all()

    def start(self, main: Callable[["Process"], Coroutine[Any, Any, Any]]) -> "Process":
        """Start a process that runs a coroutine on an event loop, as asyncio.run does."""
        self.boots += 1
        self.has_power = True
        self.process = process = Process(self)
        self.network.hosts[self.address] = process
        process.start(main)
        return process


class Process:
    """A process of a host: its threads, event loops, files and sockets, and how it ends."""

    def __init__(self, host: Host) -> None:
        self.host, self.scheduler, self.network, self.disk = host, host.scheduler, host.network, host.disk
        self.name, self.boot, self.address = host.name, host.boots, host.address
        self.root = f"{ROOT}/{host.name}"
        self.pid = self.scheduler.descriptors = self.scheduler.descriptors + 1
        self.fibers: dict[Fiber, None] = {}
        self.threads: dict[Fiber, Thread] = {}
        self.loops: list[SimLoop] = []
        self.sockets: dict[Socket, None] = {}
        self.files = Files(self)
        self.dead = False
        self.dying = False
        self.lost_power = False
        self.paused_until = 0.0
        self.calls_to_crash = 0
        """System calls until this process crashes; 0: it does not."""
        self.error: BaseException | None = None
        """What its main coroutine raised."""
        self.ended = False
        """Whether its main coroutine has ended."""
        self.on_end: Callable[[Process], object] = lambda _: None

    def __str__(self) -> str:
        return f"{self.name}#{self.boot}"

    @property
    def is_reachable(self) -> bool:
        """Whether the kernel of its host answers."""
        return self.host.has_power

    def monotonic(self) -> float:
        """Return the monotonic clock of the host."""
        return self.scheduler.now

    def wall_clock(self) -> float:
        """Return the wall clock of the host."""
        return EPOCH + self.scheduler.now + self.host.clock_offset

    def start(self, main: Callable[["Process"], Coroutine[Any, Any, Any]]) -> None:
        """Run a coroutine in the process's first thread."""

        def run() -> None:
            try:
                with asyncio.Runner(loop_factory=lambda: SimLoop(self.scheduler)) as runner:
                    runner.run(main(self))
            except ProcessDeathError:
                raise
            except BaseException as error:  # noqa: BLE001 - the world judges it
                if self.dead or self.dying:
                    raise ProcessDeathError from None
                self.error = error
            self.ended = True
            self.scheduler.note(self, "ended", "" if self.error is None else repr(self.error))
            self.scheduler.after(0.0, self._exit)

        self.scheduler.spawn(self, run, "main")

    def _exit(self) -> None:
        """End as a process does whose main function has returned."""
        if not self.dead:
            self.kill()
            self.on_end(self)

    def report(self, what: str) -> None:
        """Report an error that no code handles: a failure of the seed."""
        self.scheduler.fail(f"{self}: {what}")

    # How it ends

    def system_call(self, name: str, path: object) -> None:
        """A point at which the process may crash, or another of its threads may run."""
        if self.dead:
            raise ProcessDeathError
        if self.crashes_now(name, path):
            self.crash()
        self.scheduler.step(0.02)

    def crashes_now(self, name: str, path: object) -> bool:
        """Count a system call; return whether the process crashes in it."""
        self.scheduler.fiber()
        if self.calls_to_crash:
            self.calls_to_crash -= 1
            if not self.calls_to_crash:
                self.scheduler.note(self, "crashes at", name, path)
                self.scheduler.cover("crash at a system call")
                return True
        return False

    def crash(self) -> None:
        """End the process from inside one of its threads."""
        self.dying = True
        raise ProcessDeathError

    def bury(self) -> None:
        """End a process that has crashed; called by the hub."""
        if not self.dead:
            self.kill()
            self.on_end(self)

    def kill(self, *, power: bool = False) -> None:
        """End the process at once, as SIGKILL does, or with the power of its host; called by the hub."""
        if self.dead:
            return
        power = power or self.lost_power
        self.dead = True
        self.host.has_power = not power
        self.scheduler.note(self, "lost power" if power else "killed")
        for fiber in list(self.fibers):
            self.scheduler.end(fiber)
        self.fibers.clear()
        self.network.process_ended(self, silent=power)
        if power:
            self.disk.lose_power(self.scheduler.random, self.scheduler.cover)
        self.files.open_files.clear()
        for loop in self.loops:
            loop._ready.clear()
            loop._scheduled.clear()
            loop._closed = True
        self.loops.clear()
        self.threads.clear()


class _Handler(logging.Handler):
    """Log lines of simulated processes, in the trace."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def emit(self, record: logging.LogRecord) -> None:
        fiber = self._scheduler.current
        if fiber is None or fiber.process.dead or fiber.process.dying:
            return  # a finalizer of what a crash left behind
        process = fiber.process
        try:
            text = record.getMessage()
        except Exception as error:  # noqa: BLE001 - a wrong log line is a failure of its own
            text = f"{record.msg!r}: {error!r}"
        self._scheduler.note(process, record.levelname, text)
        if record.exc_info and record.exc_info[1] is not None and record.levelno >= logging.ERROR:
            self._scheduler.fail(f"{process}: {text}: {record.exc_info[1]!r}")


_PATH_METHODS = (
    *("stat", "exists", "is_dir", "is_file", "iterdir", "glob", "resolve", "open", "read_bytes", "write_bytes"),
    *("unlink", "replace", "rename", "mkdir"),
)
_DISK_CALLS = (
    *("open", "close", "read", "write", "pread", "preadv", "pwrite", "fsync", "ftruncate", "fstat", "stat", "fchmod"),
    *("listdir", "dup", "fdopen", "lockf", "flock", "fcntl", "access", "mkdtemp", "rmtree"),
)


def _interrupt(number: int, frame: Any) -> None:
    signal.default_int_handler(number, frame)


def _path_methods(files: Callable[[str], Files]) -> dict[str, Callable[..., Any]]:
    """Return methods of Path on the simulated disk of the process that runs."""

    def find(self: pathlib.Path) -> Any:
        path = str(self)
        return files(path).disk.find(path)

    def stat(self: pathlib.Path, *, follow_symlinks: bool = True) -> Any:
        return files(str(self)).stat(self)

    def exists(self: pathlib.Path, **_: Any) -> bool:
        try:
            find(self)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_dir(self: pathlib.Path, **_: Any) -> bool:
        return exists(self) and hasattr(find(self), "entries")

    def is_file(self: pathlib.Path, **_: Any) -> bool:
        return exists(self) and not hasattr(find(self), "entries")

    def iterdir(self: pathlib.Path) -> Iterator[pathlib.Path]:
        return iter([self / name for name in files(str(self)).listdir(self)])

    def glob(self: pathlib.Path, pattern: str) -> Iterator[pathlib.Path]:
        if not is_dir(self):
            return iter(())
        return iter([self / name for name in files(str(self)).listdir(self) if fnmatchcase(name, pattern)])

    def unlink(self: pathlib.Path, missing_ok: bool = False) -> None:
        its = files(str(self))
        its._call("unlink", self)
        try:
            its.disk.unlink(str(self))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def replace(self: pathlib.Path, target: Any) -> pathlib.Path:
        its = files(str(self))
        its._call("rename", f"{self} {target}")
        its.disk.rename(str(self), str(target))
        return pathlib.Path(target)

    def mkdir(self: pathlib.Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        its = files(str(self))
        its._call("mkdir", self)
        its.disk.mkdir(str(self), parents=parents, exist_ok=exist_ok)

    def open_(self: pathlib.Path, mode: str = "r", *_: Any, **__: Any) -> Any:
        opened = files(str(self)).open_path(self, mode)
        return opened if "b" in mode else io.TextIOWrapper(opened)

    def read_bytes(self: pathlib.Path) -> bytes:
        with open_(self, "rb") as file:
            return bytes(file.read())

    def write_bytes(self: pathlib.Path, data: bytes) -> int:
        with open_(self, "wb") as file:
            return int(file.write(data))

    def resolve(self: pathlib.Path, strict: bool = False) -> pathlib.Path:
        return self

    own = dict(locals())
    own["open"], own["rename"] = open_, replace
    return {name: own[name] for name in _PATH_METHODS}


def _cancel_all_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks that are left, as asyncio's runner does, but in an order that does not depend on addresses."""
    rest = sorted(asyncio.all_tasks(loop), key=lambda task: (len(task.get_name()), task.get_name()))
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))


@contextmanager
def simulated_machine(scheduler: Scheduler) -> Iterator[None]:
    """Give everything that runs inside the simulated machine; only simulated processes may run aclog's code there."""
    undo: list[Callable[[], None]] = []

    def put(target: Any, name: str, value: Any) -> None:
        before = getattr(target, name)
        undo.append(lambda: setattr(target, name, before))
        setattr(target, name, value)

    def process() -> Process:
        found: Process = scheduler.fiber().process
        if found.dead:
            raise ProcessDeathError
        return found

    def files(path: str) -> Files:
        own = process()
        # What is left of a dead process may run, as a finalizer, in a thread of another one.
        if not path.startswith(own.root):
            raise ProcessDeathError
        return own.files

    clock, disk, threads = machine.clock, machine.disk, machine.threads
    for name in ("monotonic", "perf_counter", "boot_time"):
        put(clock, name, lambda: process().monotonic())
    put(clock, "thread_time", lambda: 0.0)
    put(clock, "time", lambda: process().wall_clock())
    put(clock, "time_ns", lambda: int(process().wall_clock() * 1e9))
    put(clock, "sleep", scheduler.sleep)
    for name in _DISK_CALLS:
        put(disk, name, lambda *args, _name=name, **kwargs: getattr(process().files, _name)(*args, **kwargs))
    put(threads, "Lock", lambda: Lock(scheduler))
    put(threads, "Condition", lambda lock=None: Condition(scheduler, lock))
    put(threads, "Event", lambda: ThreadEvent(scheduler))
    put(threads, "Thread", lambda **kwargs: Thread(scheduler, **kwargs))
    put(threads, "current_thread", lambda: process().threads.get(scheduler.fiber()))
    put(threads, "getpid", lambda: process().pid)
    put(machine.randomness, "urandom", scheduler.random.randbytes)
    put(machine.randomness, "uniform", scheduler.random.uniform)
    put(machine.sockets, "socket", lambda *_: Socket(process().network, process()))
    put(machine.sockets, "gethostname", lambda: process().name)
    put(machine.sockets, "getaddrinfo", lambda host, port, **_: [(socket.AF_INET, 1, 6, "", (host, port))])
    put(machine.databases, "connect", lambda *args, **kwargs: connect(process(), *args, **kwargs))
    put(concurrent.futures._base, "threading", threads)

    for name, method in _path_methods(files).items():
        real = getattr(pathlib.Path, name)

        def either(self: pathlib.Path, *args: Any, _real: Any = real, _method: Any = method, **kwargs: Any) -> Any:
            chosen = _method if str(self).startswith(ROOT) else _real
            return chosen(self, *args, **kwargs)

        put(pathlib.Path, name, either)

    put(asyncio.events, "new_event_loop", lambda: SimLoop(scheduler))
    put(asyncio.runners, "_cancel_all_tasks", _cancel_all_tasks)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers[:] = [_Handler(scheduler)]
    root.setLevel(logging.INFO)
    undo.append(lambda: (root.handlers.__setitem__(slice(None), handlers), root.setLevel(level))[1])
    # asyncio's runners install a handler of their own unless there is one already.
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        undo.append(lambda: signal.signal(signal.SIGINT, interrupt) and None)
    hook = sys.unraisablehook
    sys.unraisablehook = lambda _: None  # finalizers of what a crash left behind
    undo.append(lambda: setattr(sys, "unraisablehook", hook))
    gc.freeze()  # modules are not looked at again, which would take most of the time of a collection
    gc.disable()  # finalizers would run at moments that depend on what else the interpreter does
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
            scheduler.forget()
            gc.collect()  # what crashed processes left behind, while its complaints are not shown
    finally:
        gc.enable()
        for each in reversed(undo):
            each()
