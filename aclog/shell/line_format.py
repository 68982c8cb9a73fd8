"""The option `--format` of commands that print changes: lines for people, or JSON lines."""

from aclog.metalog.errors import ConfigError
from aclog.shell.arguments import Arguments, Option
from aclog.terminal.output_format import OutputFormat

FORMAT = Option(flag="--format", value="FORMAT", help="text (the default), or jsonl: a JSON object a line.")


def is_json(arguments: Arguments) -> bool:
    """Return whether JSON lines are asked for. Raises ConfigError: another format."""
    form = arguments.text(FORMAT.flag) or OutputFormat.TEXT
    if form not in (OutputFormat.TEXT, OutputFormat.JSONL):
        raise ConfigError(f"--format {form}: expected text or jsonl")
    return form == OutputFormat.JSONL
