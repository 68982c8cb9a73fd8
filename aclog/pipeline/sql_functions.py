"""Decisions as functions of SQL: `kafka_authorized(...)` and `kafka_decision(...)`, registered with a session."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from numpy.typing import NDArray
from pyspark import Broadcast
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.config import parse_super_users
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.pipeline.authorize import DECIDED_TOGETHER, decide
from aclog.pipeline.broadcasts import broadcast
from aclog.usage.arrow.batches import regrouped
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.acl_intervals import AclIntervals
from aclog.usage.decisions.decision_codes import DecisionCode
from aclog.usage.decisions.decision_texts import TEXT_COLUMNS, DecisionTexts
from aclog.usage.decisions.rules import Rules

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
    functions; frames that exist already go on with the former ones.

    The other arguments are those of `aclog.Image.authorizer`, and `malformed`: what becomes of an argument that no
    request can have (an unknown operation, a host that is no address, a time before the log's first record).
    `kafka_authorized` of it is null, which no filter lets pass, negated or not; with `fail` the query fails and says
    why. It is never true, nor false.

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
        spark.udf.register(name, F.arrow_udf(_iterating(function), kind))  # type: ignore[attr-defined]


def _iterating(function: Any) -> Any:
    def run(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        """Run a method of `_Decisions` on a worker: Spark takes the kind of a function from its annotations."""
        yield from function(batches)

    return run


@frozen(eq=False, kw_only=True)
class _Decisions:
    """What workers decide by; each executor gets the broadcasts once, and a worker keeps what it has decided."""

    rules: "Broadcast[AclIntervals]"
    allowing: "Broadcast[NDArray[np.bool_]]"
    """DecisionTexts.allowing."""
    texts: "Broadcast[DecisionTexts]"
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
