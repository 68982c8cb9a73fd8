"""The flags of `aclog test` besides running tests: following a log, and recording."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import frozen

from aclog.cli.test.flags import RunFlags
from aclog.metalog.errors import ConfigError

_FOLLOWING = "Guardrails (with --follow)"
_RECORDING = "Recording"


@frozen(kw_only=True)
class GuardFlags:
    """Running tests on each committed change."""

    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            metavar="",
            help="Run the tests on each change of a log as it is committed, until Ctrl-C, and tell which turn red or "
            "green.",
            rich_help_panel=_FOLLOWING,
        ),
    ] = False
    exit_on_red: Annotated[
        bool,
        typer.Option(
            "--exit-on-red", metavar="", help="End with exit code 1 when a test is red.", rich_help_panel=_FOLLOWING
        ),
    ] = False
    webhook: Annotated[
        str | None,
        typer.Option(
            "--webhook",
            metavar="URL",
            help="Post each turn here as JSON, in the background; a user and password in it are sent as a login.",
            show_default=False,
            rich_help_panel=_FOLLOWING,
        ),
    ] = None

    def check(self, flags: RunFlags) -> None:
        """Check the flags beside --follow. Raises ConfigError: one is about a single run."""
        _refuse_single_run(flags, "--follow")

    def refuse(self) -> None:
        """Refuse the flags of --follow without it. Raises ConfigError: one is given."""
        for flag, given in (("--exit-on-red", self.exit_on_red), ("--webhook", self.webhook is not None)):
            if given:
                raise ConfigError(f"{flag}: only together with --follow")


@frozen(kw_only=True)
class RecordFlags:
    """Writing tests that say what is decided today."""

    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Instead of running tests: write some to a new file that say what the state decides, and that what "
            "its log removed stays denied.",
            show_default=False,
            rich_help_panel=_RECORDING,
        ),
    ] = None
    accesses: Annotated[
        str | None,
        typer.Option(
            "--accesses",
            metavar="PATH",
            help="With --record: how these accesses are decided, not the whole state: a log in any form that "
            "[cyan]aclog usage[/] reads.",
            show_default=False,
            rich_help_panel=_RECORDING,
        ),
    ] = None

    def given(self) -> bool:
        """Return whether to record. Raises ConfigError: --accesses without --record."""
        if self.record is None and self.accesses is not None:
            raise ConfigError("--accesses: only together with --record")
        return self.record is not None

    def check(self, flags: RunFlags, guard: GuardFlags) -> None:
        """Check the flags beside --record. Raises ConfigError: one is about running tests."""
        if flags.files or flags.run:
            raise ConfigError("--record writes tests: expected no FILE and no --run")
        if guard.follow:
            raise ConfigError("--record and --follow: expected one of them")
        guard.refuse()
        _refuse_single_run(flags, "--record")


def _refuse_single_run(flags: RunFlags, beside: str) -> None:
    given = {
        "--coverage": flags.coverage,
        "--min-coverage": flags.min_coverage is not None,
        "--mutate": flags.mutate,
        "--junit": flags.junit is not None,
    }
    for flag in (flag for flag, is_given in given.items() if is_given):
        raise ConfigError(f"{flag}: not together with {beside}")
