"""Who looks at the console."""

from attrs import frozen


@frozen(kw_only=True)
class Viewer:
    """One who looks: whoever has logged in, or anybody where no login is asked for."""

    name: str
    """What pages show; empty where no login is asked for."""
    principal: str | None
    """In Kafka's terms, such as `User:alice`; None where no login is asked for."""
    sees_all: bool
    """By the newest state, when the request came."""


ANYBODY = Viewer(name="", principal=None, sees_all=True)
"""The viewer where no login is asked for."""
