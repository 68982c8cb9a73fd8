"""Command lines that are read as `aclog` reads them, and not run."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from aclog.cli.app import LazyCommand
from tests.support.cli.command import Result, aclog

CONTEXTS = """\
[contexts.prod]
bootstrap-server = "broker:9092"

[contexts.night]
log = "/backup/__cluster_metadata-0"
"""
"""The contexts that help and pages use, of the kinds that docs/contexts.md gives them."""


def parsed(words: Sequence[str]) -> Result:
    """What the words after `aclog` come to if the command itself does nothing: exit code 0 if they can be typed."""

    def idle(stand_in: LazyCommand) -> Any:
        command = stand_in._load()  # not the one that commands of this process run
        for leaf in _leaves(command):
            leaf.invoke = lambda _context: None
        return command

    with TemporaryDirectory() as home:
        contexts = Path(home) / "config.toml"
        contexts.write_text(CONTEXTS)
        environment = mock.patch.dict(os.environ, {"ACLOG_CONFIG": str(contexts)})
        with environment, mock.patch.object(LazyCommand, "load", idle):
            return aclog(*words)


def _leaves(command: Any) -> Iterator[Any]:
    if hasattr(command, "commands"):
        for below in command.commands.values():
            yield from _leaves(below)
    else:
        yield command
