"""Command lines that are read as `aclog` reads them, and not run."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from aclog.cli.options import Command
from aclog.sources.named_source import SourceWord
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

    with TemporaryDirectory() as home:
        contexts = Path(home) / "config.toml"
        contexts.write_text(CONTEXTS)
        environment = mock.patch.dict(os.environ, {"ACLOG_CONFIG": str(contexts)})
        recognised = mock.patch("aclog.cli.flags.positional.recognise", _recognised)
        with environment, recognised, mock.patch.object(Command, "invoke", return_value=None):
            return aclog(*words)


def _recognised(text: str, *, prefix: str = "") -> SourceWord:
    """Return a source for a word of an example, which names none of this machine."""
    del prefix
    kind = "context" if text in {"prod", "night"} else "bootstrap-server" if text.startswith("HOST:") else "acls"
    return SourceWord(kind=kind, text=text, what="an example")
