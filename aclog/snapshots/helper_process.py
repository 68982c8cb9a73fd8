"""What every process that a node starts for work of its own does first: it steps back, and ends with the node."""

import os
import threading
from contextlib import suppress
from pathlib import Path

_OOM_SCORE = Path("/proc/self/oom_score_adj")
_FIRST_TO_GO = "1000"


def begin(*, nice: int) -> None:
    """Let the node go first wherever the two compete, and end this process once its standard input ends.

    The node holds the other end of it and never writes there: so this process ends with the node, however that ends.
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
