"""The location of an ACL: a line of a file, or a record of a log."""

from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias

from attrs import frozen

from aclog.authorizer.acl import StandardAcl

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen(kw_only=True)
class FileOrigin:
    """The line of a file on which the statement of an ACL begins."""

    file: str
    """For display: the path as it was given, or `GITREF:path`."""
    line: int
    """From 1."""
    address: str | None = None
    """In Terraform's state, such as `module.team.kafka_acl.read[0]`; None for other files."""


@frozen(kw_only=True)
class LogOrigin:
    """The record of a log that added an ACL."""

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
    """Return the JSON keys after those of an ACL: file and line, or offset and timestamp."""
    if isinstance(origin, FileOrigin):
        return {"file": origin.file, "line": origin.line}
    return {"offset": origin.offset, "timestamp": origin.timestamp}


class Origins(Protocol):
    """Returns the locations of ACLs."""

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return every location of an ACL, in the order of reading; empty if unknown."""
        ...


@frozen
class NoOrigins:
    """The origins of a source without locations."""

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:  # noqa: ARG002
        """Return no locations."""
        return ()


NO_ORIGINS: Origins = NoOrigins()

_MAX_PLACES = 2
"""How many locations of one ACL are shown."""


def places_text(acl: StandardAcl, origins: Origins) -> str:
    """Return the locations of an ACL, such as ` (kafka/a.yaml:12)`, to append to its text; empty if unknown."""
    places = origins.of(acl)
    if not places:
        return ""
    more = f" and {len(places) - _MAX_PLACES} more" if len(places) > _MAX_PLACES else ""
    return f" ({', '.join(map(origin_text, places[:_MAX_PLACES]))}{more})"


def place_object(acl: StandardAcl, origins: Origins) -> dict[str, object]:
    """Return the JSON keys after those of an ACL, for its first location; empty if unknown."""
    places = origins.of(acl)
    return origin_object(places[0]) if places else {}


@frozen(kw_only=True)
class TwoOrigins:
    """The locations of the ACLs of two compared states."""

    old: Origins = NO_ORIGINS
    new: Origins = NO_ORIGINS
