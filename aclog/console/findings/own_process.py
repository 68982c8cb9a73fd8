"""Work in a process of its own: it leaves this one's interpreter to requests."""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar, cast

from aclog.authorizer.index.arrays import Pause
from aclog.metalog.errors import MetadataError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_NICE = 5
"""It yields to what answers requests."""
_LOOK_S = 0.1
_PIECE = 250
"""Values that are read at once: nothing else runs meanwhile."""


class NoAnswerError(MetadataError):
    """The process ended without an answer."""


def in_own_process(stopping: threading.Event, work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Return what a function does, which is pickled with its arguments; the process ends with it, or when told to stop.

    Raises:
        NoAnswerError: it was killed, or stopped; and whatever the function raises.

    """
    # a process of its own rather than a fork: threads of this one may hold locks
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, work, args, kwargs), daemon=True)
    try:
        process.start()
        sender.close()
        while not receiver.poll(_LOOK_S):
            if stopping.is_set():
                raise NoAnswerError("stopped before it was done")
        failed, value = receiver.recv()
    except EOFError:
        raise NoAnswerError("the process that looked was killed, perhaps for want of memory") from None
    finally:
        receiver.close()
        if process.pid is not None:
            process.terminate()
            process.join()
    if failed:
        raise value
    return cast("_R", value)


def packed(values: Sequence[object]) -> list[bytes]:
    """Return many values as pieces, for a function whose answer is read piece by piece."""
    return [pickle.dumps(values[start : start + _PIECE]) for start in range(0, len(values), _PIECE)]


def unpacked(pieces: Iterable[bytes], pause: Pause) -> Iterator[Any]:
    """Yield the values that `packed` made pieces of; `pause` is called before each piece."""
    for piece in pieces:
        pause()
        yield from pickle.loads(piece)  # noqa: S301 - made by `packed`


def _answer(sender: Connection, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that started it
    os.nice(_NICE)
    try:
        found = False, work(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
        found = True, error
    with suppress(BrokenPipeError):  # whoever waited for it was killed
        sender.send(found)
