"""Worker processes of a decision point: one process starts them, starts those again that end, and ends them all.

That process has one thread, serves no client and reads no log: its workers are forks, which have what it has read.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from attrs import field
from click.exceptions import Exit

from aclog.cli.app import BAD_INPUT, error_text
from aclog.cli.serving import STOP_S, Health
from aclog.console.pdp.workers import WorkerBoard
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.server.http_endpoint import HttpEndpoint
from aclog.terminal.output import complain, say, warn

MOST_WORKERS = 64
_STARTING_S = 0.05
"""Between two looks at workers that begin, in seconds."""
_FIRST_S, _LONGEST_S, _STABLE_S = 0.1, 5.0, 10.0
"""The delay before a worker is started again: at first, and at most; and how long one has to run for the first."""
_SPARE_S = 5.0
"""The time beyond that of open requests in which every worker has to end, in seconds."""


def check_workers(count: int) -> None:
    """Refuse a number of workers. Raises ConfigError: out of bounds, or this system cannot have more than one."""
    if not 1 <= count <= MOST_WORKERS:
        raise ConfigError(f"--workers {count}: expected 1 to {MOST_WORKERS}")
    if count > 1 and (sys.platform != "linux" or not hasattr(socket, "SO_REUSEPORT")):
        raise ConfigError(
            f"--workers {count}: this system does not spread connections over processes (SO_REUSEPORT of Linux): "
            "expected 1, or several decision points behind a proxy"
        )


# One worker, in its own process.


@define(eq=False, kw_only=True)
class Worker:
    """What a worker has of its own."""

    number: int
    board: WorkerBoard
    listening: socket.socket
    ends: int
    """The read end of a pipe: at its end of file the worker ends, also if the process that started it was killed."""
    generation: int
    """Of the files that it has read."""
    _why: str | None = field(default="", init=False)
    """The published readiness; empty before the first."""
    _ticks: int = field(default=0, init=False)

    def begin(self) -> None:
        """Note that it accepts connections."""
        self.board.beat(self.number)

    def tick(self, why_not_ready: str | None, metrics: Callable[[], bytes]) -> bool:
        """Give a sign of life, publish what has changed, metrics each second; return whether to end."""
        self.board.beat(self.number)
        if why_not_ready != self._why or self._ticks % 10 == 0:
            self._why = why_not_ready
            self.board.publish(self.number, why_not_ready, metrics())
        self._ticks += 1
        return _is_at_end(self.ends)

    def has_new_files(self) -> bool:
        """Return whether files are to be read again, once each time."""
        before, self.generation = self.generation, self.board.generation
        return before != self.generation


def _is_at_end(pipe: int) -> bool:
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False


# The process that starts them.


@frozen(kw_only=True, eq=False)
class Work:
    """What a decision point does in its processes."""

    serve: Callable[[Worker], None]
    """Serves until the worker's tick returns that it is to end. Raises as run_pdp."""
    read_again: Callable[[], bool]
    """Reads files again, for workers that are started later; returns whether that succeeded."""
    message: str
    """Printed once every worker accepts connections."""
    health: Health | None


@define(eq=False)
class _Child:
    """A process to be kept running."""

    name: str
    number: int
    """On the board."""
    pid: int | None = None
    due: float = 0.0
    """When it is to be started."""
    started: float = 0.0
    delay: float = _FIRST_S


