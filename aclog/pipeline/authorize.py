"""Decisions on every row of an access log, simulation, and decisions as functions of SQL."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any, Final, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field
from numpy.typing import NDArray
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.audit import known_names
from aclog.authorizer.codes import AclOperation
from aclog.authorizer.settings import Settings, parse_super_users
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.pipeline.access_rows import AccessRows, rows_of_parts
from aclog.pipeline.accesses.kafka_log import TIMESTAMP
from aclog.pipeline.event_form import EventForm
from aclog.pipeline.session import Sent, broadcast
from aclog.pipeline.spark_versions import arrow_schema, arrow_udf
from aclog.usage.arrow import regrouped
from aclog.usage.decisions.bulk_authorizer import NO_TIME, BulkAuthorizer
from aclog.usage.decisions.decisions import (
    REQUEST_COLUMNS,
    TEXT_COLUMNS,
    UNRESOLVED,
    AccessNumbers,
    DecisionCode,
    DecisionTexts,
)
from aclog.usage.decisions.intervals import AclIntervals, Rules
from aclog.usage.simulation import Change
from aclog.usage.undecided import errors_of, undecided_rows
from aclog.usage.window import UnreadAccesses, UnreadCounter, UnreadSpan

# Decided accesses as events for other systems: OCSF (class 6003, API Activity) and CloudEvents 1.0, as JSON lines.


OCSF_VERSION: Final = "1.6.0"
SPEC_VERSION: Final = "1.0"

_CATEGORY, _CLASS = 6, 6003
_CREATE, _READ, _UPDATE, _DELETE, _OTHER = 1, 2, 3, 4, 99
_ACTIVITIES: Final[Mapping[str, int]] = {
    "READ": _READ,
    "DESCRIBE": _READ,
    "DESCRIBE_CONFIGS": _READ,
    "DESCRIBE_TOKENS": _READ,
    "CREATE": _CREATE,
    "CREATE_TOKENS": _CREATE,
    "WRITE": _UPDATE,
    "ALTER": _UPDATE,
    "ALTER_CONFIGS": _UPDATE,
    "DELETE": _DELETE,
}
"""OCSF's activity for an operation; the others are Other, with the operation as its name."""
_NAMES: Final = {_CREATE: "Create", _READ: "Read", _UPDATE: "Update", _DELETE: "Delete"}
_UTC: Final = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"}
_SUCCESS, _FAILURE, _INFORMATIONAL = 1, 2, 1


def events(decided: DataFrame, form: EventForm, *, source: str) -> DataFrame:
    """Return an event for each row that was decided, with one column for each top-level key.

    `decided` is what `aclog.pipeline.authorize.authorize` returns; rows that could not be decided (ERROR) are left out.
    `source` is where events are from, a URI reference: `source` of CloudEvents, `metadata.log_provider` of OCSF.

    Raises:
        ConfigError: OCSF without a column `timestamp`: its events must have a time.

    """
    if form is EventForm.OCSF and TIMESTAMP not in decided.columns:
        raise ConfigError(f"no column {TIMESTAMP!r}: an OCSF event must have a time")
    without_errors = decided.where(F.col("decision") != "ERROR")
    columns: Mapping[EventForm, Callable[[DataFrame, str], dict[str, Column]]] = {
        EventForm.OCSF: _ocsf,
        EventForm.CLOUDEVENTS: _cloud_event,
    }
    return without_errors.select(
        *(column.alias(name) for name, column in columns[form](without_errors, source).items())
    )


def without_time(decided: DataFrame) -> int:
    """Return how many decided rows have no time."""
    return decided.where((F.col("decision") != "ERROR") & F.col(TIMESTAMP).isNull()).count()


