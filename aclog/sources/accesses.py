"""The accesses of a file (`--accesses`), and those that two policies decide differently."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from aclog.analysis.deciding import is_allowed
from aclog.analysis.flips import Flips
from aclog.analysis.policy import Policy
from aclog.analysis.regions.region import Request
from aclog.authorizer.acl import AclOperation, ResourceType
from aclog.authorizer.audit_line_reader import TIME_SIZE, read_line
from aclog.authorizer.hosts import host_address
from aclog.authorizer.rule_object import enum_field
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object, text_field
from aclog.sources.parquet import need_pyarrow
from aclog.sources.text_lines import display_name, numbered

COLUMNS = ("principal", "host", "operation", "resourceType", "resourceName")
"""Of an access, in JSON and in Parquet."""
EXPECTED = "expected lines as of authorize --requests, or of kafka-authorizer.log"
"""What lines of accesses are."""
_PARQUET = (".parquet", ".parq", ".pq")


@frozen(kw_only=True)
class Accesses:
    """Distinct accesses with how often each occurs, and how many lines or rows are none."""

    counts: Counter[Request]
    malformed: int

    def flipped(self, old: Policy, new: Policy) -> Flips:
        """Return those that two policies decide differently; one on which Kafka's authorizer throws is not allowed."""
        return Flips.of(
            {each: count for each, count in self.counts.items() if is_allowed(old, each) is not is_allowed(new, each)}
        )


def read_accesses(path: str) -> Accesses:
    """Read a Parquet file or a directory of them, such as `spark ingest` writes, or lines (`-` is stdin).

    A line is JSON as of `authorize --requests`, or one of Kafka's kafka-authorizer.log.

    Raises:
        ConfigError: a column is missing, a file is damaged, or nothing in it is an access; OSError: it cannot be read.

    """
    counts: Counter[Request] = Counter()
    malformed = 0
    for request, count in _from_parquet(path) if is_parquet(path) else _from_lines(path):
        if request is None:
            malformed += count
        else:
            counts[request] += count
    if malformed and not counts:
        raise ConfigError(f"{display_name(path)}: no line is an access: {EXPECTED}")
    return Accesses(counts=counts, malformed=malformed)


def is_parquet(path: str) -> bool:
    """Return whether a path is read as Parquet."""
    return Path(path).is_dir() or path.endswith(_PARQUET)


def _from_lines(path: str) -> Iterator[tuple[Request | None, int]]:
    for _, line in numbered(path):
        try:
            yield audited_access(line) if is_audit_line(line) else access_of_object(parse_object(line)), 1
        except ConfigError:
            yield None, 1


def is_audit_line(line: bytes) -> bool:
    """Return whether a line looks like one of kafka-authorizer.log: it begins with a time in brackets."""
    return line.startswith(b"[")


@lru_cache(1 << 14)
def _audited(text: str) -> Request | None:
    """Return the access in the rest of a line after its time: lines of a log often differ in their time only."""
    found = read_line(text)
    row = (found.principal, found.host, found.operation, found.resource_type, found.resource_name)
    return None if found.reason is not None else access_of_row(row)


def audited_access(line: bytes) -> Request | None:
    """Return the access that an audit line tells; None if it is about none."""
    try:
        return _audited(line.decode()[TIME_SIZE:])
    except UnicodeDecodeError:
        return None


def access_of_object(value: dict[str, object]) -> Request | None:
    """Return the access in a line as of `authorize --requests`; None if it asks for no name (byResourceType).

    Raises:
        ConfigError: the object is no access.

    """
    if value.get("kind") is not None:
        return None
    return _request(
        text_field(value, "principal"),
        text_field(value, "host"),
        enum_field(value, "operation", AclOperation),
        enum_field(value, "resourceType", ResourceType),
        text_field(value, "resourceName"),
    )


def _from_parquet(path: str) -> Iterator[tuple[Request | None, int]]:
    need_pyarrow(display_name(path))
    import pyarrow as pa  # here: for Parquet alone
    import pyarrow.dataset as ds

    inner = Path(path, "accesses")
    try:
        table = ds.dataset(inner if inner.is_dir() else path, format="parquet")
        for batch in table.to_batches(columns=list(COLUMNS)):
            # Equal rows are counted before an object is made of them: logs repeat themselves.
            distinct = pa.Table.from_batches([batch]).group_by(list(COLUMNS)).aggregate([([], "count_all")])
            columns = (distinct.column(name).to_pylist() for name in (*COLUMNS, "count_all"))
            yield from ((access_of_row(row), count) for *row, count in zip(*columns, strict=True))
    except (pa.ArrowInvalid, KeyError) as error:
        what = " ".join(str(error).split())[:200]
        raise ConfigError(f"{display_name(path)}: expected Parquet with {', '.join(COLUMNS)}: {what}") from error


def access_of_row(row: Sequence[object]) -> Request | None:
    """Return the access in a row of principal, host, operation, resource type and name; None if it is none."""
    principal, host, operation, kind, name = map(str, row)
    if None in row or operation not in AclOperation.__members__ or kind not in ResourceType.__members__:
        return None
    try:
        return _request(principal, host, AclOperation[operation], ResourceType[kind], name)
    except ConfigError:
        return None


_canonical = lru_cache(1 << 16)(host_address)


def _request(principal: str, host: str, operation: int, kind: int, name: str) -> Request:
    return Request(
        principal=principal, host=_canonical(host), operation=operation, resource_type=kind, resource_name=name
    )
