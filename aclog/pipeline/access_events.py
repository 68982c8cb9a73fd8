"""Decided accesses as events for other systems: OCSF (class 6003, API Activity) and CloudEvents 1.0, as JSON lines."""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from aclog.authorizer.access_reject import known_names
from aclog.authorizer.acl import AclOperation
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.access_table import TIMESTAMP
from aclog.pipeline.event_form import EventForm

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
    known = decided.where(F.col("decision") != "ERROR")
    columns: Mapping[EventForm, Callable[[DataFrame, str], dict[str, Column]]] = {
        EventForm.OCSF: _ocsf,
        EventForm.CLOUDEVENTS: _cloud_event,
    }
    return known.select(*(column.alias(name) for name, column in columns[form](known, source).items()))


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
    found = F.lit(other)
    for operation, given in pairs:
        if given is not None:
            found = F.when(F.col("operation") == operation, F.lit(given)).otherwise(found)
    return found


def _unmapped(decided: DataFrame) -> dict[str, Column]:
    kept = [F.col(name) for name in ("request", "loggedDecision") if name in decided.columns]
    return {"unmapped": F.struct(*kept)} if kept else {}


def _cloud_event(decided: DataFrame, source: str) -> dict[str, Column]:
    data = ("principal", "host", "operation", "resourceType", "resourceName", "decision", "rule")
    # date_format knows the session's zone alone, in which an hour of UTC may be missing (summer time)
    time = F.get_json_object(F.to_json(F.struct(TIMESTAMP), _UTC), f"$.{TIMESTAMP}")
    timed = {"time": time} if TIMESTAMP in decided.columns else {}
    return {
        "specversion": F.lit(SPEC_VERSION),
        "id": F.uuid(),
        "source": F.lit(source),
        "type": F.concat(F.lit("aclog.access."), F.lower("decision")),
        "subject": F.concat_ws("/", F.col("resourceType"), F.col("resourceName")),
        **timed,
        "datacontenttype": F.lit("application/json"),
        "data": F.struct(*data, F.col("rule_id").alias("ruleId")),
    }
