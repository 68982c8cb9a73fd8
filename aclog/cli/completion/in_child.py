"""Work in a child process, for which a caller waits for a while and then no longer."""

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence

_LONGEST = 10
"""Seconds after which a child ends, whatever it waits for."""


def words_in_child(work: Callable[[], Sequence[str]], *, wait_seconds: float) -> Sequence[str]:
    """Return the words that the work returns in a forked process; none if that takes longer. See `in_child`."""
    with tempfile.TemporaryFile() as answer:

        def write() -> None:
            """Leave the words where this process reads them."""
            answer.write(json.dumps(work()).encode())
            answer.flush()

        if not in_child(write, wait_seconds=wait_seconds):
            return ()
        answer.seek(0)
        words: list[str] = json.loads(answer.read() or b"[]")
        return words


def in_child(work: Callable[[], None], *, wait_seconds: float) -> bool:
    """Do the work in a forked process, until it is done or the time is over; it then goes on by itself.

    Returns whether it has ended. What it raises is nowhere seen.

    The child has no terminal, so that nothing in it can ask for a password, and none of this process' output, whose
    reader waits until every holder has closed it. Without `fork` (Windows) nothing is done.
    """
    if not hasattr(os, "fork"):
        return False
    child = os.fork()
    if child == 0:
        _become_silent()
        try:
            work()
        finally:
            os._exit(0)
    deadline = time.monotonic() + wait_seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _become_silent() -> None:
    os.setsid()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_LONGEST)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.environ.update(GIT_TERMINAL_PROMPT="0", GIT_SSH_COMMAND="ssh -oBatchMode=yes", SSH_ASKPASS_REQUIRE="never")
