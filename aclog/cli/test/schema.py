"""Prints the JSON schema of YAML tests."""

from importlib.resources import files

from aclog.terminal.output import emit


def print_schema() -> None:
    """Print the schema."""
    emit(files("aclog.sources.rule_tests").joinpath("schema.json").read_text(encoding="utf-8").rstrip("\n"))
