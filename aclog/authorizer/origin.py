"""Where a rule was read: a line of a file, or a record of a log."""

from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias

from attrs import frozen

from aclog.authorizer.acl import StandardAcl

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen(kw_only=True)
class FileOrigin:
    """The line of a file on which the statement begins that makes a rule."""

    file: str
    """As shown to people: the path as it was given, or `GITREF:path`."""
    line: int
    """From 1."""
    address: str | None = None
    """In Terraform's state, such as `module.team.kafka_acl.read[0]`; None for other files."""


@frozen(kw_only=True)
class LogOrigin:
    """The record of a log that added a rule."""

    offset: int
    timestamp: int
    """Of its batch, in ms since 1970."""


Origin: TypeAlias = FileOrigin | LogOrigin


def origin_text(origin: Origin) -> str:
    """Return such as `kafka/orders.yaml:12`, or `offset 120, 2026-11-20T10:00:00.000Z`."""
    if isinstance(origin, FileOrigin):
        return f"{origin.file}:{origin.line}"
    time = _EPOCH + timedelta(milliseconds=origin.timestamp)
    return f"offset {origin.offset}, {time.isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"


def origin_object(origin: Origin) -> dict[str, object]:
    """Return the keys that follow those of a rule in JSON: file and line, or offset and timestamp."""
    if isinstance(origin, FileOrigin):
        return {"file": origin.file, "line": origin.line}
    return {"offset": origin.offset, "timestamp": origin.timestamp}


class Origins(Protocol):
    """Tells where rules were read."""

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return every place that states a rule, in the order of reading; none if it is not known."""
        ...


@frozen
class NoOrigins:
    """Those of a source that does not tell."""

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:  # noqa: ARG002
        """Return nothing."""
        return ()


NO_ORIGINS: Origins = NoOrigins()

_MAX_PLACES = 2
"""Places of one rule that are shown to people."""


def places_text(acl: StandardAcl, origins: Origins) -> str:
    """Return where a rule stands, such as ` (kafka/a.yaml:12)`, to be put after its text; empty if it is not known."""
    places = origins.of(acl)
    if not places:
        return ""
    more = f" and {len(places) - _MAX_PLACES} more" if len(places) > _MAX_PLACES else ""
    return f" ({', '.join(map(origin_text, places[:_MAX_PLACES]))}{more})"


def place_object(acl: StandardAcl, origins: Origins) -> dict[str, object]:
    """Return the keys that follow those of a rule in JSON: of the first place that states it; none if not known."""
    places = origins.of(acl)
    return origin_object(places[0]) if places else {}


@frozen(kw_only=True)
class TwoOrigins:
    """Where the rules of two states stand that are compared."""

    old: Origins = NO_ORIGINS
    new: Origins = NO_ORIGINS