def _ocsf(decided: DataFrame, source: str) -> dict[str, Column]:
    allowed = F.col("decision") == "ALLOWED"
    activity = _by_operation(_ACTIVITIES.get, _OTHER)
    name = _by_operation(lambda operation: _NAMES.get(_ACTIVITIES.get(operation, _OTHER)), None)
    product = F.struct(
        F.lit("aclog").alias("name"), F.lit("aclog").alias("vendor_name"), F.lit(version("aclog")).alias("version")
    )
    user = F.struct(
        F.substring_index("principal", ":", 1).alias("type"),
        F.expr("substring(principal, locate(':', principal) + 1)").alias("name"),
        F.col("principal").alias("uid"),
    )
    policy = F.struct(F.col("rule").alias("name"), F.col("rule_id").alias("uid"))
    decision = F.struct(F.initcap("decision").alias("decision"), policy.alias("policy"))
    return {
        "time": F.unix_millis(TIMESTAMP),
        "activity_id": activity,
        "activity_name": F.coalesce(name, F.col("operation")),
        "category_uid": F.lit(_CATEGORY),
        "category_name": F.lit("Application Activity"),
        "class_uid": F.lit(_CLASS),
        "class_name": F.lit("API Activity"),
        "type_uid": activity + _CLASS * 100,
        "severity_id": F.lit(_INFORMATIONAL),
        "status_id": F.when(allowed, _SUCCESS).otherwise(_FAILURE),
        "status": F.when(allowed, "Success").otherwise("Failure"),
        "metadata": F.struct(
            F.lit(OCSF_VERSION).alias("version"),
            product.alias("product"),
            F.lit("kafka.authorizer").alias("log_name"),
            F.lit(source).alias("log_provider"),
        ),
        "actor": F.struct(user.alias("user"), F.array(decision).alias("authorizations")),
        "api": F.struct(F.col("operation"), F.struct(F.lit("Kafka").alias("name")).alias("service")),
        "src_endpoint": F.struct(F.col("host").alias("ip")),
        "resources": F.array(F.struct(F.col("resourceName").alias("name"), F.col("resourceType").alias("type"))),
        **_unmapped(decided),
    }


def _by_operation(value: Callable[[str], int | str | None], other: int | None) -> Column:
    """Return a value for each operation of Kafka."""
    pairs = [(operation, value(operation)) for operation in known_names(AclOperation)]
    column = F.lit(other)
    for operation, mapped in pairs:
        if mapped is not None:
            column = F.when(F.col("operation") == operation, F.lit(mapped)).otherwise(column)
    return column


def _unmapped(decided: DataFrame) -> dict[str, Column]:
    columns = [F.col(name) for name in ("request", "loggedDecision") if name in decided.columns]
    return {"unmapped": F.struct(*columns)} if columns else {}


def _cloud_event(decided: DataFrame, source: str) -> dict[str, Column]:
    data = ("principal", "host", "operation", "resourceType", "resourceName", "decision", "rule")
    # date_format knows the session's zone alone, in which an hour of UTC may be missing (summer time)
    time = F.get_json_object(F.to_json(F.struct(TIMESTAMP), _UTC), f"$.{TIMESTAMP}")
    timed = {"time": time} if TIMESTAMP in decided.columns else {}
    return {
        "specversion": F.lit(SPEC_VERSION),
        "id": F.expr("uuid()"),  # F.uuid: since PySpark 4.1
        "source": F.lit(source),
        "type": F.concat(F.lit("aclog.access."), F.lower("decision")),
        "subject": F.concat_ws("/", F.col("resourceType"), F.col("resourceName")),
        **timed,
        "datacontenttype": F.lit("application/json"),
        "data": F.struct(*data, F.col("rule_id").alias("ruleId")),
    }


# Batch authorization: decisions on every row of an access log.


DECISION_CODE = "decision_code"
_ADDED = frozenset({DECISION_CODE, *TEXT_COLUMNS})
_TIME = "microseconds of the access"
"""A column that only exists on the way to workers: no input has such a name."""
_CODE = "_code"
_AUTHORIZERS = 2
"""The most authorizers in a worker: simulate decides by two."""
DECIDED_TOGETHER = 1 << 18
"""The rows decided together: the cost of a batch, apart from its rows, is spread over so many."""


def authorize(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool = False) -> DataFrame:
    """Return the rows of `frame` with the columns `decision`, `rule` and `rule_id` appended.

    `frame` has the text columns principal, host, operation, resourceType and resourceName. With `own_time` each row is
    decided by the ACLs in force at its `timestamp`. `decision` is ALLOWED, DENIED or ERROR; `rule` is the text of
    Kafka's audit log, or for ERROR the reason. Each worker decides a distinct access once.

    Raises:
        ConfigError: `frame` has a column of one of these names already.

    """
    check_added(frame.columns)
    plain = _with_plain_names(frame, (*REQUEST_COLUMNS, "timestamp") if own_time else REQUEST_COLUMNS)
    if _fits_arrow(plain):
        authorized = _authorized(plain, rules, settings, own_time=own_time)
    else:
        decided = plain.withColumn(DECISION_CODE, decision_code(plain, rules, settings, own_time=own_time))
        authorized = with_texts(decided, rules).drop(DECISION_CODE)
    return authorized.toDF(*frame.columns, *TEXT_COLUMNS)


