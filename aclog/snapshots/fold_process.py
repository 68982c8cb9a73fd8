"""The process that folds an overlay into a new base, for a node: `python -I -m aclog.snapshots.fold_process`.

Its arguments are the descriptors of three unnamed files: the flat base, the changes, and an empty one for the new flat
base. It begins at a byte on stdin, and prints the size of the new base, or an error.
"""

import gc
import json
import mmap
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from aclog.authorizer.index.acl_index import merged_rows
from aclog.authorizer.index.base import base_of, build
from aclog.authorizer.index.queries import SUMS, base_digest, records_digest
from aclog.snapshots.compaction import map_for_writing, read_changes
from aclog.snapshots.helper_process import begin

_NICE = 1
"""Requests have priority, but changes accumulate until the merge has ended."""


def fold(base: int, changes: int, result: int) -> int:
    """Write the new flat base into the file `result`; return its size.

    Raises:
        ValueError, MetadataError: the input cannot be read, or is inconsistent.

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
    """Fold the files of the arguments, three descriptors."""
    if not os.read(0, 1):  # the parent has ended
        return
    begin(nice=_NICE)
    gc.disable()
    try:
        answer: dict[str, object] = {"size": fold(*map(int, sys.argv[1:4]))}
    except Exception as error:  # noqa: BLE001 - the parent reports any error
        answer = {"error": f"{type(error).__name__}: {error}"}
    os.write(1, json.dumps(answer).encode())
    os._exit(0)  # nothing to clean up, and freeing the memory would take a while


if __name__ == "__main__":
    main()
