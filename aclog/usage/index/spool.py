"""Tallies that wait until all have come: a few in memory, many in a file without a name, which a kill removes."""

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Final, Self

from attrs import define

from aclog.metalog.errors import ConfigError
from aclog.usage.index.tallies import DayTally

_IN_MEMORY: Final = 1 << 26
"""Bytes that are kept in memory."""


@define(eq=False)
class Spool:
    """The tallies of a run; read by the process that wrote them, and nobody else."""

    _file: "SpooledTemporaryFile[bytes]"
    _count: int

    @classmethod
    def of(cls, tallies: Iterable[DayTally], directory: Path) -> Self:
        """Take in all tallies. Raises ConfigError: the disk of `directory` is full; and whatever `tallies` raises."""
        file = SpooledTemporaryFile(_IN_MEMORY, dir=str(directory))  # noqa: SIM115 - closed by `__exit__`
        count = 0
        try:
            for tally in tallies:
                with _errors(directory):
                    pickle.dump(tally, file, pickle.HIGHEST_PROTOCOL)
                count += 1
        except BaseException:
            file.close()
            raise
        return cls(file, count)

    def __iter__(self) -> Iterator[DayTally]:
        """Yield the tallies."""
        self._file.seek(0)
        for _ in range(self._count):
            yield pickle.load(self._file)  # noqa: S301 - this process has written it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


@contextmanager
def _errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror or error}: nothing of this run was written") from error
