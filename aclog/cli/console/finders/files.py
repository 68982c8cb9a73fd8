"""What changes when files do."""

from collections.abc import Iterable
from pathlib import Path


def signature_of(paths: Iterable[str]) -> object:
    """Return what changes when one of some files does, or one below a directory. Raises OSError: one is gone."""
    found = []
    for path in map(Path, paths):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        stats = ((str(each), each.stat()) for each in files)
        found += [(name, status.st_ino, status.st_mtime_ns, status.st_size) for name, status in stats]
    return tuple(found)
