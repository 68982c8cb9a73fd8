"""The flags of commands that follow a cluster until they are stopped."""

from typing import TYPE_CHECKING, Annotated

import typer
from attrs import frozen

from aclog.metalog.errors import ConfigError

if TYPE_CHECKING:
    from aclog.nodes.config.node_config import HostPort

_MAX_GIVE_UP_S = 366 * 86_400.0


@frozen(kw_only=True)
class FollowerFlags:
    """How a command that follows a cluster is watched, and when it ends by itself."""

    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="HOST:PORT",
            help="Serve /metrics, /healthz and /readyz here, without authentication.",
            show_default="nowhere",
        ),
    ] = None
    give_up_after: Annotated[
        float | None,
        typer.Option(
            "--give-up-after",
            metavar="SECONDS",
            help="End with exit code 2 after this long without success.",
            show_default="never",
        ),
    ] = None

    def refuse(self, flag: str) -> None:
        """Refuse both flags for a command that does not follow without `flag`. Raises ConfigError: one is given."""
        given = "--http" if self.http is not None else "--give-up-after" if self.give_up_after is not None else None
        if given is not None:
            raise ConfigError(f"{given}: only together with {flag}")

    def address(self) -> "HostPort | None":
        """Return the address of --http. Raises ConfigError: not one HOST:PORT."""
        from aclog.sources.server_flags import parse_servers

        found = parse_servers("--http", self.http)
        if len(found) > 1:
            raise ConfigError(f"--http {self.http}: expected one HOST:PORT")
        return found[0] if found else None

    def patience(self) -> float | None:
        """Return the seconds of --give-up-after. Raises ConfigError: out of range."""
        seconds = self.give_up_after
        if seconds is not None and not 0 < seconds <= _MAX_GIVE_UP_S:
            raise ConfigError(
                f"--give-up-after {seconds:g}: expected seconds above 0, and at most {_MAX_GIVE_UP_S:g} (a year)"
            )
        return seconds
