"""The names of a source, kept for a minute under the user's cache directory.

One SQLite file a source, replaced as a whole, readable by its owner only: names of topics and principals are nobody
else's business.
"""

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

from attrs import frozen

_FRESH_SECONDS = 60
_KEPT_SECONDS = 86_400
"""What is older is removed when something is stored."""


@frozen(kw_only=True)
class NameCache:
    """The file of one source."""

    path: Path

    @classmethod
    def of(cls, source: object) -> "NameCache":
        """Return the cache of a source, whose `repr` tells it from others."""
        key = sha256(f"{Path.cwd()}\n{source!r}".encode(errors="surrogatepass")).hexdigest()[:32]
        return cls(path=cache_directory() / f"{key}.sqlite")

    def is_fresh(self) -> bool:
        """Return whether it was stored within the last minute."""
        try:
            return 0 <= time.time() - self.path.stat().st_mtime < _FRESH_SECONDS
        except OSError:
            return False

    def names(self, kind: str, start: str, *, most: int) -> Iterator[str]:
        """Yield the names of a kind that begin so, in the order of their UTF-8; none if nothing is stored."""
        if not self.path.exists():
            return
        query = "SELECT name FROM names WHERE kind = ? AND name >= ? ORDER BY name LIMIT ?"
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as database:
            for (name,) in database.execute(query, (kind, start, most)):
                if not name.startswith(start):
                    return
                yield name

    def store(self, names: Mapping[str, Iterable[str]]) -> None:
        """Replace what is stored. Raises OSError, sqlite3.Error: it cannot be written."""
        directory = self.path.parent
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_old(directory)
        handle, temporary = tempfile.mkstemp(dir=directory, suffix=".new")  # 0600
        os.close(handle)
        with closing(sqlite3.connect(temporary)) as database:
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("CREATE TABLE names (kind TEXT, name TEXT, PRIMARY KEY (kind, name)) WITHOUT ROWID")
            for kind, found in names.items():
                rows = ((kind, name) for name in sorted(set(found)))
                database.executemany("INSERT INTO names VALUES (?, ?)", rows)
            database.commit()
        Path(temporary).replace(self.path)


def cache_directory() -> Path:
    """Return where completions are kept: below $XDG_CACHE_HOME, or ~/.cache."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return base / "aclog" / "completion"


def _remove_old(directory: Path) -> None:
    for path in directory.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                path.unlink()
