"""The jobs of `aclog spark`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeAlias

import pyarrow as pa
from attrs import field
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from aclog.analysis.timeline import Question
from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import RuleChange, existing_rule, missing_rule
from aclog.authorizer.settings import Settings
from aclog.cli.answers import print_intervals
from aclog.cli.explain import ALLOWED, BAD_INPUT, DENIED
from aclog.cli.flags.common import Output
from aclog.cli.flags.many_requests import SecondStateFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.signals import Stop, on_signals
from aclog.cli.spark.flags import AppendFlags, DecidedFlags, IngestFlags, ReportFlags, UsageFlags, column_pairs
from aclog.cli.spark.spark_session import check_log, local_source
from aclog.cli.transfer.output import open_output
from aclog.cli.usage_report import basis_text, summary_lines
from aclog.metalog.errors import ConfigError, plural
from aclog.metalog.values import define, frozen
from aclog.ops.policies import read_premises, refuse_unless_known
from aclog.ops.usage import unknown_kafka, warn_of_gaps, warn_of_unknown_kafka
from aclog.pipeline.access_rows import AccessRows
from aclog.pipeline.accesses import (
    INGESTED,
    MALFORMED,
    Appended,
    ChangedFilesError,
    Counts,
    Layout,
    Ledger,
    NoFilesError,
    RejectRateError,
    append,
    ingest,
    pinned_accesses,
    plain_accesses,
    write,
)
from aclog.pipeline.accesses.catalogs import CatalogRows
from aclog.pipeline.accesses.files import PinnedFiles
from aclog.pipeline.authorize import authorize, events, flips_of, simulated, undecided_of, without_time
from aclog.pipeline.decided_files import common_schema, write_decided
from aclog.pipeline.event_form import EventForm
from aclog.pipeline.history.intervals import (
    COLUMNS,
    begin_and_intervals,
    contradictions_raised,
    interval_table,
    intervals_or_table,
    known_from,
)
from aclog.pipeline.log_copies import is_here
from aclog.pipeline.output_directory import Mode, OutFormat, Place
from aclog.pipeline.outputs import (
    PARQUET,
    Form,
    JobOutput,
    NewOutput,
    check_absent,
    in_format,
    new_output,
    rows_of_output,
)
from aclog.pipeline.session import is_connect
from aclog.pipeline.storage import joined
from aclog.pipeline.table_outputs import with_day
from aclog.pipeline.usage import rejected_lines, unread_lines, usage
from aclog.snapshots.deciding_kafka import possible_kafka
from aclog.snapshots.image import Image
from aclog.sources.choice import ChosenSource
from aclog.terminal.columns import json_text
from aclog.terminal.output import complain, emit, note, say, utc_text, warn
from aclog.terminal.tables import aligned
from aclog.usage.accesses.parquet import ParquetPart
from aclog.usage.accesses.table_formats import NEWEST, TableMoment
from aclog.usage.arrow import ACL_FIELDS
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import ALWAYS, RULE_COLUMNS, Rules
from aclog.usage.rules import deciding_rules_of_state, kafka_of_log
from aclog.usage.simulation import Change, may_flip
from aclog.usage.unused import Answer
from aclog.usage.window import UnreadAccesses, unread_text

# Spark for a command, and the ACLs and settings by which its jobs decide.


# The ACLs and settings that a job on Spark decides by, from the flags of a command.


@frozen(eq=False, kw_only=True)
class Policy:
    """What decides accesses; with `own_time`, each access is decided by the ACLs in force at its own time."""

    rules: Rules
    settings: Settings
    own_time: bool = False

    def accesses(
        self, spark: SparkSession, path: str | CatalogRows, moment: TableMoment = NEWEST
    ) -> tuple[DataFrame, PinnedFiles]:
        """Return the accesses to decide, unreadable lines included (pipeline.accesses.read_accesses), and their files.

        Raises:
            ConfigError: the file cannot be read, or has no timestamps although `own_time` needs them.

        """
        accesses, files = pinned_accesses(spark, path, moment)
        if self.own_time and "timestamp" not in accesses.columns:
            raise ConfigError(f"{path}: no column 'timestamp': --own-time decides each row as of its timestamp")
        return accesses, files


def rules_of(
    spark: SparkSession,
    flags: SourceFlags,
    settings: Settings,
    *,
    own_time: bool,
    configs: AbstractSet[str],
    proves: str | None = None,
) -> tuple[Rules, Settings]:
    """Return the ACLs of one state, or with `own_time` all of a log with their intervals; and the settings that decide.

    Settings of a running cluster that are unknown, except for the properties in `configs`, are noted; with `proves`, a
    proof that needs them is refused. If the settings name no Kafka, that decides which the brokers run, with
    `own_time` at the time; a warning reports what is not decided, as that is not known.

    Raises:
        ConfigError: not exactly one source, or `own_time` without --log or with --as-of.
        MetadataError, OSError: the source is damaged, or does not reach the requested point.

    """
    with local_source(spark, flags, by_workers=own_time) as here:
        source = here.choose()
        if own_time:
            return _rules_of_history(spark, here, source, settings, configs, proves)
        image = source.image()
        _check_premises(source, configs, proves)
    rules, settings = deciding_rules_of_state(image, settings)
    warn_of_unknown_kafka(rules)
    return rules, settings


def _rules_of_history(
    spark: SparkSession,
    flags: SourceFlags,
    source: ChosenSource,
    settings: Settings,
    configs: AbstractSet[str],
    proves: str | None,
) -> tuple[Rules, Settings]:
    directory = flags.log_directory()
    if directory is None or flags.as_of is not None:
        raise ConfigError("--own-time decides each row by the ACLs of its own time: expected --log and no --as-of")
    log = directory.absolute()  # the path is resolved by workers, which run in directories of their own
    check_log(log)
    _check_premises(source, configs, proves)
    all_rules = Rules.of_table(interval_table(spark, log), known_from=known_from(log))
    rules, settings = all_rules.by_kafka(settings, partial(kafka_of_log, log))
    warn_of_unknown_kafka(rules)
    return rules, settings


def _check_premises(source: ChosenSource, configs: AbstractSet[str], proves: str | None) -> None:
    premises = read_premises(source, configs)
    if proves is not None:
        refuse_unless_known(premises, proves)


@frozen(eq=False, kw_only=True)
class TwoPolicies:
    """What decides before a change of the ACLs and after it."""

    before: Policy
    after: Policy

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        first: SourceFlags,
        second: SecondStateFlags,
        settings: tuple[Settings, Settings],
        *,
        configs: tuple[AbstractSet[str], AbstractSet[str]],
        proves: str,
    ) -> Self:
        """Read a state and a second one (checked: SecondStateFlags.check): of a source, or the first one, changed.

        `settings`: of both; if they name no Kafka, that decides which the brokers of a state run, and for a state
        without it, that of the other one. `configs`, of both, and `proves` as for `rules_of`.

        Raises:
            ConfigError: as `changed_rules`, or a malformed file.
            MetadataError, OSError: a source is damaged, or does not reach the requested point.

        """
        source = second.source(first)
        with local_source(spark, first) as here:
            choice = here.choose()
            image = choice.image()
            _check_premises(choice, configs[0], proves)
        rules, other = Rules.of_image(image.acls), None
        if source is None:
            changed = changed_rules(rules, second.changes())
        else:
            with local_source(spark, source) as here:
                choice = here.choose()
                other = choice.image()
                _check_premises(choice, configs[1], proves)
            changed = Rules.of_image(other.acls)
        old, new = _deciding(image, other)
        policies = _policy(rules, settings[0], old), _policy(changed, settings[1], new)
        for text in dict.fromkeys(filter(None, (unknown_kafka(each.rules) for each in policies))):
            warn(text)
        return cls(before=policies[0], after=policies[1])


def _deciding(first: Image, second: Image | None) -> tuple[Image, Image]:
    """Return the images whose nodes decide on two states; the second is None if it is the first one, changed."""
    other = first if second is None else second
    reference = next((image for image in (first, other) if _states_kafka(image)), first)
    return first if _states_kafka(first) else reference, other if _states_kafka(other) else reference


def _states_kafka(image: Image) -> bool:
    """Return whether a state records which Kafka decides: by its metadata.version, or of at least one broker."""
    return possible_kafka(image).has_brokers


def _policy(rules: Rules, settings: Settings, image: Image) -> Policy:
    rules, settings = rules.by_kafka(
        settings, lambda controllers: [(ALWAYS, possible_kafka(image, controllers=controllers))]
    )
    return Policy(rules=rules, settings=settings)


def changed_rules(rules: Rules, changes: Iterable[RuleChange]) -> Rules:
    """Return the ACLs after these changes, in order; a new one has no id.

    Raises:
        ConfigError: an ACL to add that already exists, or one to remove that does not exist.

    """
    rows = {_content(row): row for row in rules.table.to_pylist()}
    for change in changes:
        row = StandardAclWithId(id=None, acl=change.acl).to_dict()
        content = _content(row)
        if change.added is (content in rows):
            raise existing_rule(change) if change.added else missing_rule(change)
        if change.added:
            rows[content] = row
        else:
            del rows[content]
    texts = {name: pa.array([row[name] for row in rows.values()], pa.string()) for name in RULE_COLUMNS}
    return Rules.of_table(pa.table(texts))


def _content(row: Mapping[str, str | None]) -> tuple[str | None, ...]:
    return tuple(row[name] for name in ACL_FIELDS)


# `aclog spark authorize`: decisions on every row of a file of requests.


_PARTS_OF_A_CORE = 2
"""So that a core that is done early takes over work; each part pays for its distinct accesses."""
_DECISIONS = ("ALLOWED", "DENIED", "ERROR")
_Counts: TypeAlias = tuple[Mapping[str, int], Sequence[tuple[str, int]]]
WITH_EVENTS: Final[Mapping[str, Form]] = {"decided": "parquet", "events": "json"}
_REASONS = 5


def authorize_command(
    spark: SparkSession,
    requests: str | CatalogRows,
    out: Place,
    policy: Policy,
    flags: DecidedFlags | None = None,
    *,
    moment: TableMoment = NEWEST,
    mode: Mode = Mode.ERROR,
    out_format: OutFormat = OutFormat.PARQUET,
    by_day: bool = False,
) -> int:
    """Write the requests with decision, rule and rule_id as Parquet, and print the number of each decision.

    As events, `out` has these in `decided`, and the events as JSON lines in `events`. `by_day`: the requests are
    partitioned by the day of their time. Returns the exit code: 2 if a
    request could not be decided.

    Raises:
        ConfigError: the requests cannot be read, lack timestamps that are needed, or are rotated meanwhile.

    """
    form = None if flags is None else flags.as_
    place = "" if form is None else "decided"
    tables = in_format(PARQUET if form is None else WITH_EVENTS, out_format)
    plain = None
    if out_format is OutFormat.PARQUET and not by_day:
        plain = _plain_files(spark, requests, out, moment, mode)
    source = plain or _RequestRows.of(spark, requests, policy, moment, by_day=by_day)
    with new_output(spark, out, tables, mode) as unfinished, source.files.verified():
        counts, reasons = source.decide(policy, unfinished, place, None if form is None else flags)
        if flags is not None and form is not None:
            _write_events(unfinished, place, flags, form)
    for line in aligned(("requests", "decision"), [(f"{counts.get(name, 0):,}", name) for name in _DECISIONS]):
        say(line)
    for reason, count in reasons:
        warn(f"{count:,} requests: {reason}")
    return BAD_INPUT if reasons else ALLOWED


@frozen(eq=False, kw_only=True)
class _RequestRows:
    """Requests as rows of a frame."""

    accesses: DataFrame
    files: PinnedFiles
    by_day: bool = False

    @classmethod
    def of(
        cls, spark: SparkSession, requests: str | CatalogRows, policy: Policy, moment: TableMoment, *, by_day: bool
    ) -> Self:
        """Read the requests. Raises as `Policy.accesses`, and as `with_day`."""
        accesses, files = policy.accesses(spark, requests, moment)
        if by_day:
            with_day(accesses)
        return cls(accesses=accesses, files=files, by_day=by_day)

    def decide(self, policy: Policy, output: JobOutput, table: str, flags: DecidedFlags | None) -> _Counts:
        """Write the decided rows; return the number of each decision, and the most frequent errors."""
        decided = _with_malformed(authorize(self.accesses, policy.rules, policy.settings, own_time=policy.own_time))
        if flags is not None and flags.as_ is not None:
            events(decided, flags.as_, source=flags.event_source)  # refused before the job, not after it
        output.write(decided, table, by_day=self.by_day)
        # counted in what was written: counting `decided` would run the job a second time
        written = output.read(table)
        counts = {row["decision"]: row["count"] for row in written.groupBy("decision").count().collect()}
        return counts, _reasons(written) if counts.get("ERROR") else []


@frozen(eq=False, kw_only=True)
class _PlainFiles:
    """Requests in plain Parquet files, which workers read, decide and write on their own."""

    spark: SparkSession
    parts: Sequence[ParquetPart]
    files: PinnedFiles
    schema: pa.Schema

    def decide(self, policy: Policy, output: JobOutput, table: str, _flags: DecidedFlags | None) -> _Counts:
        """Do the same."""
        assert isinstance(output, NewOutput)  # noqa: S101 - plain files are written as Parquet only
        by_code = output.write_files(
            table,
            partial(
                write_decided,
                self.spark,
                self.parts,
                self.schema,
                rules=policy.rules,
                settings=policy.settings,
                own_time=policy.own_time,
            ),
        )
        decisions, texts, _ = policy.rules.texts.of_codes(pa.array(by_code, pa.int32()))
        counts, errors = Counter[str](), Counter[str]()
        for decision, text, count in zip(decisions.to_pylist(), texts.to_pylist(), by_code.values(), strict=True):
            counts[decision] += count
            if decision == "ERROR":
                errors[text] += count
        return counts, sorted(errors.items(), key=lambda pair: (-pair[1], pair[0]))[:_REASONS]


def _plain_files(
    spark: SparkSession, requests: str | CatalogRows, out: Place, moment: TableMoment, mode: Mode
) -> _PlainFiles | None:
    """Return the files of requests if workers can read and write such files themselves, on this machine."""
    if mode is Mode.APPEND or not isinstance(out, Path) or not is_here(spark):
        return None
    plain = _plain_parts(spark, requests, moment)
    schema = None if plain is None else common_schema(plain[0])
    if plain is None or schema is None:
        return None
    return _PlainFiles(spark=spark, parts=plain[0], files=plain[1], schema=schema)


def _plain_parts(
    spark: SparkSession, requests: str | CatalogRows, moment: TableMoment
) -> tuple[list[ParquetPart], PinnedFiles] | None:
    """Return an access log as parts for all cores, and its files, if workers can read them (plain_accesses)."""
    if moment or is_connect(spark):
        return None
    return plain_accesses(spark, requests, spark.sparkContext.defaultParallelism * _PARTS_OF_A_CORE)


def _write_events(output: JobOutput, decided: str, flags: DecidedFlags, form: EventForm) -> None:
    """Write an event for each decided row that is wanted."""
    written = output.read(decided)
    if form is EventForm.OCSF and (timeless := without_time(written)):
        raise ConfigError(
            f"{timeless:,} of the requests {'has' if timeless == 1 else 'have'} no timestamp, and an OCSF event must "
            "have a time: leave them out, or export --as cloudevents"
        )
    rows = written if flags.only is None else written.where(F.col("decision") == flags.only.upper())
    output.write(events(rows, form, source=flags.event_source), "events")


def _with_malformed(decided: DataFrame) -> DataFrame:
    """Give an unreadable line its text as the reason; the decision only found its columns missing."""
    text = F.concat(F.lit("not a request: "), F.col(MALFORMED))
    return decided.withColumn("rule", F.coalesce(text, "rule")).drop(MALFORMED)


def _reasons(written: DataFrame) -> list[tuple[str, int]]:
    reason = F.when(F.col("rule").startswith("not a request: "), "not a request").otherwise(F.col("rule"))
    counted = written.where(F.col("decision") == "ERROR").groupBy(reason.alias("reason")).count()
    return [
        (row["reason"], row["count"]) for row in counted.orderBy(F.desc("count"), "reason").limit(_REASONS).collect()
    ]


# `aclog spark history`: every ACL with the interval in which it was in force, as Parquet.


def history_command(
    spark: SparkSession,
    log: Path,
    out: Place,
    mode: Mode = Mode.ERROR,
    out_format: OutFormat = OutFormat.PARQUET,
) -> None:
    """Write the history of a log directory to `out`, a directory of Parquet files, and print its counts.

    `out` appears only once it is complete. Notes on the log come from `aclog.cli.spark.spark_session.check_log`.

    Raises:
        ConfigError: `out` exists.
        LogError: there is no log, or it cannot be read.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.
        DecodeError: damage; a ReplayError if records contradict each other.
        PySparkException, Py4JJavaError: a job failed; its text holds the error of a segment that cannot be read.

    """
    with contradictions_raised(spark, log), new_output(spark, out, in_format(PARQUET, out_format), mode) as unfinished:
        counts = _write(spark, log, unfinished)
    say(f"{out}: {counts['rules']:,} rules, {counts['in_force']:,} of them in force")


def _write(spark: SparkSession, log: Path, output: JobOutput) -> dict[str, int]:
    rules = intervals_or_table(spark, log)
    if isinstance(rules, pa.Table):
        output.add(rules.select(COLUMNS), "")
        return {"rules": len(rules), "in_force": rules.column("removed_offset").null_count}
    if is_connect(spark):
        output.write(rules.select(*COLUMNS))
        written = output.read()
        return {"rules": written.count(), "in_force": written.where(F.col("removed_offset").isNull()).count()}
    counts = Observation()  # counts while writing, in the same job
    in_force = F.count_if(F.col("removed_offset").isNull()).alias("in_force")
    output.write(rules.select(*COLUMNS).observe(counts, F.count("*").alias("rules"), in_force))
    return counts.get


# The report of `aclog spark ingest` on the lines that it has read: a table, or JSON.


STDOUT = "-"


def say_counts(counts: Counts, rejects: str) -> None:
    """Print the number of lines of each kind, and warn of rejects, which are in this directory."""
    for line in aligned(("lines", "what"), _rows(counts)):
        say(line)
    if counts.rejected:
        warn(f"{counts.rejected:,} of {counts.total:,} lines are not accesses: see {rejects}")


def write_summary(place: str | None, out: Place, counts: Counts, appended: Appended | None, *, committed: bool) -> None:
    """Write the summary to a file, which is replaced, or to stdout; nothing if there is no place.

    Raises:
        ConfigError, OSError: as open_output.

    """
    if place is None:
        return
    text = json_text(_summary(out, counts, appended, committed=committed))
    if place == STDOUT:
        emit(text, flush=True)
    else:
        with open_output(Path(place), binary=False) as file:
            file.write(f"{text}\n".encode())


def _summary(out: Place, counts: Counts, appended: Appended | None, *, committed: bool) -> dict[str, object]:
    summary: dict[str, object] = {
        "out": str(out),
        "committed": committed,
        "lines": counts.total,
        "accesses": counts.accesses,
        "rejected": counts.rejected,
        "blank": counts.blanks,
        "rejectRate": round(counts.reject_rate, 6),
        "rejects": dict(counts.rejects),
    }
    if appended is not None:
        summary["files"] = {
            "seen": appended.files,
            "new": appended.whole,
            "grown": appended.grown,
            "known": appended.unchanged,
            "unfinished": list(appended.waiting),
        }
        summary["days"] = list(appended.days)
        summary["late"] = appended.late
        summary["watermark"] = _time(appended.watermark)
        summary["sources"] = {source: _time(latest) for source, latest in sorted(appended.sources.items())}
    return summary


def _time(micros: int | None) -> str | None:
    return None if micros is None else utc_text(micros // 1000)


def watermark_text(appended: Appended) -> str:
    """Return up to when the table is complete, for people."""
    time = _time(appended.watermark)
    if time is not None:
        return f"complete up to {time}"
    unknown = [source for source, latest in sorted(appended.sources.items()) if latest is None]
    return f"no access with a time yet{f' from {unknown[0]}' if unknown else ''}"


def _rows(counts: Counts) -> list[tuple[str, str]]:
    rejects = [(f"{count:,}", f"rejected: {reason}") for reason, count in counts.rejects.items()]
    blanks = [(f"{counts.blanks:,}", "blank")] if counts.blanks else []
    return [(f"{counts.accesses:,}", "accesses"), *rejects, *blanks, (f"{counts.total:,}", "read")]


# `aclog spark ingest --append` and `--follow`: access logs into a table that grows.


_ATTEMPTS = 3
"""Of one append: a nightly run may meet the rotation."""


def append_command(
    spark: SparkSession,
    paths: Sequence[str],
    out: Path,
    flags: IngestFlags,
    *,
    appending: AppendFlags,
    report: ReportFlags,
) -> int:
    """Append what is new once, or until a signal comes; return the exit code: 1 if too many lines are rejected.

    Raises:
        ConfigError: a file cannot be read, `out` is not a table that --append made, or a flag is wrong.
        LockedError: another process appends to it.

    """
    layout = Layout.of(spark, flags.kind, flags.timezone, column_pairs(flags.column or ()))
    with Ledger.open(out) as ledger:
        rounds = _Rounds(spark=spark, paths=paths, layout=layout, ledger=ledger, report=report)
        try:
            if appending.follow:
                rounds.follow(appending.interval)
            else:
                rounds.once()
        except RejectRateError as error:
            write_summary(report.summary, out, error.counts, None, committed=False)
            complain(str(error))
            return DENIED
    return ALLOWED


@define(kw_only=True)
class _Rounds:
    spark: SparkSession
    paths: Sequence[str]
    layout: Layout
    ledger: Ledger
    report: ReportFlags
    _noted: str = field(default="", init=False)

    def once(self) -> None:
        """Append once, and report the lines."""
        done = self._steadily()
        if self.report.summary != STDOUT:
            say_counts(done.counts, str(self.ledger.out / "rejects"))
            say(_text(done))
        for path in done.waiting:
            note(f"{path}: ends in an incomplete line, which is read once it is complete")

    def _steadily(self) -> Appended:
        """Append; again if logs were rotated meanwhile, as they are but now and then."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._append()
            except ChangedFilesError as error:
                note(f"{error}: looking again")
        return self._append()

    def follow(self, interval: float) -> None:
        """Append until SIGTERM or SIGINT, and print a line whenever something was new."""
        stop = Stop()
        with on_signals(stop.set):
            note(f"following {', '.join(self.paths)} into {self.ledger.out}, every {interval:g} s")
            self._round(ChangedFilesError)
            while not stop.wait(interval):
                self._round(ChangedFilesError, NoFilesError)

    def _round(self, *passing: type[ConfigError]) -> None:
        """Append; what passes by itself, as when logs are being rotated, is only noted."""
        try:
            self._say(self._append())
        except passing as error:
            self._note_once(str(error))

    def _note_once(self, text: str) -> None:
        if text != self._noted:
            note(text)
        self._noted = text

    def _say(self, done: Appended) -> None:
        self._noted = ""
        if done.counts.total and self.report.summary != STDOUT:
            say(
                f"{plural(done.counts.accesses, 'access')}, {done.counts.rejected:,} rejected; {_text(done)}",
                flush=True,
            )

    def _append(self) -> Appended:
        limit = self.report.max_reject_rate
        done = append(self.spark, self.paths, self.layout, self.ledger, max_reject_rate=limit)
        write_summary(self.report.summary, self.ledger.out, done.counts, done, committed=True)
        return done