class _EndedError(Exception):
    """A child has ended with an exit code that ends all."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@define(eq=False, kw_only=True)
class Workers:
    """Runs until SIGTERM or SIGINT."""

    work: Work
    listening: Sequence[socket.socket]
    """One for each worker; open for as long as this process: connections wait there while a worker is started."""
    board: WorkerBoard = field(init=False)
    _children: list[_Child] = field(factory=list, init=False)
    _ends: tuple[int, int] = field(init=False)
    """The pipe of the workers: its read and its write end."""
    _health_ends: tuple[int, int] = field(init=False)
    """That of the process that serves health checks, which ends last."""
    _mask: set[int] = field(factory=set, init=False)
    """The signals that were blocked before."""
    _has_announced: bool = field(default=False, init=False)

    def run(self) -> None:
        """Run. Raises Exit: a worker has refused its configuration, and has printed why."""
        self.board = WorkerBoard(len(self.listening))
        self._ends, self._health_ends = os.pipe(), os.pipe()
        os.set_blocking(self._ends[0], False)
        self._children = [_Child(f"worker {number + 1}", number) for number in range(len(self.listening))]
        if self.work.health is not None:
            self._children.append(_Child("the process of --health-listen", len(self.listening)))
        gc.collect()
        gc.freeze()  # a collection in a worker would copy the pages of all objects that it has from here
        code = 0
        with self._blocked_signals():
            try:
                self._supervise()
            except _EndedError as ended:
                code = ended.code
            finally:
                self._end()
        if code:
            raise Exit(code)

    @contextmanager
    def _blocked_signals(self) -> Iterator[None]:
        """Take signals only where they are waited for."""
        self._mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS))
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _supervise(self) -> None:
        """Return at SIGTERM or SIGINT. Raises _EndedError."""
        while True:
            self._reap()
            self._start_due()
            self._announce()
            received = signal.sigtimedwait(_SIGNALS, self._wait_s())
            number = None if received is None else received.si_signo
            if number in {signal.SIGTERM, signal.SIGINT}:
                return
            if number == signal.SIGHUP and self.work.read_again():
                self.board.read_again()

    def _reap(self) -> None:
        """Note which children have ended, and when they are to be started again. Raises _EndedError."""
        for child in self._children:
            code = _reaped(child)
            if code is None:
                continue
            if code == BAD_INPUT:
                raise _EndedError(code)
            self.board.retire(child.number)
            now = elapsed_seconds()
            if now - child.started >= _STABLE_S:
                child.delay = _FIRST_S
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            warn(f"{child.name} has ended ({how}): it is started again in {child.delay:g} s")
            child.due, child.delay = now + child.delay, min(child.delay * 2, _LONGEST_S)

    def _start_due(self) -> None:
        """Start what is not running; at first one worker alone, so that an error of the flags is printed once."""
        now = elapsed_seconds()
        first, *others = self._children
        for child in (first, *others) if self._has_announced or self.board.has_begun(first.number) else (first,):
            if child.pid is None and child.due <= now:
                self._start(child)

    def _announce(self) -> None:
        if not self._has_announced and all(self.board.has_begun(child.number) for child in self._children):
            self._has_announced = True
            say(self.work.message, flush=True)

    def _wait_s(self) -> float:
        """Return the time until a look is due even if no signal arrives, in seconds."""
        if not self._has_announced:
            return _STARTING_S
        due = (child.due for child in self._children if child.pid is None)
        return max(min(due, default=elapsed_seconds() + 3600.0) - elapsed_seconds(), 0.0)

    def _start(self, child: _Child) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        generation = self.board.generation
        child.started = elapsed_seconds()
        child.pid = os.fork()
        if child.pid == 0:
            self._run_child(child, generation)

    def _run_child(self, child: _Child, generation: int) -> NoReturn:
        """Do the work of a child, in its process."""
        code = 1
        try:
            os.close(self._ends[1])
            os.close(self._health_ends[1])
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # of a terminal: the process that started this one takes it
            for number, each in enumerate(self.listening):
                if number != child.number:
                    each.close()
            is_health = child.number == len(self.listening)
            if is_health:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of a whole group of processes: it ends last
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask | {signal.SIGINT})
            code = self._exit_code(child, self._check_health if is_health else self._work(child, generation))
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)

    def _work(self, child: _Child, generation: int) -> Callable[[], None]:
        worker = Worker(
            number=child.number,
            board=self.board,
            listening=self.listening[child.number],
            ends=self._ends[0],
            generation=generation,
        )
        return lambda: self.work.serve(worker)

    def _check_health(self) -> None:
        asyncio.run(self._serve_health())

    async def _serve_health(self) -> None:
        """Serve health checks until the pipe ends. Raises ConfigError: the address cannot be listened on."""
        if self.work.health is None:
            return
        endpoint = HttpEndpoint(
            address=self.work.health.address,
            metrics=self.board.metrics,
            healthy=lambda: None,
            ready=self.board.why_not_ready,
            flag="--health-listen",
        )
        await endpoint.start()
        self.board.beat(len(self.listening))
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._health_ends[0], ended.set)
        await ended.wait()
        await endpoint.stop()

    def _exit_code(self, child: _Child, work: Callable[[], None]) -> int:
        """Do the work of a child, and return its exit code: BAD_INPUT only for what it has refused at its start.

        A log that is gone for a while is such a reason at the first start only.
        """
        try:
            work()
        except (MetadataError, OSError) as error:
            complain(error_text(error))
            is_refused = isinstance(error, ConfigError) or not self._has_announced
            return BAD_INPUT if is_refused and not self.board.has_begun(child.number) else 1
        except BaseException:  # noqa: BLE001 - this process ends here
            traceback.print_exc()
            return 1
        return 0

    def _end(self) -> None:
        """End the workers, and then the process of health checks; kill those that do not end in time."""
        for each in self.listening:
            each.close()
        *workers, last = self._children if self.work.health is not None else [*self._children, None]
        os.close(self._ends[1])
        _await_end([each for each in workers if each is not None], STOP_S + _SPARE_S)
        os.close(self._health_ends[1])
        _await_end([] if last is None else [last], _SPARE_S)
        os.close(self._ends[0])
        os.close(self._health_ends[0])


def _reaped(child: _Child) -> int | None:
    """Return the exit code of a child that has ended since the last call, a negative one for a signal; else None."""
    if child.pid is None:
        return None
    pid, status = os.waitpid(child.pid, os.WNOHANG)
    if pid == 0:
        return None
    child.pid = None
    return os.waitstatus_to_exitcode(status)


def _await_end(children: Sequence[_Child], seconds: float) -> None:
    """Wait for children that end; at another SIGTERM or SIGINT without their open requests. Kill those that do not."""
    end = elapsed_seconds() + seconds
    while True:
        for child in children:
            _reaped(child)
        left = [child.pid for child in children if child.pid is not None]
        remaining = end - elapsed_seconds()
        if not left:
            return
        if remaining <= 0:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            return
        received = signal.sigtimedwait(_SIGNALS, remaining)
        if received is not None and received.si_signo in {signal.SIGTERM, signal.SIGINT}:
            for pid in left:
                os.kill(pid, signal.SIGTERM)
