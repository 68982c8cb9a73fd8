"""The flags of commands that may remove many entries because another place does not show them."""

from typing import Annotated

import typer
from attrs import frozen

from aclog.cli.removal_limit import DEFAULT_PERCENT, RemovalLimit
from aclog.metalog.errors import ConfigError


@frozen(kw_only=True)
class RemovalFlags:
    """How much may be removed at once, and what an operator has accepted beyond that."""

    max_removal: Annotated[
        float,
        typer.Option(
            "--max-removal",
            metavar="PERCENT",
            help="Refuse to remove more than this share at once (if ten entries or more), or all.",
        ),
    ] = DEFAULT_PERCENT
    accept_removal: Annotated[
        int | None,
        typer.Option(
            "--accept-removal",
            metavar="N",
            help="Accept one such removal, of at most N entries.",
            show_default="none",
        ),
    ] = None

    def limit(self) -> RemovalLimit:
        """Return the limit. Raises ConfigError: not a percentage, or nothing to accept."""
        if self.accept_removal is not None and self.accept_removal < 1:
            raise ConfigError(f"--accept-removal {self.accept_removal}: expected 1 or more")
        if not 0 < self.max_removal <= 100:
            raise ConfigError(f"--max-removal {self.max_removal:g}: expected a percentage above 0 and at most 100")
        return RemovalLimit(percent=self.max_removal, accepted=self.accept_removal)
