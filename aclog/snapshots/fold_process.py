"""The process that folds an overlay into a new base, for a node: `python -I -m aclog.snapshots.fold_process`.

It is given the descriptors of three files without names: the flat base, the changes, and an empty one for the new flat
base. It begins when a byte on stdin tells it to, and says on stdout how large that is, or what is wrong.
"""

import gc
import json
import mmap
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from aclog.authorizer.index.acl_index import merged_rows
from aclog.authorizer.index.base import base_of
from aclog.authorizer.index.build import build
from aclog.authorizer.index.queries import SUMS, base_digest, records_digest
from aclog.snapshots.compaction import map_for_writing, read_changes
from aclog.snapshots.helper_process import begin

_NICE = 1
"""Requests come first, but changes pile up until the merge has ended."""


def fold(base: int, changes: int, result: int) -> int:
    """Write the new flat base into the file `result`; return its size.

    Raises:
        ValueError, MetadataError: what was sent cannot be read, or does not fit together.

    """
    before = base_of(memoryview(mmap.mmap(base, 0, access=mmap.ACCESS_READ)))
    with os.fdopen(changes, "rb") as file:
        added, removed = read_changes(file)
    with ThreadPoolExecutor() as threads:
        expected = threads.submit(lambda: base_digest(before, removed) + records_digest(added))
        after = build(merged_rows(before, added, removed), allocate=lambda size: map_for_writing(result, size))
        if base_digest(after) != expected.result() % SUMS:
            raise ValueError("the merged ACLs are not those of the base and the changes")
    return len(after.buffer)


def main() -> None:
    """Fold what the arguments, three descriptors, say."""
    if not os.read(0, 1):  # its parent is gone
        return
    begin(nice=_NICE)
    gc.disable()
    try:
        answer: dict[str, object] = {"size": fold(*map(int, sys.argv[1:4]))}
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent has to say so
        answer = {"error": f"{type(error).__name__}: {error}"}
    os.write(1, json.dumps(answer).encode())
    os._exit(0)  # nothing is left to tidy up, and freeing it all would take a while


if __name__ == "__main__":
    main()