def check_added(names: Sequence[str]) -> None:
    """Raise ConfigError if a table has a column of one of the names that decisions add."""
    for name in names:
        if name.lower() in _ADDED:
            raise ConfigError(f"the table has a column {name!r}, which would come out twice: rename it")


def _with_plain_names(frame: DataFrame, needed: Sequence[str]) -> DataFrame:
    """Return the frame with numbers for names, except for the columns needed: Spark's Python functions refuse others.

    mapInArrow looks columns up by name, and so fails on a name with a dot, and on two columns of one name.
    """
    names = [f"column {number}" for number in range(len(frame.columns))]
    for name in needed:
        names[_position(frame, name)] = name
    return frame.toDF(*names)


def _fits_arrow(frame: DataFrame) -> bool:
    """Return whether Arrow can carry all columns to Python and back, as it cannot for year-month intervals."""
    try:
        arrow_schema(frame.schema)
    except PySparkTypeError:
        return False
    return True


def _authorized(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool) -> DataFrame:
    """Return the frame with texts, all of whose columns go through Python.

    That is faster than a Python UDF: while a UDF runs, Spark queues the other columns row by row and then joins them.
    """
    sent = broadcast(frame.sparkSession, rules.intervals)
    texts = broadcast(frame.sparkSession, rules.texts)
    width, names = len(frame.columns), [*frame.columns, *TEXT_COLUMNS]
    positions = [_position(frame, name) for name in REQUEST_COLUMNS]
    times = [F.unix_micros(frame["timestamp"]).alias(_TIME)] if own_time else []

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide one partition, on a worker."""
        for table in regrouped(batches, DECIDED_TOGETHER):
            codes, start = decide(table.select([*positions, *range(width, table.num_columns)]), sent, settings), 0
            # texts by the batches that came in: their columns are passed on without a copy, and texts stay below 2 GiB
            for batch in table.to_batches():
                added = texts.value.of_codes(codes[start : start + batch.num_rows])
                start += batch.num_rows
                yield pa.record_batch([*batch.columns[:width], *added], names=names)

    fields = [*frame.schema.fields, *(StructField(name, StringType()) for name in TEXT_COLUMNS)]
    return frame.select("*", *times).mapInArrow(run, StructType(fields))


def _position(frame: DataFrame, name: str) -> int:
    """Return the position of the column that Spark finds by this name; Spark ignores case."""
    frame.select(name)  # Spark's own error if there is no such column, or more than one
    columns = frame.columns
    return columns.index(name) if name in columns else [other.lower() for other in columns].index(name.lower())


def decision_codes(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool = False) -> DataFrame:
    """Return the decision code of each row of `frame` and nothing else, in no order: the cheapest form of decisions."""
    sent = broadcast(frame.sparkSession, rules.intervals)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide one partition, on a worker."""
        for table in regrouped(batches, DECIDED_TOGETHER):
            yield pa.record_batch([decide(table, sent, settings)], names=[DECISION_CODE])

    return frame.select(*_request_columns(frame, own_time=own_time)).mapInArrow(run, f"{DECISION_CODE} int")


def decision_code(frame: DataFrame, rules: Rules, settings: Settings, *, own_time: bool = False) -> Column:
    """Return the decision code of each row of `frame` as an INT column (aclog.usage.decisions.decisions)."""
    sent = broadcast(frame.sparkSession, rules.intervals)
    request_columns = _request_columns(frame, own_time=own_time)
    names = list(map(str, range(len(request_columns))))

    def run(batches: Iterator[_Columns]) -> Iterator["pa.Array[Any]"]:
        """Decide one partition, on a worker."""
        # an iterator UDF may regroup batches, as long as it returns as many rows in total, in the same order
        tables = (pa.record_batch(list(columns), names=names) for columns in batches)
        for table in regrouped(tables, DECIDED_TOGETHER):
            yield decide(table, sent, settings)

    column: Column = arrow_udf(run, "int")(*request_columns)
    return column


def _request_columns(frame: DataFrame, *, own_time: bool) -> list[Column]:
    """Return the columns of `frame` that decide."""
    columns = [frame[name] for name in REQUEST_COLUMNS]
    return [*columns, F.unix_micros(frame["timestamp"])] if own_time else columns