def _text(done: Appended) -> str:
    files = f"{plural(done.files, 'file')}: {done.whole:,} new, {done.grown:,} grown, {done.unchanged:,} known"
    late = f"; {done.late:,} accesses came late, for {', '.join(done.days)}" if done.late else ""
    return f"{files}; {watermark_text(done)}{late}"


# `aclog spark ingest`: access logs into a table of accesses and a table of rejects.


def ingest_command(
    spark: SparkSession,
    paths: Sequence[str],
    out: Place,
    flags: IngestFlags,
    report: ReportFlags | None = None,
    *,
    mode: Mode = Mode.ERROR,
    out_format: OutFormat = OutFormat.PARQUET,
) -> int:
    """Write `out`/accesses and `out`/rejects, print the counts, and warn of rejects; return the exit code.

    Raises:
        ConfigError: `out` exists, there is no file, a file cannot be read, or a --column is invalid.

    """
    report = report or ReportFlags()
    check_absent(spark, out, mode, in_format(INGESTED, out_format))
    columns = column_pairs(flags.column or ())
    ingested = ingest(spark, paths, flags.kind, timezone=flags.timezone, columns=columns)
    try:
        counts = write(ingested, out, max_reject_rate=report.max_reject_rate, mode=mode, form=out_format)
    except RejectRateError as error:
        write_summary(report.summary, out, error.counts, None, committed=False)
        complain(str(error))
        return DENIED
    write_summary(report.summary, out, counts, None, committed=True)
    if report.summary != STDOUT:
        say_counts(counts, joined(str(out), "rejects"))
    return ALLOWED


