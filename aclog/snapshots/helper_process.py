"""The setup of every helper process of a node: it yields to the node, and ends with it."""

import os
import threading
from contextlib import suppress
from pathlib import Path

_OOM_SCORE = Path("/proc/self/oom_score_adj")
_FIRST_TO_GO = "1000"


def begin(*, nice: int) -> None:
    """Give the node priority over this process, and end this process at the end of its standard input.

    The node holds the other end and never writes to it: so this process ends with the node, even if that is killed.
    """
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    # Not every system allows or knows these.
    with suppress(OSError):
        os.nice(nice)
    with suppress(OSError):
        _OOM_SCORE.write_text(_FIRST_TO_GO)


def _end_with_parent() -> None:
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(1)