def decide(table: pa.Table, sent: "Sent[AclIntervals]", settings: Settings) -> "pa.Array[Any]":
    """Return the decision code of each row of REQUEST_COLUMNS, and of the time where rows have their own."""
    columns = table.columns
    times = _times(columns[len(REQUEST_COLUMNS)]) if len(columns) > len(REQUEST_COLUMNS) else None
    return pa.array(_authorizer(sent, settings).decide(columns[: len(REQUEST_COLUMNS)], times))


@lru_cache(_AUTHORIZERS)
def _authorizer(sent: "Sent[AclIntervals]", settings: Settings) -> BulkAuthorizer:
    """Return the authorizer of a worker process, kept from task to task: it remembers what it has decided.

    Spark reuses worker processes, and the broadcast is the same object in all tasks of one process.
    """
    return BulkAuthorizer.of(sent.value, settings)


def _times(column: "pa.ChunkedArray[Any]") -> Int64s:
    return np.asarray(column.fill_null(pa.scalar(NO_TIME))).astype(np.int64, copy=False)


def with_texts(decided: DataFrame, rules: Rules) -> DataFrame:
    """Return a frame that has decision codes with the columns decision, rule and rule_id appended.

    A broadcast join: the texts of a million ACLs reach each executor once, and never pass through Python.
    """
    texts = rules.texts.numbered().rename_columns([_CODE, *map("_{}".format, TEXT_COLUMNS)])
    named = decided.sparkSession.createDataFrame(texts)
    joined = decided.join(F.broadcast(named), F.col(DECISION_CODE) == named[_CODE], "left")
    return joined.select(*(decided[name] for name in decided.columns), *(named[f"_{n}"].alias(n) for n in TEXT_COLUMNS))


def with_decision(frame: DataFrame, rules: Rules, code: str, name: str) -> DataFrame:
    """Return the frame with a column `name` of ALLOWED, DENIED or ERROR for the decision codes in the column `code`."""
    decisions = rules.texts.numbered().select(["decision_code", "decision"]).rename_columns([_CODE, name])
    named = frame.sparkSession.createDataFrame(decisions)
    return frame.join(F.broadcast(named), F.col(code) == F.col(_CODE), "left").drop(_CODE)


# Simulation: the accesses of a log whose decisions other ACLs would change.


_SIDES = ("before", "after")
_FLIPS: Final = pa.schema(
    [(name, pa.string()) for name in REQUEST_COLUMNS]
    + [(name, pa.int64()) for name in ("count", "first", "last")]
    + [(f"decision_code_{side}", pa.int32()) for side in _SIDES]
    + [("reason", pa.string())]
)
"""What a task reports: accesses that change, with their times in us; or, with a reason, those of a principal that are
undecided."""
_EARLIEST, _LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_CODES: Final = tuple(f"decision_code_{side}" for side in _SIDES)