# `aclog spark simulate`: the accesses of a log that other ACLs would decide differently.


_MAX_ROWS = 10


def simulate_command(
    spark: SparkSession,
    requests: str | CatalogRows,
    out: Place,
    before: Policy,
    after: Policy,
    *,
    moment: TableMoment = NEWEST,
    mode: Mode = Mode.ERROR,
    out_format: OutFormat = OutFormat.PARQUET,
) -> bool:
    """Write the accesses whose decision changes as Parquet, and print how many are gained and lost.

    `out` appears only once it is complete. Returns whether any decision changes, or may for what cannot be decided.

    Raises:
        ConfigError: `out` exists; the requests cannot be read, lack needed timestamps, or are rotated meanwhile.

    """
    tables = in_format(PARQUET, out_format)
    check_absent(spark, out, mode, tables)
    rows, files, bad = _access_rows(spark, requests, moment, before)
    sides = [(policy.rules, policy.settings) for policy in (before, after)]
    reported = simulated(rows, *sides, own_time=before.own_time).persist()  # small: read for the changes and the rest
    try:
        with new_output(spark, out, tables, mode) as unfinished, files.verified():
            flips = flips_of(reported, before.rules, after.rules)
            unfinished.write(flips)
            malformed = 0 if bad is None else bad.count()
            parts = [undecided_of(reported), rejected_lines(spark, requests)]
            if bad is not None and malformed:
                parts.append(unread_lines(bad))
    finally:
        reported.unpersist()
    unread = may_flip(UnreadAccesses.sum_of(parts), *((each.rules, each.settings) for each in (before, after)))
    changed = _show(rows_of_output(spark, out, tables[""], flips.schema), unread, (before.rules, after.rules))
    if malformed:
        warn(f"{plural(malformed, 'line')} skipped: no accesses")
    if unread:
        warn(f"{unread_text(unread)}: rules that may apply to them change: they may be decided differently")
    return changed or bool(unread)


