"""Prints the difference of two policies."""

from collections.abc import Iterable
from importlib.metadata import version

from aclog.analysis.comparison import Comparison
from aclog.analysis.rows.row_report import markdown_lines
from aclog.analysis.rows.sarif import sarif_log
from aclog.cli.diff.flags import DiffFlags
from aclog.cli.flags.output import Output
from aclog.cli.policies import SideFlags
from aclog.cli.region_columns import DIFFERENCE_COLUMNS
from aclog.metalog.printable import printable
from aclog.sources.accesses import read_accesses
from aclog.terminal.json_text import json_text
from aclog.terminal.notices import warn
from aclog.terminal.output import emit, say
from aclog.terminal.output_format import OutputFormat
from aclog.terminal.progress import progress

SAME, DIFFERENT = 0, 1
"""Exit codes."""


def print_difference(flags: SideFlags, report: DiffFlags) -> int:
    """Print the difference of two policies; return the exit code.

    Raises:
        ConfigError: flags that do not go together, or malformed input.
        MetadataError, OSError: a source is damaged or cannot be read.

    """
    output = report.output()
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
    if output.form is OutputFormat.SARIF:
        log = sarif_log(found.rows(), version=version("aclog"), path=flags.target.file(), refs=sides.refs())
        emit(json_text(log))
    else:
        _print(found, output)
    return DIFFERENT if found.differences else SAME


def _print(found: Comparison, output: Output) -> None:
    """Print rows for people, or exact regions; Markdown is a report for people, unless columns are chosen."""
    if output.form is OutputFormat.MARKDOWN and not output.columns:
        lines: Iterable[str] = markdown_lines(found.rows())
    elif output.is_rows:
        output.print_rows(DIFFERENCE_COLUMNS, found.json_lines())
        return
    else:
        lines = found.text_lines()
    for text in lines:
        say(printable(text))