def simulated(
    accesses: DataFrame | AccessRows,
    before: tuple[Rules, Settings],
    after: tuple[Rules, Settings],
    *,
    own_time: bool = False,
) -> DataFrame:
    """Return what the tasks report (_FLIPS): the input of `flips_of` and `undecided_of`, by one pass over the accesses.

    A task counts distinct accesses, and then decides each of these once on each side; only what changes leaves it. With
    `own_time` it decides rows, as each has a time of its own.
    """
    spark, parts = accesses.sparkSession if isinstance(accesses, DataFrame) else accesses.frame.sparkSession, None
    sides = [_Side.of(spark, *side) for side in (before, after)]
    if isinstance(accesses, AccessRows) and accesses.parts is not None:
        parts, rows = accesses.parts, accesses.frame
    else:
        frame = accesses.frame if isinstance(accesses, AccessRows) else accesses
        time = F.col("timestamp") if "timestamp" in frame.columns else F.lit(None).cast("timestamp")
        rows = frame.select(*REQUEST_COLUMNS, F.unix_micros(time).alias("time"))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide one partition on both sides, on a worker."""
        some = batches if parts is None else map(_with_micros, rows_of_parts(parts, batches))
        tables = regrouped(some, DECIDED_TOGETHER)
        if own_time:
            for table in tables:
                yield from _changes_in(table, sides)
        else:
            yield from _changes_of_distinct(tables, sides)

    return rows.mapInArrow(run, from_arrow_schema(_FLIPS))


def _with_micros(batch: pa.RecordBatch) -> pa.RecordBatch:
    time = batch.column("timestamp").cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    return pa.record_batch([*(batch.column(name) for name in REQUEST_COLUMNS), time], names=[*REQUEST_COLUMNS, "time"])


@frozen(eq=False, kw_only=True)
class _Side:
    """What decides on one side."""

    rules: "Sent[AclIntervals]"
    decisions: "Sent[NDArray[np.int8]]"
    """The number of the decision of each code, from min(DecisionCode) on: codes of two sets of ACLs are unrelated."""
    settings: Settings

    @classmethod
    def of(cls, spark: SparkSession, rules: Rules, settings: Settings) -> "_Side":
        texts: Any = rules.texts.table.column("decision").cast(pa.string()).to_numpy()
        numbers = np.select([texts == name for name in ("ALLOWED", "DENIED")], [0, 1], 2).astype(np.int8)
        return cls(rules=broadcast(spark, rules.intervals), decisions=broadcast(spark, numbers), settings=settings)


_MOST_DISTINCT: Final = 1 << 20
"""Distinct accesses that a worker remembers, with their decisions on both sides; about 250 bytes each."""


def _changes_of_distinct(tables: Iterator[pa.Table], sides: Sequence[_Side]) -> Iterator[pa.RecordBatch]:
    """Yield what changes in some rows, counted, and what cannot be decided."""
    known = _known(*((side.rules, side.settings) for side in sides))
    counts = _Counts(known.numbers)
    for table in tables:
        counts.add(table)
        if len(known.numbers) > _MOST_DISTINCT:
            yield from _changes_among(counts, known, sides)
            known.forget()
            counts = _Counts(known.numbers)
    yield from _changes_among(counts, known, sides)


@define(eq=False)
class _Known:
    """The distinct accesses that a worker has seen, as they are written, and their decisions on both sides."""

    numbers: AccessNumbers = field(factory=AccessNumbers, init=False)
    _codes: list["NDArray[np.int32]"] = field(factory=lambda: [np.zeros(0, np.int32) for _ in _SIDES], init=False)

    def forget(self) -> None:
        """Forget all accesses."""
        self.numbers = AccessNumbers()
        self._codes = [np.zeros(0, np.int32) for _ in _SIDES]

    def codes(self, sides: Sequence[_Side]) -> Sequence["NDArray[np.int32]"]:
        """Return the decision codes of all accesses on each side; those that are new are decided."""
        decided = len(self._codes[0])
        if len(self.numbers) > decided:
            columns = self.numbers.columns(slice(decided, None))
            self._codes = [
                np.concatenate((codes, _authorizer(side.rules, side.settings).decide_once(columns)))
                for codes, side in zip(self._codes, sides, strict=True)
            ]
        return self._codes


@lru_cache(1)
def _known(*_sides: tuple["Sent[AclIntervals]", Settings]) -> _Known:
    """Return what a worker process knows of the accesses of one job, kept from task to task as `_authorizer`."""
    return _Known()


@define(eq=False)
class _Counts:
    """Distinct accesses, the number of their rows, and their first and last times."""

    numbers: AccessNumbers
    _rows: Int64s = field(factory=lambda: np.zeros(0, np.int64), init=False)
    _first: Int64s = field(factory=lambda: np.zeros(0, np.int64), init=False)
    _last: Int64s = field(factory=lambda: np.zeros(0, np.int64), init=False)

    def add(self, table: pa.Table) -> None:
        """Count rows of REQUEST_COLUMNS and `time`."""
        access_of, _ = self.numbers.number(table.columns[: len(REQUEST_COLUMNS)])
        new = len(self.numbers) - len(self._rows)
        self._rows = np.concatenate((self._rows, np.zeros(new, np.int64)))
        self._first = np.concatenate((self._first, np.full(new, _LATEST)))
        self._last = np.concatenate((self._last, np.full(new, _EARLIEST)))
        self._rows += np.bincount(access_of, minlength=len(self._rows))
        column: Any = table.column("time").combine_chunks()
        timed = np.asarray(column.is_valid())
        times = np.asarray(column.drop_null()).astype(np.int64, copy=False)
        np.minimum.at(self._first, access_of[timed], times)
        np.maximum.at(self._last, access_of[timed], times)

    def counted(self) -> Int64s:
        """Return the accesses with a row."""
        return np.flatnonzero(self._rows)

    def table(self, accesses: Int64s) -> pa.Table:
        """Return a row for each of these, with `count`, and `first` and `last`, which are null without a time."""
        first, last = self._first[accesses], self._last[accesses]
        timeless = first > last
        columns: list[Any] = [*self.numbers.columns(accesses), pa.array(self._rows[accesses])]
        columns += [pa.array(times, mask=timeless) for times in (first, last)]
        return pa.table(columns, names=[*REQUEST_COLUMNS, "count", "first", "last"])


def _changes_among(counts: _Counts, known: _Known, sides: Sequence[_Side]) -> Iterator[pa.RecordBatch]:
    counted = counts.counted()
    codes = [each[counted] for each in known.codes(sides)]
    flipped, in_doubt, unknown = _sorted_out(codes, sides)
    if len(flipped):
        rows = counts.table(counted[flipped])
        for name, each in zip(_CODES, codes, strict=True):
            rows = rows.append_column(name, pa.array(each[flipped], pa.int32()))
        yield from _reported(rows)
    if len(in_doubt):
        rows = counts.table(counted[in_doubt])
        errors = errors_of(rows.columns[: len(REQUEST_COLUMNS)])
        errors[unknown[in_doubt]] = DecisionCode.UNKNOWN_KAFKA
        reasons = [None if code == UNRESOLVED else DecisionCode(code).name for code in errors.tolist()]
        named = rows.select(["principal", "count", "first", "last"]).append_column(
            "reason", pa.array(reasons, pa.string())
        )
        yield from _reported(named.filter(pc.is_valid(named.column("reason"))))


def _sorted_out(
    codes: Sequence["NDArray[np.int32]"], sides: Sequence[_Side]
) -> tuple[Int64s, Int64s, "NDArray[np.bool_]"]:
    """Return the rows whose decision changes, those that are an error on a side, and where the Kafka is unknown."""
    decisions = [side.decisions.value[each - min(DecisionCode)] for side, each in zip(sides, codes, strict=True)]
    unknown = np.logical_or.reduce([each == DecisionCode.UNKNOWN_KAFKA for each in codes])
    # by decision rather than by code: an access that another ACL decides the same way is no change
    flipped = np.flatnonzero((decisions[0] != decisions[1]) & ~unknown)
    return flipped, np.flatnonzero(np.logical_or.reduce([each < DecisionCode.SUPER_USER for each in codes])), unknown


def _reported(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield rows with the columns of _FLIPS, null where there is no such column."""
    columns = [
        rows.column(field.name).cast(field.type) if field.name in rows.schema.names else pa.nulls(len(rows), field.type)
        for field in _FLIPS
    ]
    yield from pa.table(columns, schema=_FLIPS).combine_chunks().to_batches()


