"""A table of accesses that grows: what is new in log files goes into it, by day, once."""

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq
from attrs import evolve, field, frozen
from pyspark.sql import DataFrame, Row, SparkSession

from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.ingest import Counts, Layout, check_rejects, counted
from aclog.pipeline.accesses.ledger import STAGING, Ledger, Taken, fsync_file
from aclog.pipeline.accesses.line_files import readable_errors
from aclog.pipeline.accesses.line_ranges import lines_of
from aclog.pipeline.accesses.pinned_files import ChangedFilesError, PinnedFiles, listed
from aclog.pipeline.accesses.sink import REPORTED, SCHEMAS, SplitAndWrite
from aclog.pipeline.accesses.source_times import source_of
from aclog.pipeline.accesses.table_writers import DAY, NO_DAY
from aclog.terminal.progress import BYTES, progress
from aclog.usage.accesses.contents import Part, new_parts


@frozen(kw_only=True)
class Appended:
    """What one append did."""

    counts: Counts
    """The lines that were new."""
    files: int
    """The files that were looked at."""
    whole: int = 0
    """Of these, those that were new."""
    grown: int = 0
    """Those of which the beginning was known, and the rest was taken."""
    waiting: tuple[str, ...] = ()
    """Those that end in a line without line feed, which is left until it is whole."""
    days: Mapping[str, int] = field(factory=dict)
    """By day (UTC): the files that were added to it."""
    late: int = 0
    """The accesses that are older than what was known of their source before."""
    sources: Mapping[str, int | None] = field(factory=dict)
    """The latest time of each source in the table, in us since 1970; None if none of its accesses had a time."""

    @property
    def known(self) -> int:
        """The files that held nothing new."""
        return self.files - self.whole - self.grown

    @property
    def watermark(self) -> int | None:
        """The earliest of the sources' latest times, in us since 1970; None if there is none, or one is unknown."""
        known = [latest for latest in self.sources.values() if latest is not None]
        return min(known) if known and len(known) == len(self.sources) else None


def append(
    spark: SparkSession,
    paths: Sequence[str],
    layout: Layout,
    ledger: Ledger,
    *,
    max_reject_rate: float | None = None,
) -> Appended:
    """Take what is new in these files, directories and globs into the table of an open ledger.

    Raises:
        ConfigError: a file cannot be read, or was rotated, truncated or replaced meanwhile.
        RejectRateError: more than this share of the new lines is not an access. Nothing is taken, in either case.

    """
    files = listed(spark, paths)
    at = current_time_ms()
    parts = _parts(files, ledger, lines=layout.is_lines)
    new = [part for part in parts if part.is_new]
    reported: list[Row] = []
    staging = ledger.out / STAGING / secrets.token_hex(4)
    before = ledger.latest()
    if new:
        task = SplitAndWrite(split=layout.split, directory=str(staging.absolute()), latest=before, until=at * 1000)
        pins = files.only([part.content.name for part in new])
        with pins.held(), readable_errors(paths):
            reported = _rows(spark, layout, new).mapInArrow(task, REPORTED).collect()
        if not layout.is_lines:
            _check_sizes(pins)
    appended = evolve(_appended(parts, reported, before), files=len(files.pins))
    check_rejects(appended.counts, max_reject_rate)
    _ensure_tables(ledger.out)
    if new:
        _commit(ledger, staging, new, appended, [row["file"] for row in reported if row["file"]], at=at)
    unfinished = {part.content.name for part in parts if part.content.waiting}
    ledger.remember([pin.seen for name, pin in files.pins.items() if pin.seen and name not in unfinished])
    return appended


def _parts(files: PinnedFiles, ledger: Ledger, *, lines: bool) -> list[Part]:
    """Return what is new in the files that are not as they were when they were taken."""
    seen, table = ledger.seen(), ledger.out.resolve()
    wanted = [(path, name, size) for name, (path, size) in files.paths().items() if files.pins[name].seen not in seen]
    for path, _, _ in wanted:
        if Path(path).resolve().is_relative_to(table):
            raise ConfigError(f"{path}: is a file of the table {ledger.out} itself: expected logs elsewhere")
    try:
        if not wanted:
            return []
        with progress("looking for what is new", BYTES) as advance:
            return new_parts(wanted, ledger.known(), lines=lines, advance=advance)
    except FileNotFoundError as error:
        raise ChangedFilesError(
            f"{error.filename}: removed while it was being read: run again, or on a copy"
        ) from error


def _commit(
    ledger: Ledger, staging: Path, new: Sequence[Part], appended: Appended, staged: Sequence[str], *, at: int
) -> None:
    """Commit the files that the tasks have reported, once they are durable."""
    number = ledger.next_number()
    for name in staged:
        if not (staging / name).exists():
            raise ConfigError(f"{staging / name}: written by a task, but not visible here: expected a shared directory")
        fsync_file(staging / name)
    ledger.commit(
        Taken(
            parts=new,
            files={f"{STAGING}/{staging.name}/{name}": _final_name(name, number) for name in staged},
            latest=appended.sources,
            accesses=appended.counts.accesses,
            rejected=appended.counts.rejected,
            late=appended.late,
            at=at,
        )
    )


def _rows(spark: SparkSession, layout: Layout, new: Sequence[Part]) -> DataFrame:
    if layout.is_lines:
        return layout.of_lines(lines_of(spark, new), files=True)
    return layout.of_files(spark, [part.content.path for part in new], files=True)


def _check_sizes(pins: PinnedFiles) -> None:
    """Refuse files that have grown although they are only valid, or known, as a whole."""
    for path, size in pins.paths().values():
        if Path(path).stat().st_size != size:
            raise ChangedFilesError(f"{path}: has grown while it was being read: append it once it is complete")


def _appended(parts: Sequence[Part], reported: Sequence[Row], before: Mapping[str, int | None]) -> Appended:
    new = [source_of(part.content.name) for part in parts if part.is_new]
    # a source of which no access has a time is unknown: the table is complete up to no time then
    sources, late, days = {**dict.fromkeys(new), **before}, 0, Counter[str]()
    for row in reported:
        if row["source"] is not None:
            sources[row["source"]] = max(row["latest"], sources.get(row["source"]) or row["latest"])
            late += row["late"]
        elif row["file"] is not None and row["file"].startswith(f"accesses/{DAY}="):
            days[row["file"].split("/")[1].removeprefix(f"{DAY}=")] += 1
    return Appended(
        counts=counted(reported),
        files=len(parts),
        whole=sum(part.is_new and part.start == 0 for part in parts),
        grown=sum(part.is_new and part.start > 0 for part in parts),
        waiting=tuple(part.content.path for part in parts if part.content.waiting),
        days=dict(sorted(days.items())),
        late=late,
        sources=sources,
    )


def _final_name(staged: str, number: int) -> str:
    """Return the name of a file in the table, which no other append uses."""
    path = Path(staged)
    return str(path.with_name(f"{number:08d}-{path.name}"))


def _ensure_tables(out: Path) -> None:
    """Give a new table a file without rows: a reader needs one for the schema."""
    directories = {"accesses": out / "accesses" / f"{DAY}={NO_DAY}", "rejects": out / "rejects"}
    for table, schema in SCHEMAS.items():
        path = directories[table] / "00000000-empty.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f"_{path.name}")
            pq.write_table(schema.empty_table(), partial)
            partial.rename(path)