def _access_rows(
    spark: SparkSession, requests: str | CatalogRows, moment: TableMoment, policy: Policy
) -> tuple[DataFrame | AccessRows, PinnedFiles, DataFrame | None]:
    """Return the rows of an access log and its files, and the unreadable lines, if there may be any."""
    plain = _plain_parts(spark, requests, moment)
    if plain is not None:
        return AccessRows.of_parts(spark, plain[0]), plain[1], None
    accesses, files = policy.accesses(spark, requests, moment)
    bad = accesses.where(F.col(MALFORMED).isNotNull()).select(MALFORMED)
    return accesses.where(F.col(MALFORMED).isNull()).drop(MALFORMED), files, bad


def _show(flips: DataFrame, unread: UnreadAccesses, states: tuple[Rules, Rules]) -> bool:
    """Print how many accesses change, or may; return whether some do. `states`: the ACLs before and after."""
    counted = flips.groupBy("change").agg(F.sum("count").alias("accesses"), F.count("*").alias("distinct"))
    by_change = {row["change"]: row for row in counted.collect()}
    rows = [
        (f"{by_change[change]['accesses']:,}", f"{by_change[change]['distinct']:,}", change.value)
        if change in by_change
        else ("0", "0", change.value)
        for change in Change
        if change in by_change or change in {Change.GAINED, Change.LOST}
    ]
    if unread:
        rows.append((f"{unread.total:,}", "-", Answer.NOT_JUDGED.value))
    for line in aligned(("accesses", "distinct requests", "change"), rows):
        say(line)
    for change in Change:
        if change in by_change:
            _show_most(flips.where(F.col("change") == change.value), change, states)
    return bool(by_change)