def _changes_in(table: pa.Table, sides: Sequence[_Side]) -> Iterator[pa.RecordBatch]:
    """Do the same for rows at their own time."""
    width = len(REQUEST_COLUMNS)
    columns: list[Any] = [column.combine_chunks() for column in table.columns[:width]]
    columns = [each if pa.types.is_dictionary(each.type) else each.dictionary_encode() for each in columns]
    decided = pa.table(columns + table.columns[width:], names=table.column_names)
    codes = [np.asarray(decide(decided, side.rules, side.settings)) for side in sides]
    flipped, in_doubt, unknown = _sorted_out(codes, sides)
    if len(flipped):
        yield from _counted_flips(table.take(flipped), [each[flipped] for each in codes])
    if len(in_doubt):
        yield _undecided_among(table.take(in_doubt), unknown[in_doubt])


def _counted_flips(rows: pa.Table, codes: Sequence["NDArray[np.int32]"]) -> Iterator[pa.RecordBatch]:
    rows = pa.table([each.cast(pa.string()) for each in rows.columns[:5]] + rows.columns[5:], names=rows.column_names)
    for name, each in zip(_CODES, codes, strict=True):
        rows = rows.append_column(name, pa.array(each, pa.int32()))
    counted = rows.group_by([*REQUEST_COLUMNS, *_CODES]).aggregate(
        [([], "count_all"), ("time", "min"), ("time", "max")]
    )
    yield from _reported(counted.rename_columns({"count_all": "count", "time_min": "first", "time_max": "last"}))


def _undecided_among(rows: pa.Table, unknown: "NDArray[np.bool_]") -> pa.RecordBatch:
    times: Any = rows.column("time").cast(pa.timestamp("us", tz="UTC"))
    nothing = pa.nulls(len(rows), pa.string())
    named = rows.append_column("timestamp", times).append_column("loggedDecision", nothing)
    unread = undecided_rows(named.combine_chunks(), as_written=True)
    spans = [(key.principal, span.accesses, span.first, span.last, key.reason) for key, span in unread.spans.items()]
    who = Counter(rows.column("principal").filter(pa.array(unknown)).to_pylist())
    spans += [(name, count, None, None, DecisionCode.UNKNOWN_KAFKA.name) for name, count in who.items()]
    names = ("principal", "count", "first", "last", "reason")
    return pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in spans], schema=_FLIPS)


