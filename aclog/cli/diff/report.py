"""Prints the difference of two policies."""

from importlib.metadata import version

from aclog.analysis.comparison import Comparison
from aclog.analysis.rows.row_report import markdown_lines
from aclog.analysis.rows.sarif import sarif_log
from aclog.cli.diff.flags import DiffFlags, DiffFormat
from aclog.cli.policies import SideFlags
from aclog.metalog.printable import printable
from aclog.sources.accesses import read_accesses
from aclog.terminal.json_text import json_text
from aclog.terminal.notices import warn
from aclog.terminal.output import emit, say
from aclog.terminal.progress import progress

SAME, DIFFERENT = 0, 1
"""Exit codes."""


def print_difference(flags: SideFlags, report: DiffFlags) -> int:
    """Print the difference of two policies; return the exit code.

    Raises:
        ConfigError: flags that do not go together, or malformed input.
        MetadataError, OSError: a source is damaged or cannot be read.

    """
    flags.check({"--accesses": report.accesses})
    accesses = None if report.accesses is None else read_accesses(report.accesses)
    sides = flags.read()
    topics = sides.existing_topics()
    with progress("comparing"):
        flips = None if accesses is None else accesses.flipped(sides.old, sides.new)
        found = Comparison.of(
            sides.old, sides.new, changes=sides.changes, topics=topics, flips=flips, origins=sides.origins
        )
    if accesses is not None and accesses.malformed:
        warn(f"{report.accesses}: {accesses.malformed:,} lines are not accesses and were skipped")
    if report.format is DiffFormat.SARIF:
        log = sarif_log(found.rows(), version=version("aclog"), path=flags.target.file(), refs=sides.refs())
        emit(json_text(log))
    else:
        _print(found, report.format)
    return DIFFERENT if found.differences else SAME


def _print(found: Comparison, form: DiffFormat) -> None:
    if form is DiffFormat.JSONL:
        for line in found.json_lines():
            emit(json_text(line))
    else:
        for text in markdown_lines(found.rows()) if form is DiffFormat.MARKDOWN else found.text_lines():
            say(printable(text))
