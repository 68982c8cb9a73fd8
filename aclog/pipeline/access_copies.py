"""Access logs of another store, copied to this machine for a job: their reader takes files of a file system."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from shutil import rmtree
from tempfile import gettempdir
from typing import Final

from pyspark.sql import SparkSession

from aclog.metalog.errors import ConfigError
from aclog.pipeline import storage
from aclog.pipeline.log_copies import is_here, master_of
from aclog.pipeline.output_directory import place_of
from aclog.usage.accesses.addresses import is_s3_path, plain_name
from aclog.usage.accesses.globs import is_hidden
from aclog.usage.accesses.lines import FileChangedError, PinnedFile
from aclog.usage.accesses.objects import ObjectCopies, is_of_table, of_table
from aclog.usage.accesses.table_formats import MARKERS, Places, above, is_of_log
from aclog.usage.scratch import private_directory

_TOPIC: Final = "kafka://"


def access_copies(spark: SparkSession, paths: Iterable[str]) -> dict[str, ObjectCopies]:
    """Return copies of the files that URIs name, by the URI: of each that only Hadoop's FileSystem reads.

    A URI is of a file, a directory (recursively) or a pattern of Hadoop, whose files are those that a glob of this
    machine has. Paths, `file:` URIs, objects of S3
    and topics are not copied here.

    Raises:
        ConfigError: no such file, a URI that may hold credentials, a table, or workers on other machines.
        FileChangedError: a file has changed while it was copied.

    """
    copies: dict[str, ObjectCopies] = {}
    for path in paths:
        plain = plain_name(path)
        if is_s3_path(plain) or plain.startswith(_TOPIC):
            continue
        place = place_of(plain)
        if isinstance(place, Path):
            continue
        if not is_here(spark):
            raise ConfigError(
                f"--accesses {place}: is copied to {gettempdir()} of this machine first, which the workers of "
                f"{master_of(spark)} cannot read: expected files under the same paths on all machines, or "
                "--master local[*]"
            )
        copies[path] = copies_of(spark, place)
    return copies


def copies_of(spark: SparkSession, place: str) -> ObjectCopies:
    """Copy the files of a URI. Raises as access_copies."""
    files, is_several = storage.files_at(spark, place)
    if not files:
        raise ConfigError(f"--accesses {place}: no such file or directory, or no files in it")
    for name, _, _ in files:
        if is_of_log(name):
            raise of_table(f"--accesses {place}: has a table of Delta, Hudi or Iceberg ({name})")
    read = [(name, state) for name, below, state in files if not is_hidden(PurePosixPath(below))]
    if not read:
        raise ConfigError(f"--accesses {place}: no files (names that begin with `.` or `_` are skipped)")
    directory = private_directory()
    try:
        copies = tuple(
            _copied(spark, name, state, Path(directory, str(number))) for number, (name, state) in enumerate(read)
        )
        _check_not_in_table(spark, place, copies)
    except BaseException:
        rmtree(directory, ignore_errors=True)
        raise
    return ObjectCopies(copies, is_several, directory)


def _copied(spark: SparkSession, name: str, state: storage.FileState, target: Path) -> PinnedFile:
    failure: ConfigError | None = None
    try:
        storage.copy_to_local(spark, name, target)
    except ConfigError as error:  # perhaps the file was deleted
        failure = error
    now = storage.state_of(spark, name)
    if now != state or (failure is None and target.stat().st_size != state.size):
        what = "deleted" if now is None else "changed"
        raise FileChangedError(f"{name}: {what} while it was being copied: run again, or on a copy of the log")
    if failure is not None:
        raise failure
    return PinnedFile.of(name, str(target))


def _check_not_in_table(spark: SparkSession, place: str, files: Iterable[PinnedFile]) -> None:
    """Raise ConfigError if columnar files are in a table, whose other versions they may be of."""

    def markers(directory: str) -> list[str]:
        return [name for name in MARKERS if storage.exists(spark, storage.joined(directory, name))]

    places = Places(markers, lambda directory: storage.children(spark, directory))
    for directory in dict.fromkeys(each for file in files if is_of_table(file) for each in above(file.path)):
        table = places.root(directory)
        if table is not None:
            raise of_table(f"--accesses {place}: in the {table.format} table {table.path}")
