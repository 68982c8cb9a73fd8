"""The accesses of a file, as diff and lint take them."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC
from enum import Enum, IntEnum
from errno import ENOENT
from functools import lru_cache
from glob import has_magic
from importlib.util import find_spec
from itertools import islice
from os import strerror
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aclog.analysis.comparison import Flips
from aclog.analysis.policy import Policy, is_allowed
from aclog.analysis.regions import Request
from aclog.authorizer import audit
from aclog.authorizer.acl import host_address, logged_address
from aclog.authorizer.codes import WILDCARD_PRINCIPAL, AclOperation, ResourceType
from aclog.installation import needs_extra
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object, text_field
from aclog.metalog.values import frozen
from aclog.sources.acl_lines import STDIN, display_name, numbered
from aclog.usage.accesses.addresses import is_object_path, plain_name
from aclog.usage.accesses.containers import read_objects, texts_in
from aclog.usage.accesses.globs import is_hidden
from aclog.usage.accesses.layouts import RARE, Profile, cleaned, detect, read_text_line
from aclog.usage.accesses.lines import (
    BRACED_TEXT,
    PARQUET_ENDINGS,
    SIGNS_OF_OBJECTS,
    TABLES,
    StreamCopy,
    object_of,
    once_each,
    packing_of,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from aclog.usage.accesses.access_batch import AccessBatch


# Parquet, which takes pyarrow: an extra, since it is larger than all else that aclog needs.


def has_pyarrow() -> bool:
    """Return whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


def need_pyarrow(path: str) -> None:
    """Raise ConfigError unless pyarrow is installed; `path` is the Parquet file to read or write."""
    if not has_pyarrow():
        raise ConfigError(f"{path}: {needs_extra('Parquet', 'pyarrow', 'parquet')}")


# The accesses of a log (`--accesses`), and those that two policies decide differently.
#
# They are read as aclog.usage reads them, in all its forms. Without pyarrow, which the base package lacks, only lines
# of JSON and of kafka-authorizer.log are, one by one: both readers accept the same accesses, in all spellings.


COLUMNS = ("principal", "host", "operation", "resourceType", "resourceName")
"""The fields of an access, in JSON and in Parquet."""
EXPECTED = "expected lines as of authorize --requests, or of kafka-authorizer.log"
"""The expected content of an access log."""
EVENT_KEYS: Final = frozenset({"specversion", "class_uid", "audit"})
"""Keys of events, which take pyarrow: each may be about an access."""


_ONCE: Final = once_each((*COLUMNS, "timestamp", "broker", "loggedDecision"))


class Unread(Enum):
    """The kind of a line or row that is not an access."""

    ACCESS = "ACCESS"
    """Contains an access that could not be read."""
    OTHER = "OTHER"


@frozen(kw_only=True)
class Accesses:
    """Distinct accesses with how often each occurs, and how many lines or rows are not accesses."""

    counts: Counter[Request]
    malformed: int
    unread: int = 0
    """Malformed lines or rows that contain an access nevertheless."""

    def flipped(self, old: Policy, new: Policy) -> Flips:
        """Return those that two policies decide differently; one on which Kafka's authorizer throws is not allowed."""
        changed = {
            each: count for each, count in self.counts.items() if is_allowed(old, each) is not is_allowed(new, each)
        }
        return Flips.of(changed, self.unread)


def read_accesses(path: str) -> Accesses:
    """Read an access log as aclog.usage does: a file, a directory with all below it, or a glob; `-` is stdin.

    Raises:
        ConfigError: a column is missing, a file is damaged or of no known form, it takes pyarrow, which is not
            installed, or nothing in it is an access.
        OSError: it cannot be read.

    """
    counts: Counter[Request] = Counter()
    malformed = unread = 0
    with _rereadable(path) as place:
        for access, count in _from_log(place) if has_pyarrow() else _from_lines(place):
            if isinstance(access, Request):
                counts[access] += count
            else:
                malformed += count
                unread += count if access is Unread.ACCESS else 0
    if malformed and not counts:
        raise ConfigError(f"{display_name(path)}: no line is an access: {EXPECTED}")
    return Accesses(counts=counts, malformed=malformed, unread=unread)


