"""What decides where a call does not say: Kafka's defaults, or the settings of a context."""

from datetime import UTC, tzinfo

from attrs import frozen


@frozen(kw_only=True)
class Defaults:
    """Settings of authorizers."""

    super_users: str | None = None
    """As in the broker property; None: nothing says."""
    allow_everyone: bool | None = None
    """None: nothing says."""
    semantics: str = "kafka"
    cidr: bool | None = None
    """Whether the Kafka that decides takes a host with a slash for a range; None: as the state says of its brokers."""


@frozen(kw_only=True)
class LogOptions:
    """How a log was opened."""

    max_age: float | None = None
    """In seconds."""
    zone: tzinfo = UTC
    """Of times that name none."""
    defaults: Defaults = Defaults()