def _show_most(flips: DataFrame, change: str, states: tuple[Rules, Rules]) -> None:
    order = F.desc("count"), *REQUEST_COLUMNS
    say()
    header = (change.lower(), "principal", "host", "operation", "resource", "before", "after")
    rows = (
        (
            f"{row['count']:,}",
            *(str(row[name]) for name in ("principal", "host", "operation")),
            f"{row['resourceType']}:{row['resourceName']}",
            *(basis_text(rules, row[f"rule_{side}"]) for rules, side in zip(states, ("before", "after"), strict=True)),
        )
        for row in flips.orderBy(*order).limit(_MAX_ROWS).collect()
    )
    for line in aligned(header, rows):
        say(line)


# `aclog spark usage`: which ACLs an access log needed, as tables and as a printed summary.


REPORTED: Final[Mapping[str, Form]] = {"rules": "parquet", "denied": "parquet", "holes": "parquet"}


def usage_command(
    spark: SparkSession,
    requests: str | CatalogRows,
    out: Place,
    policy: Policy,
    *,
    flags: UsageFlags,
    until: datetime | None = None,
    moment: TableMoment = NEWEST,
    mode: Mode = Mode.ERROR,
    out_format: OutFormat = OutFormat.PARQUET,
) -> None:
    """Write `out`/rules, `out`/denied and `out`/holes as Parquet, and print a summary.

    `out` appears only once it is complete. `until` is the parsed --until.

    Raises:
        ConfigError: `out` exists; the requests cannot be read, are rotated meanwhile, or none of them has a timestamp.

    """
    check_absent(spark, out, mode, in_format(REPORTED, out_format))
    rows, files, unread = _usage_rows(spark, requests, moment)
    with files.verified():
        malformed = unread.count() if unread is not None else 0
        unknown = rejected_lines(spark, requests)
        if unread is not None and malformed:
            unknown = UnreadAccesses.sum_of((unknown, unread_lines(unread.select(MALFORMED))))
        usage_report = usage(
            rows,
            policy.rules,
            policy.settings,
            own_time=policy.own_time,
            window_days=flags.days,
            until=until,
            top=flags.top,
            unread=unknown,
        )
    tables = {"rules": usage_report.rules, "denied": usage_report.denied, "holes": usage_report.holes}
    with new_output(spark, out, in_format(REPORTED, out_format), mode) as unfinished:
        for name, table in tables.items():
            unfinished.add(table, name)
    together = f"{out}/rules: all removable ACLs can be removed together"
    for line in summary_lines(usage_report, [together]):
        say(line)
    warn_of_gaps(usage_report)
    if malformed:
        warn(f"{plural(malformed, 'line')} skipped: no accesses")


