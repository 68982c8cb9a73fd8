"""Whether a table that `spark ingest --append` makes is whole: its ledger says so."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from aclog.metalog.errors import ConfigError

LEDGER: Final = "_ledger.db"
_DEPTH: Final = 3
"""Directories above a file of a table: DIR/accesses/day=2026-11-21/FILE."""


def tables_of(files: Iterable[Path]) -> list[Path]:
    """Return the directories of the tables that these files belong to, if they were made by appends."""
    folders = {folder.resolve() for folder in {file.parent for file in files}}
    above = {each for folder in folders for each in (folder, *folder.parents)[:_DEPTH]}
    return sorted(each for each in above if (each / LEDGER).exists())


@contextmanager
def listing(tables: Iterable[Path]) -> Iterator[None]:
    """List the files of tables in this block, with all files of each append or none.

    Raises:
        ConfigError: an append to a table has not been finished, or was made meanwhile.

    """
    before = {table: check_whole(table) for table in tables}
    yield
    for table, number in before.items():
        if check_whole(table) != number:
            raise ConfigError(f"{table}: was appended to while its files were being listed: run again")


def check_whole(out: Path) -> int:
    """Refuse to read a table while an append moves its files, or if one was killed meanwhile.

    Return the number of the last append, 0 if the directory has no ledger.

    Raises:
        ConfigError: it is so.

    """
    path = out / LEDGER
    if not path.exists():
        return 0
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            number, placed = database.execute("SELECT coalesce(max(number), 0), min(placed) FROM appends").fetchone()
        finally:
            database.close()
    except sqlite3.Error:
        number, placed = 0, 0
    if placed == 0:
        raise ConfigError(
            f"{out}: an append has not been finished: wait for the one that runs, or finish the one that was killed by "
            "`aclog spark ingest --append` once more"
        )
    return int(number)