def flips_of(reported: DataFrame, before: Rules, after: Rules) -> DataFrame:
    """Return what `simulate` returns, of what the tasks have reported."""
    counted = reported.where(F.col("reason").isNull()).groupBy(*REQUEST_COLUMNS, *_CODES)
    flips = counted.agg(
        F.sum("count").alias("count"),
        F.timestamp_micros(F.min("first")).alias("first_at"),
        F.timestamp_micros(F.max("last")).alias("last_at"),
    ).select(*REQUEST_COLUMNS, "count", "first_at", "last_at", *_CODES)
    for side, rules in zip(_SIDES, (before, after), strict=True):
        named = with_texts(flips.withColumnRenamed(f"decision_code_{side}", DECISION_CODE), rules).drop(DECISION_CODE)
        flips = named.withColumnsRenamed({name: f"{name}_{side}" for name in ("decision", "rule", "rule_id")})
    return flips.select(_change().alias("change"), *flips.columns)


def undecided_of(reported: DataFrame) -> UnreadAccesses:
    """Return the accesses that cannot be decided as they are written, or for which the deciding Kafka is unknown."""
    counted = reported.where(F.col("reason").isNotNull()).groupBy("principal", "reason")
    totals = counted.agg(F.sum("count").alias("accesses"), F.min("first").alias("first"), F.max("last").alias("last"))
    counter = UnreadCounter()
    for row in totals.collect():
        counter.add(row.principal, None, row.reason, UnreadSpan(row.accesses, row["first"], row["last"]))
    return counter.total


def _change() -> Column:
    before, after = F.col("decision_before"), F.col("decision_after")
    return (
        F.when(after == "ERROR", Change.BROKEN.value)
        .when(before == "ERROR", Change.MENDED.value)
        .when(after == "ALLOWED", Change.GAINED.value)
        .otherwise(Change.LOST.value)
    )


# Decisions as functions of SQL: `kafka_authorized(...)` and `kafka_decision(...)`, registered with a session.


AUTHORIZED: Final = "kafka_authorized"
DECISION: Final = "kafka_decision"
_ARGUMENTS: Final = "principal, host, operation, resource_type, resource_name"
_STRUCT: Final = ", ".join(f"{name}: string" for name in TEXT_COLUMNS)
_NAMES_OF_ENUMS: Final = {REQUEST_COLUMNS.index("operation"), REQUEST_COLUMNS.index("resourceType")}

Malformed = Literal["null", "fail"]
_Columns: TypeAlias = "tuple[pa.Array[Any], ...]"


class _State(Protocol):
    @property
    def acls(self) -> AclsImage: ...


class HasState(Protocol):
    """An image as `aclog.open_log(...).image()` returns it."""

    @property
    def state(self) -> _State:
        """The full image."""
        ...


def register(
    spark: SparkSession,
    state: HasState | Rules,
    *,
    super_users: str | Iterable[str] = "",
    allow_everyone_if_no_acl_found: bool = False,
    semantics: Literal["kafka", "documented"] = "kafka",
    cidr: bool = False,
    malformed: Malformed = "null",
) -> None:
    """Register `kafka_authorized` and `kafka_decision` with a session, for its SQL and DataFrames, streams included.

    `kafka_authorized(principal, host, operation, resource_type, resource_name)` is a BOOLEAN, `kafka_decision` of the
    same arguments a STRUCT of decision (ALLOWED, DENIED or ERROR), rule (as in Kafka's audit log; for ERROR the reason)
    and rule_id. Operation and resource type are Kafka's names in any case of letters. A null argument gives null.

    `state` is what decides: an image (`aclog.open_log(...).image(as_of=...)`), or the Rules of a whole history. With a
    history both functions need a sixth argument, the TIMESTAMP as of which to decide. Calling this again replaces the
    functions; existing frames continue with the former ones.

    The other arguments are those of `aclog.Image.authorizer`, and `malformed`: what becomes of an argument that no
    request can have (an unknown operation, a host that is no address, a time before the log's first record).
    `kafka_authorized` of it is null, which no filter lets pass, negated or not; with `fail` the query fails with the
    reason. It is never true, nor false.

    Raises:
        ConfigError: a super user without a colon, unknown semantics, or a session of Spark Connect.

    """
    if semantics not in {"kafka", "documented"} or malformed not in {"null", "fail"}:
        raise ConfigError(
            f"semantics {semantics!r}, malformed {malformed!r}: expected 'kafka' or 'documented', 'null' or 'fail'"
        )
    users = super_users if isinstance(super_users, str) else ";".join(super_users)
    settings = Settings(
        super_users=parse_super_users(users),
        allow_everyone=allow_everyone_if_no_acl_found,
        documented=semantics == "documented",
        cidr=cidr,
    )
    rules = state if isinstance(state, Rules) else Rules.of_image(state.state.acls)
    decisions = _Decisions(
        rules=broadcast(spark, rules.intervals),
        allowing=broadcast(spark, rules.texts.allowing()),
        texts=broadcast(spark, rules.texts),
        settings=settings,
        fails=malformed == "fail",
        timed=rules.intervals.is_history,
    )
    for name, function, kind in (
        (AUTHORIZED, decisions.authorized, "boolean"),
        (DECISION, decisions.texts_of, f"struct<{_STRUCT}>"),
    ):
        spark.udf.register(name, arrow_udf(function, kind))