def _usage_rows(
    spark: SparkSession, requests: str | CatalogRows, moment: TableMoment
) -> tuple[AccessRows, PinnedFiles, DataFrame | None]:
    """Return the rows of an access log and its files, and those that cannot be read, if there may be any."""
    plain = _plain_parts(spark, requests, moment)
    if plain is not None:
        parts, files = plain
        return AccessRows.of_parts(spark, parts), files, None
    accesses, files = pinned_accesses(spark, requests, moment)
    rows = AccessRows.of_frame(accesses.where(F.col(MALFORMED).isNull()))
    return rows, files, accesses.where(F.col(MALFORMED).isNotNull())


# `aclog spark when`: since when, and until when, something was allowed, from a log of any size.


def when_command(spark: SparkSession, log: Path, question: Question, settings: Settings, output: Output) -> None:
    """Print the intervals of a log directory in which the answer was yes, as `aclog when` does.

    Raises:
        LogError: there is no log, or it cannot be read.
        CheckpointError: the log does not begin at offset 0, and no complete checkpoint reaches its start.
        DecodeError: damage; a ReplayError if records contradict each other.
        PySparkException, Py4JJavaError: a job failed; its text holds the error of a segment that cannot be read.

    """
    begin, timeline = begin_and_intervals(spark, log, question, settings)
    print_intervals(timeline, output, begin=begin)
