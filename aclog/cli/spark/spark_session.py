"""Spark for a command: its session, its failures in one line, and the check of a log before a job starts."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from attrs import evolve

from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.spark.flags import SessionFlags
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.filelog import open_reader
from aclog.pipeline.output_directory import Place
from aclog.terminal.notices import progress
from aclog.terminal.output import note, notices_renaming, renamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aclog.ops.usage import AccessLog
    from aclog.pipeline.log_copies import GrowingLog


@contextmanager
def spark_session(flags: SessionFlags) -> "Iterator[SparkSession]":
    """Open a session for one command, with Spark's progress bar on a terminal, and stop it at the end.

    A note reports a job that has no executor for a minute.

    Raises:
        ConfigError: the session or a job in it failed; one line with the cause.

    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from aclog.pipeline.log_copies import is_here
    from aclog.pipeline.session import open_session

    settings = flags.settings()
    root, planning = logging.getLogger(), logging.getLogger("aclog.pipeline.source.directory")
    root.addFilter(_says_more)
    planning.addFilter(_is_new)
    try:
        with progress("starting Spark"):
            own = {} if flags.is_connect else {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}
            spark = open_session(flags.master, {**own, **settings})
        stop = Event()
        if not is_here(spark) and not flags.is_connect:
            Thread(target=watch_executors, args=(spark, stop), daemon=True).start()
        try:
            yield spark
        finally:
            stop.set()
            spark.stop()
    except (PySparkException, Py4JError) as error:
        raise failure(error) from error
    finally:
        root.removeFilter(_says_more)
        planning.removeFilter(_is_new)


_PATIENCE: Final = 60
"""Seconds that a job may be without an executor before a note reports it."""


def watch_executors(spark: "SparkSession", stop: Event, patience: int = _PATIENCE, interval: float = 1.0) -> None:
    """Note once that a job has had no executor for so many looks, one each `interval` in seconds, until `stop`."""
    from py4j.protocol import Py4JError

    looks = 0
    while not stop.wait(interval):
        try:
            waits = _waits(spark)
        except (Py4JError, OSError):  # the session ends
            return
        looks = looks + 1 if waits else 0
        if looks == patience:
            note(_missing_executors(spark))
            return


def _waits(spark: "SparkSession") -> bool:
    """Return whether a job is active without an executor; the driver is in the list of executors."""
    context = spark.sparkContext
    return bool(context.statusTracker().getActiveJobsIds()) and context._jsc.sc().getExecutorMemoryStatus().size() < 2


def _missing_executors(spark: "SparkSession") -> str:
    context = spark.sparkContext
    names = {"spark.executor.memory": "1g", "spark.executor.cores": None, "spark.cores.max": None}
    names |= {"spark.executor.instances": None, "spark.executor.memoryOverhead": None}
    stated = {name: context.getConf().get(name, default) for name, default in names.items()}
    requested = ", ".join(f"{name}={value}" for name, value in stated.items() if value is not None)
    return (
        f"no executor for {_PATIENCE} s: {context.master} has none with {requested} free: compare the memory and cores "
        "of its workers (the page of the master), and request less with --conf KEY=VALUE, or wait"
    )


def _says_more(record: logging.LogRecord) -> bool:
    """Return whether a line of the log is more than py4j's traceback of what the command reports, such as Ctrl-C."""
    return not str(record.msg).endswith("while sending command.")


def _is_new(_record: logging.LogRecord) -> bool:
    """Return False for a warning about the end of a log, which `check_log` has printed as a note."""
    return False


def failure(error: Exception) -> MetadataError:
    """Return the error to report for a failed job: the one aclog raised in a worker if any, else the last cause."""
    from aclog.pipeline.session import cause, own_error

    own = own_error(str(error))
    return ConfigError(own if own is not None else f"Spark failed: {cause(str(error))}")


def spark_log(spark: "SparkSession", flags: AccessesFlags) -> "AccessLog":
    """Find the access log that flags name, for a session that reads it: of another store, copies of its files.

    Raises:
        ConfigError, OSError: as AccessLog.of, or access_copies.

    """
    from functools import partial

    from aclog.pipeline.access_copies import access_copies
    from aclog.pipeline.log_copies import is_here
    from aclog.pipeline.session import each_on_spark

    uri_copies = access_copies(spark, flags.accesses)
    return flags.open(partial(each_on_spark, spark), copies=is_here(spark), uri_copies=uri_copies)


@contextmanager
def local_source(spark: "SparkSession", flags: SourceFlags, *, by_workers: bool = False) -> Iterator[SourceFlags]:
    """Yield the flags of a source whose log is on this machine: of another store, its copy. Raises as `local_log`."""
    from aclog.pipeline.log_copies import local_log

    if flags.log is None:
        yield flags
        return
    with local_log(spark, flags.log, by_workers=by_workers) as directory, _named(directory, flags.log):
        yield evolve(flags, log=directory)


@contextmanager
def _named(directory: Path, log: Place) -> "Iterator[None]":
    """Name the log by its URI in notices and errors during the `with`, if the directory is a copy.

    Raises:
        ConfigError: a job failed; one line with the cause.

    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from aclog.pipeline.log_copies import split
    from aclog.pipeline.output_directory import place_of

    place = place_of(log)
    if isinstance(place, Path):
        yield
        return
    names = {str(directory): place, str(directory.parent): split(place)[0]}
    try:
        with notices_renaming(names):
            yield
    except MetadataError as error:
        error.args = tuple(renamed(each, names) if isinstance(each, str) else each for each in error.args)
        raise
    except OSError as error:
        if isinstance(error.filename, str):
            error.filename = renamed(error.filename, names)
        raise
    except (PySparkException, Py4JError) as error:
        raise ConfigError(renamed(str(failure(error)), names)) from error


def check_local_log(log: Place) -> None:
    """Check a log before a session starts, unless its URI is in another store. Raises as `check_log`."""
    if isinstance(log, Path):
        check_log(log)


@contextmanager
def checked_log(spark: "SparkSession", log: Place) -> Iterator[Path]:
    """Yield the absolute directory of a log that workers read too; check one that `check_local_log` could not examine.

    Raises:
        ConfigError: as `local_log`; MetadataError: as `check_log`.

    """
    from aclog.pipeline.log_copies import local_log

    with local_log(spark, log, by_workers=True) as directory, _named(directory, log):
        if not isinstance(log, Path):
            check_log(directory)
        yield directory.absolute()


@contextmanager
def followed_log(spark: "SparkSession", log: Place) -> "Iterator[GrowingLog]":
    """Yield a log that may grow, as `checked_log`; `update` of the log reads another store again.

    Raises:
        ConfigError: as `growing_log`; MetadataError: as `check_log`.

    """
    from aclog.pipeline.log_copies import growing_log

    with growing_log(spark, log) as followed, _named(followed.directory, log):
        if not isinstance(log, Path):
            check_log(followed.directory)
        yield followed


def check_log(log: Path) -> None:
    """Print notes on where the log of a Kafka node is taken to end, and on what is left out of its tail.

    Raises:
        LogError: there is no log (checkpoints alone do not count), or it cannot be read.
        DecodeError: damage near the end of the log.

    """
    with open_reader(log) as reader:
        reader.high_watermark()
        for text in reader.notes:
            note(text)
