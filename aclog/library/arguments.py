"""Arguments as callers give them: checked, so that one line says what is wrong, and no traceback from within."""

import operator
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, tzinfo
from enum import IntEnum
from os import PathLike, fsencode, fspath
from typing import TypeAlias, TypeVar

from aclog.authorizer.acl import ResourcePattern, parse_name
from aclog.authorizer.resources import topic
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.printable import printable
from aclog.snapshots.moments import Moment, utc_of
from aclog.snapshots.zones import instant_of, start_of

_Enum = TypeVar("_Enum", bound=IntEnum)
Named: TypeAlias = str | _Enum | None
"""An enum value or its name, in any case; None for ANY."""

AsOf: TypeAlias = int | str | date
"""An end offset, a date or datetime, or a text that `--as-of` takes; UTC if it has no zone, unless the log has one."""

_SHOWN = 60


def shown(value: object) -> str:
    """Return what was given, for an error: cut, since a caller may have given anything."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # of a stranger's class
        return f"a {type(value).__name__}"
    return printable(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def text_of(what: str, value: object, example: str) -> str:
    """Return an argument that must be text. Raises ConfigError: it is none, or no Unicode."""
    if not isinstance(value, str):
        raise ConfigError(f"{what} {shown(value)}: expected text, such as {example!r}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"{what} {shown(value)}: expected Unicode text, without lone surrogates") from None
    return value


def optional_text(what: str, value: object, example: str) -> str | None:
    """Return the same, or None. Raises as `text_of`."""
    return None if value is None else text_of(what, value, example)


def path_of(what: str, value: object) -> str:
    """Return the text of a path. Raises ConfigError: it is none."""
    path = fspath(value) if isinstance(value, PathLike) else value
    with suppress(UnicodeEncodeError):
        if isinstance(path, str) and b"\0" not in fsencode(path):
            return path
    raise ConfigError(f"{what} {shown(value)}: expected a path, as text or as a pathlib.Path")


def flag_of(what: str, value: object, default: bool) -> bool:
    """Return True or False as given; the default for None. Raises ConfigError: a text, say, where `no` is true."""
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ConfigError(f"{what} {shown(value)}: expected True or False")
    return value


def texts_of(what: str, value: object, example: str) -> list[str]:
    """Return several texts. Raises ConfigError: it is one text, or anything else."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"{what} {shown(value)}: expected several texts, such as {[example]}")
    return [text_of(what, each, example) for each in value]


def enum_code(kind: type[_Enum], value: Named[_Enum]) -> int:
    """Return the code of an enum value or name; that of ANY for None.

    Raises:
        ConfigError: an unknown name or code.

    """
    if value is None:
        return int(kind["ANY"])
    if isinstance(value, str):
        return int(parse_name(kind, value))
    if isinstance(value, kind) or (type(value) is int and value in set(kind)):
        return int(value)
    raise ConfigError(f"{shown(value)}: expected a name, such as {max(kind).name!r}, or a value of {kind.__name__}")


def resource_of(value: object) -> ResourcePattern:
    """Return a resource; a text is a topic, or `pii-*` for all that begin so. Raises ConfigError: it is neither."""
    if isinstance(value, str):
        return topic(text_of("resource", value, "orders"))
    if not isinstance(value, ResourcePattern):
        raise ConfigError(
            f"resource {shown(value)}: expected the name of a topic, or aclog.topic(name), aclog.group(name), "
            "aclog.cluster(), aclog.transactional_id(name), aclog.delegation_token(id) or aclog.user(principal)"
        )
    if type(value.resource_type) is int or isinstance(value.resource_type, IntEnum):
        text_of("the name of the resource", value.name, "orders")
        return value
    raise ConfigError(f"resource {shown(value)}: expected a resource type such as aclog.ResourceType.TOPIC")


def moment_of(as_of: AsOf | None, zone: tzinfo) -> Moment | None:
    """Return the moment that is meant, in the zone unless it names one; None for the newest state.

    Raises:
        ConfigError: it is none, or could be two.

    """
    if as_of is None:
        return None
    if isinstance(as_of, datetime):
        return utc_of(as_of) if as_of.tzinfo is not None else instant_of(as_of, zone)
    if isinstance(as_of, date):
        return start_of(as_of, zone)
    if isinstance(as_of, str):
        from aclog.snapshots.moment_texts import read_moment  # noqa: PLC0415  # few give texts

        now = datetime.fromtimestamp(current_time_ms() / 1000, UTC)
        return read_moment(as_of, now=now, zone=zone).moment
    try:
        if not isinstance(as_of, bool):
            return operator.index(as_of)  # of numpy's integers, too
    except TypeError:
        pass
    raise ConfigError(
        f"as_of {shown(as_of)}: expected an end offset, a datetime, or a text such as 'yesterday 18:00' or '-3d'"
    )


@contextmanager
def told_as_log_errors(name: str) -> Iterator[None]:
    """Turn what the operating system refuses into a LogError that says of what."""
    try:
        yield
    except OSError as error:
        raise LogError(f"{error.filename or name}: {error.strerror or error}") from error
