"""`python -m aclog.snapshots.image_process CHECKPOINT`: writes the image file of a checkpoint, in a process of its own.

A node starts it, so that building a base takes nothing from its own requests: at the lowest priority, first to go where
memory runs out, and gone when the node is. The node holds the other end of standard input: when that ends, so does this
process. Exit code 1, and a line on stderr, if there is no image file afterwards.
"""

import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from aclog.metalog.errors import MetadataError
from aclog.snapshots.image_writer import write_image_file

_LOWEST_PRIORITY = 19
_OOM_SCORE = Path("/proc/self/oom_score_adj")
_FIRST_TO_GO = "1000"


def main(arguments: Sequence[str]) -> int:
    """Write the image file of the checkpoint whose path is the only argument; return the exit code."""
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    _step_back()
    (checkpoint,) = arguments
    try:
        write_image_file(Path(checkpoint))
    except MetadataError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _end_with_parent() -> None:
    # Nothing is ever written there. What is half written stays under a partial name, which the node removes.
    while os.read(0, 1):
        pass
    os._exit(1)


def _step_back() -> None:
    """Let the node go first wherever the two compete. Not every system allows or knows it."""
    with suppress(OSError):
        os.nice(_LOWEST_PRIORITY)
    with suppress(OSError):
        _OOM_SCORE.write_text(_FIRST_TO_GO)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
