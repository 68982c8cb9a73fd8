"""`python -m aclog.snapshots.image_process CHECKPOINT`: writes the image file of a checkpoint, in a separate process.

A node starts it, so that building a base does not slow down its requests: at the lowest priority, first to be killed
when memory runs out, and ended with the node. The node holds the other end of standard input: when that ends, so does
this process. Exit code 1, and a line on stderr, if there is no image file afterwards.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from aclog.metalog.errors import MetadataError
from aclog.snapshots.checkpoints import write_image_file
from aclog.snapshots.helper_process import begin

_LOWEST_PRIORITY = 19


def main(arguments: Sequence[str]) -> int:
    """Write the image file of the checkpoint whose path is the only argument; return the exit code."""
    begin(nice=_LOWEST_PRIORITY)
    (checkpoint,) = arguments
    try:
        write_image_file(Path(checkpoint))
    except MetadataError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