def is_access_log(path: str) -> bool:
    """Return whether one of the first lines of a file of text is an access; False if that cannot be read.

    An object with `permissionType` is an ACL, although it has all fields of an access.
    """
    with suppress(OSError, ValueError, ConfigError):
        if is_lines(path) and not _is_packed(path):
            profile = profile_of_lines(path)
            lines = (line for _, line in islice(_lines(path), _SAMPLE) if is_audit_line(line) or not _is_acl(line))
            return any(isinstance(access_of_line(line, profile=profile), Request) for line in lines)
    return False


def _is_acl(line: bytes) -> bool:
    value = object_of(line)
    return not isinstance(value, audit.Reason) and "permissionType" in value


@contextmanager
def _rereadable(path: str) -> Iterator[str]:
    """Yield a path that can be read several times: of stdin or a pipe, its copy; errors name the stream."""
    if not is_stream(path):
        yield plain_name(path)
        return
    opened = nullcontext(sys.stdin.buffer) if path == STDIN else Path(path).open("rb")  # noqa: SIM115 - closed below
    with opened as stream, StreamCopy.of(stream, display_name(path)) as copy:
        try:
            yield copy.place
        except ConfigError as error:
            raise ConfigError(str(error).replace(copy.place, display_name(path))) from error


def is_parquet(path: str) -> bool:
    """Return whether a path is read as Parquet."""
    return Path(path).is_dir() or path.endswith(PARQUET_ENDINGS)


def is_lines(path: str) -> bool:
    """Return whether a path is a file of text: not of Parquet, Avro or ORC."""
    if path.endswith(PARQUET_ENDINGS) or not Path(path).is_file():
        return False
    with Path(path).open("rb") as opened:
        return not opened.read(max(map(len, TABLES))).startswith(TABLES)


def is_stream(path: str) -> bool:
    """Return whether a path is stdin or a pipe, which can be read once only."""
    return path == STDIN or (Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir())


def need_file(path: str, why: str) -> None:
    """Raise ConfigError if a path is a stream; `why` names the second reader."""
    if is_stream(path):
        raise ConfigError(f"{display_name(path)}: {why}: expected a file: write the accesses to one first")


def _from_log(path: str) -> Iterator[tuple[Request | Unread, int]]:
    """Yield the accesses, equal ones of a block together, and counts of other lines."""
    for batch in _file_batches(path):
        for row, count in distinct_rows(batch.rows):
            yield access_of_row(row) or Unread.ACCESS, count
        others = batch.rejects.total() - batch.unread.total
        yield Unread.ACCESS, batch.unread.total
        yield Unread.OTHER, max(others, 0)


def _file_batches(path: str) -> "Iterator[AccessBatch]":
    from aclog.usage.accesses.access_log import find_accesses, read_part  # here: pyarrow

    if not (Path(path).exists() or has_magic(path) or is_object_path(path)):
        raise FileNotFoundError(ENOENT, strerror(ENOENT), path)
    log = find_accesses([path], UTC)  # its copies of tables end with it
    for part in log.parts:
        yield from read_part(part)


def distinct_rows(rows: "RecordBatch") -> Iterator[tuple[tuple[object, ...], int]]:
    """Yield each distinct row of COLUMNS with its count: logs repeat themselves."""
    import pyarrow as pa  # here: what reads without it needs no rows

    table = pa.Table.from_batches([rows.select(list(COLUMNS))])
    counted = table.group_by(list(COLUMNS)).aggregate([([], "count_all")])
    columns = (counted.column(name).to_pylist() for name in (*COLUMNS, "count_all"))
    for *row, count in zip(*columns, strict=True):
        yield tuple(row), count


def _from_lines(path: str) -> Iterator[tuple[Request | Unread, int]]:
    _need_lines(path)
    among_objects = False
    profile = profile_of_lines(path)
    for _, line in _lines(path):
        among_objects = among_objects or not is_audit_line(line)
        yield access_of_line(line, among_objects=among_objects, profile=profile), 1


