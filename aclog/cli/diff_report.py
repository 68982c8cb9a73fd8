"""The difference of two policies, printed for each generation of Kafka that may decide."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib.metadata import version

from aclog.analysis.comparison import Comparison, rows_of_each, turning
from aclog.analysis.policy import generation_object, merged
from aclog.analysis.regions import JsonObject
from aclog.analysis.rows.report import markdown_lines, sarif_log
from aclog.authorizer.settings import Generation
from aclog.cli.answers import DIFFERENCE_COLUMNS, with_generation
from aclog.cli.flags.commands import DiffFlags
from aclog.cli.flags.common import Output
from aclog.cli.policies import SideFlags
from aclog.metalog.errors import printable
from aclog.sources.accesses import read_accesses
from aclog.terminal.columns import OutputFormat, json_text
from aclog.terminal.output import emit, say, warn
from aclog.terminal.progress import progress

# Differences of two policies, where several generations of Kafka may decide on both: those of each, and of all.


Compared = Mapping[Generation | None, Comparison]
"""By the generation that decides on both sides; one under None, if that is known."""


def difference_objects(compared: Compared) -> Iterator[JsonObject]:
    """Yield an object for each region, with `generation` where only one decides so."""
    answers = {generation: comparison.json_lines() for generation, comparison in compared.items()}
    for line, generation in merged(answers, json_text):
        yield {**line, **generation_object(generation)}


# Prints the difference of two policies.


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
    each = flags.read_each()
    sides = next(iter(each.values()))
    topics = sides.existing_topics()
    with progress("comparing"):
        comparisons = {
            generation: Comparison.of(
                own.old,
                own.new,
                changes=own.changes,
                topics=topics,
                flips=None if accesses is None else accesses.flipped(own.old, own.new),
                origins=own.origins,
            )
            for generation, own in each.items()
        }
    for comparison in comparisons.values():
        if not comparison.differences:
            comparison.premises = turning(sides.premises, comparison)
    if accesses is not None and accesses.malformed:
        warn(f"{report.accesses}: {accesses.malformed:,} lines are not accesses and were skipped")
    if accesses is not None and accesses.unread:
        warn(
            f"{report.accesses}: {accesses.unread:,} lines of them tell of accesses that could not be read or decided: "
            "more accesses may flip"
        )
    if output.form is OutputFormat.SARIF:
        rows = list(rows_of_each(comparisons))
        log = sarif_log(rows, version=version("aclog"), path=flags.target.file(), refs=sides.refs())
        emit(json_text(log))
    else:
        _print(comparisons, output)
    return DIFFERENT if any(each.differences or each.premises for each in comparisons.values()) else SAME


def _print(comparisons: Compared, output: Output) -> None:
    """Print rows for people, or exact regions; Markdown is a report for people, unless columns are chosen."""
    if output.form is OutputFormat.MARKDOWN and not output.columns:
        print_parts = partial(
            _say_parts, heading="### {}", lines_of=lambda each: markdown_lines(each.rows(), each.premises)
        )
    elif output.is_rows:
        output.print_rows(with_generation(DIFFERENCE_COLUMNS, comparisons), difference_objects(comparisons))
        return
    else:
        print_parts = partial(_say_parts, heading="On {}:", lines_of=Comparison.text_lines)
    print_parts(comparisons)


def _say_parts(comparisons: Compared, *, heading: str, lines_of: Callable[[Comparison], Iterable[str]]) -> None:
    """Print a report; one for each generation of Kafka that may decide, if they differ."""
    reports = {generation: list(lines_of(comparison)) for generation, comparison in comparisons.items()}
    first, *others = reports.values()
    if all(other == first for other in others):
        reports = {None: first}
    for number, (generation, lines) in enumerate(reports.items()):
        if generation is not None:
            say("\n" * (number > 0) + heading.format(generation))
        for text in lines:
            say(printable(text))