@frozen(eq=False, kw_only=True)
class _Decisions:
    """The ACLs and settings of workers; each executor gets the broadcasts once, and a worker caches its decisions."""

    rules: "Sent[AclIntervals]"
    allowing: "Sent[NDArray[np.bool_]]"
    """DecisionTexts.allowing."""
    texts: "Sent[DecisionTexts]"
    settings: Settings
    fails: bool
    timed: bool
    """Whether the ACLs are those of a history, so that a call names its time."""

    def authorized(self, batches: Iterator[_Columns]) -> Iterator["pa.Array[Any]"]:
        """Decide batches of arguments: true, false, or null where there is no decision."""
        for codes in self._codes(batches):
            numbers = np.asarray(codes)
            allowed = self.allowing.value[numbers - min(DecisionCode)]
            yield pa.array(allowed, mask=numbers < DecisionCode.SUPER_USER)

    def texts_of(self, batches: Iterator[_Columns]) -> Iterator["pa.Array[Any]"]:
        """Decide batches of arguments, in words; null where an argument is."""
        for codes in self._codes(batches):
            columns = self.texts.value.of_codes(codes)
            missing = pc.is_in(codes, pa.array([DecisionCode.MISSING, DecisionCode.NO_TIME], pa.int32()))
            yield pa.StructArray.from_arrays(columns, names=list(TEXT_COLUMNS), mask=missing)

    def _codes(self, batches: Iterator[_Columns]) -> Iterator["pa.Array[Any]"]:
        # an iterator UDF may regroup batches, as long as it returns as many rows in total, in the same order
        tables = (self._table(columns) for columns in batches)
        for table in regrouped(tables, DECIDED_TOGETHER):
            codes = decide(table, self.rules, self.settings)
            if self.fails:
                self._check(codes)
            yield codes

    def _table(self, columns: _Columns) -> pa.RecordBatch:
        if len(columns) != len(REQUEST_COLUMNS) + self.timed:
            raise ConfigError(
                f"{AUTHORIZED} and {DECISION}: {len(columns)} arguments: expected {_ARGUMENTS}"
                + (", timestamp (the ACLs are those of a history)" if self.timed else "")
            )
        if self.timed and not pa.types.is_timestamp(columns[-1].type):
            raise ConfigError(f"{AUTHORIZED} and {DECISION}: timestamp: expected a TIMESTAMP, not {columns[-1].type}")
        arrays = [self._argument(place, column) for place, column in enumerate(columns)]
        return pa.record_batch(arrays, names=list(map(str, range(len(arrays)))))

    def _argument(self, place: int, column: "pa.Array[Any]") -> "pa.Array[Any]":
        if place == len(REQUEST_COLUMNS):
            return column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        text = column.cast(pa.string())
        return pc.ascii_upper(text) if place in _NAMES_OF_ENUMS else text

    def _check(self, codes: "pa.Array[Any]") -> None:
        bad = np.asarray(codes)
        bad = bad[(bad < DecisionCode.SUPER_USER) & (bad != DecisionCode.MISSING) & (bad != DecisionCode.NO_TIME)]
        if len(bad):
            reason = self.texts.value.of_codes(pa.array(bad[:1]))[1][0].as_py()
            raise ConfigError(f"{AUTHORIZED}: {len(bad)} malformed in this batch, such as: {reason}")