_TORN: Final = b"{"
"""In place of a line that is too long to be read: the beginning of an object, which counts as an unread access."""


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    return numbered(path, long_line=_TORN)


def _need_lines(path: str) -> None:
    """Raise ConfigError if pyarrow is required, but not installed: for what is not text, plain or gzipped."""
    if not is_lines(path) or _is_packed(path):
        need_pyarrow(display_name(path))


def _is_packed(path: str) -> bool:
    """Return whether a file is packed otherwise than by gzip."""
    return packing_of(path) not in {None, "gzip"}


def profile_of_lines(path: str) -> Profile:
    """Return the layouts of the first lines with a message in a file."""
    lines = (line.decode(errors="replace") for _, line in _lines(path) if audit.MESSAGE.encode() in line)
    return Profile(layouts=tuple(detect(map(cleaned, islice(lines, _SAMPLE)), rare=RARE)))


_SAMPLE: Final = 200
"""Lines from which the layouts of a file are detected, without pyarrow."""


def access_of_line(line: bytes, *, among_objects: bool = False, profile: Profile | None = None) -> Request | Unread:
    """Return the access in a line, or whether the line contains one.

    `among_objects`: there was an object of JSON before it, so that it may be the rest of a torn one. `profile`: the
    layouts of its file.
    """
    if is_audit_line(line):
        is_rest = among_objects and any(sign in line for sign in SIGNS_OF_OBJECTS)
        access = audited_access(line, None if is_rest else profile or Profile())
        return access or (Unread.ACCESS if is_rest else _unread(line))
    value = object_of(line, _ONCE)
    if isinstance(value, audit.Reason):
        return Unread.ACCESS
    try:
        return access_of_object(value) or Unread.ACCESS
    except ConfigError:
        wrapped = _wrapped_access(value, profile or Profile())
        if wrapped is not None:
            return wrapped
        tells = any(key in value for key in COLUMNS) or audit.access_trace(line.decode(errors="replace")) is not None
        return Unread.ACCESS if tells or not EVENT_KEYS.isdisjoint(value) else Unread.OTHER


def _wrapped_access(value: dict[str, object], profile: Profile) -> Request | None:
    """Return the access of the only message of Kafka in an object that is not an access or an event itself."""
    forms = ({"result", "basis"}, {*COLUMNS})
    is_event = not EVENT_KEYS.isdisjoint(value) or any(keys <= value.keys() for keys in forms)
    accesses = audit.Reason.OTHER_MESSAGE if is_event else read_objects(value, UTC, profile)
    if isinstance(accesses, audit.Reason) or len(accesses) != 1:
        return None
    return access_of_row(accesses[0][1][: len(COLUMNS)])


def is_audit_line(line: bytes) -> bool:
    """Return whether a line is to be read as one of a text log: it is no JSON object."""
    return not line.lstrip().startswith(b"{") or BRACED_TEXT.match(line) is not None


@lru_cache(1 << 14)
def _audited(text: str) -> Request | None:
    """Return the access in the rest of a line after its time: lines of a log often differ in their time only."""
    entry = audit.read_line(text)
    return None if entry.reason is not None else access_of_row(entry[: len(COLUMNS)])


def audited_access(line: bytes, profile: Profile | None = None) -> Request | None:
    """Return the access that a line of a text log records; None for a line without one.

    Without a profile, the line must have Apache's layout.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    access = _audited(text[audit.TIME_SIZE :]) if audit.is_headed(text) else None
    if access is not None or profile is None or audit.MESSAGE not in text:
        return access
    _, read = read_text_line(text, UTC, profile)
    return None if read.reason is not None else access_of_row(read[: len(COLUMNS)])


def _unread(line: bytes) -> Unread:
    return Unread.OTHER if audit.access_trace(line.decode(errors="replace")) is None else Unread.ACCESS


def access_of_object(value: dict[str, object]) -> Request | None:
    """Return the access in a line as of `authorize --requests`; None if it has no name (byResourceType).

    Raises:
        ConfigError: the object is no access.

    """
    if value.get("kind") is not None:
        return None
    return _request(
        text_field(value, "principal"),
        text_field(value, "host"),
        _code(AclOperation, audit.operation_name, text_field(value, "operation")),
        _code(ResourceType, audit.resource_type_name, text_field(value, "resourceType")),
        text_field(value, "resourceName"),
    )


def _code(kind: type[IntEnum], name_of: Callable[[str], str | None], text: str) -> int:
    """Return the code of a name in any form that Kafka writes. Raises ConfigError: an unknown name."""
    code = kind.__members__.get(name_of(text) or text)
    if code is None:
        raise ConfigError(f"{text[:40]!r} is not one of {', '.join(kind.__members__)}")
    return int(code)


def access_of_row(row: Sequence[object]) -> Request | None:
    """Return the access in a row of principal, host, operation, resource type and name; None if it is not one."""
    principal, host, operation, kind, name = map(str, row)
    if None in row:
        return None
    try:
        codes = (
            _code(AclOperation, audit.operation_name, operation),
            _code(ResourceType, audit.resource_type_name, kind),
        )
        return _request(principal, host, *codes, name)
    except ConfigError:
        return None


@lru_cache(1 << 16)
def _canonical(host: str) -> str:
    return host_address(logged_address(host))


def _request(principal: str, host: str, operation: int, kind: int, name: str) -> Request:
    if ":" not in principal or principal == WILDCARD_PRINCIPAL:
        raise ConfigError(f"{principal[:40]!r} is no client: expected TYPE:NAME, such as User:alice")
    return Request(
        principal=principal, host=_canonical(host), operation=operation, resource_type=kind, resource_name=name
    )


# Accesses as lint takes them: no row needs a time or a decision, and one that only names a principal is seen.


_PRINCIPAL = COLUMNS[0]
_ACCESS_KEYS = frozenset({*COLUMNS, *EVENT_KEYS})
"""An object with any of them contains an access."""


@frozen(kw_only=True)
class SeenAccesses:
    """Distinct principals that made requests, and those of the requests that are complete."""

    principals: frozenset[str] = frozenset()
    requests: frozenset[Request] = frozenset()
    malformed: int = 0
    """Lines or rows without a principal."""
    unread: int = 0
    """Malformed lines or rows that contain an access: its principal is unknown."""


def read_seen_accesses(*paths: str) -> SeenAccesses:
    """Read logs as aclog.sources.accesses does: of each row the principal, and the request if it is whole.

    In tables, in lines of JSON and of kafka-authorizer.log, a row may be a principal alone.

    Raises:
        ConfigError: there is no column of principals, a file is damaged, or no row has a principal.
        OSError: it cannot be read.

    """
    parts = []
    for path in paths:
        with _rereadable(path) as place:
            parts.append(_read_seen(place))
    return SeenAccesses(
        principals=frozenset[str]().union(*(each.principals for each in parts)),
        requests=frozenset[Request]().union(*(each.requests for each in parts)),
        malformed=sum(each.malformed for each in parts),
        unread=sum(each.unread for each in parts),
    )


def _read_seen(path: str) -> SeenAccesses:
    is_table = not is_object_path(path) and _is_table(path)
    if not is_table and (not is_lines(path) or _is_packed(path) or _has_events(path)):
        accesses = read_accesses(path)
        return SeenAccesses(
            principals=frozenset(request.principal for request in accesses.counts),
            requests=frozenset(accesses.counts),
            malformed=accesses.malformed,
            unread=accesses.unread,
        )
    principals, requests, malformed, unread = set[str](), set[Request](), 0, 0
    for principal, request in _seen_in_parquet(path) if is_table else _seen_in_lines(path):
        if not isinstance(principal, str):
            malformed += 1
            unread += principal is Unread.ACCESS
            continue
        principals.add(principal)
        if request is not None:
            requests.add(request)
    if malformed and not principals:
        raise ConfigError(f"{display_name(path)}: no line has a principal: {EXPECTED}")
    return SeenAccesses(
        principals=frozenset(principals), requests=frozenset(requests), malformed=malformed, unread=unread
    )


def _is_table(path: str) -> bool:
    """Return whether a path is of Parquet: of a directory all files, or those of a table of Delta or Iceberg."""
    if not Path(path).is_dir():
        return is_parquet(path)
    place = _place_of_table(path)
    files = [each for each in place.rglob("*") if each.is_file() and not is_hidden(each.relative_to(place))]
    are_tables = [each.name.endswith(PARQUET_ENDINGS) for each in files]
    if all(are_tables) or not any(are_tables) or not has_pyarrow():
        return any(are_tables)
    from aclog.usage.accesses.table_formats import tables_among  # here: pyarrow

    return bool(tables_among([str(place)]))


def _place_of_table(path: str) -> Path:
    """Return where the table of a directory is: of one that `aclog spark ingest` wrote, that of the accesses."""
    inner = Path(path, "accesses")
    return inner if inner.is_dir() else Path(path)


def _has_events(path: str) -> bool:
    """Return whether the first object in a file is an event, of a known kind or not."""
    for _, line in _lines(path):
        if not is_audit_line(line):
            value = object_of(line)
            if isinstance(value, audit.Reason):
                return False
            return not EVENT_KEYS.isdisjoint(value) or (has_pyarrow() and ("logger" in value or bool(texts_in(value))))
    return False


def _seen_in_lines(path: str) -> Iterator[tuple[str | Unread, Request | None]]:
    _need_lines(path)
    profile = profile_of_lines(path)
    for _, line in _lines(path):
        if is_audit_line(line):
            request = audited_access(line, profile)
            yield _who_of(line) if request is None else request.principal, request
            continue
        try:
            value = parse_object(line)
            principal = text_field(value, _PRINCIPAL)
        except ConfigError:
            yield _who_of(line), None
            continue
        try:
            yield principal, access_of_object(value)
        except ConfigError:  # a principal alone, or with an incomplete request
            yield principal, None


def _who_of(line: bytes) -> str | Unread:
    """Return the principal of a line that cannot be read, or whether the line contains an access."""
    trace = audit.access_trace(line.decode(errors="replace"))
    if trace is not None:
        return trace.principal or Unread.ACCESS
    value = object_of(line)
    if isinstance(value, audit.Reason):  # torn, perhaps
        return Unread.ACCESS if any(sign in line for sign in SIGNS_OF_OBJECTS) else Unread.OTHER
    return Unread.OTHER if value.keys().isdisjoint(_ACCESS_KEYS) else Unread.ACCESS


def _seen_in_parquet(path: str) -> Iterator[tuple[str | Unread, Request | None]]:
    need_pyarrow(display_name(path))
    import pyarrow as pa  # here: for Parquet alone

    from aclog.usage.accesses.access_log import files_of
    from aclog.usage.accesses.parquet import parquet_parts, partition_of, read_columns
    from aclog.usage.accesses.table_formats import NEWEST, check_loose_files, copied, tables_among

    place = str(_place_of_table(path))
    tables = [copied(table, NEWEST, COLUMNS) for table in tables_among([place]).values()]
    files = [table.place for table in tables] or [str(file) for file in files_of(place)]
    if not tables:
        check_loose_files(files)
    for part in parquet_parts(files, 1, [partition_of(file, [place]) for file in files]):
        for name, batch in read_columns(part, COLUMNS):
            if _PRINCIPAL not in batch.schema.names:
                raise ConfigError(f"{display_name(name)}: expected Parquet with a column {_PRINCIPAL}")
            whole = set(COLUMNS) <= set(batch.schema.names)
            rows = pa.Table.from_batches([batch.select(list(COLUMNS) if whole else [_PRINCIPAL])])
            distinct = rows.group_by(rows.schema.names).aggregate([])
            for row in zip(*(distinct.column(each).to_pylist() for each in rows.schema.names), strict=True):
                yield Unread.ACCESS if row[0] is None else str(row[0]), access_of_row(row) if whole else None
