"""The difference of two policies, printed for each generation of Kafka that may decide."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import version

from attrs import frozen

from aclog.analysis.comparison import Compared, Comparison, rows_of_each, turning
from aclog.analysis.policy import NameMap
from aclog.analysis.rows.report import markdown_lines, sarif_log
from aclog.cli.answers import difference_columns
from aclog.cli.flags.commands import DiffFlags
from aclog.cli.flags.common import AuthorizerFlags, Output, SourceFlags, check_one_stdin
from aclog.cli.flags.question import SecondSettingsFlags, SecondStateFlags
from aclog.metalog.errors import printable
from aclog.ops.policies import TwoStates, compare, difference_objects, warn_of_super_users
from aclog.sources.accesses import read_accesses
from aclog.terminal.columns import OutputFormat, json_text
from aclog.terminal.output import emit, note, say, warn

# The flags that name two policies.


@frozen(kw_only=True)
class SideFlags:
    """All flags that name two policies."""

    source: SourceFlags
    authorizer: AuthorizerFlags
    target: SecondStateFlags
    settings: SecondSettingsFlags
    maps: tuple[NameMap, ...] = ()

    def check(self, more: Mapping[str, str | None]) -> None:
        """Check the flags before anything is read; a second state may differ in settings only. Raises ConfigError.

        Warns of super users that are likely unintended. `more`: other flags that name files, of which one may be stdin.
        """
        if self.target.is_given() or not self.settings.is_given():
            self.target.check(self.source)
        check_one_stdin({**self.source.files(), **self.target.files(), **more})
        after = self.settings.after(self.authorizer)
        warn_of_super_users(self.authorizer)
        if self.settings.to_super_users is not None:
            warn_of_super_users(after, "--to-super-users")

    def states(self) -> TwoStates:
        """Return both states, to be read.

        Raises:
            ConfigError: flags that do not go together, or a malformed file of changes; OSError: it cannot be read.

        """
        notify = _once()  # both sides may read one log, and have the same notes
        topics = self.source.topics()
        first, second = self.source.choose(notify, topics=topics), self.target.source(self.source)
        return TwoStates(
            first=first,
            second=None if second is None else second.choose(notify, topics=topics),
            changes=self.target.changes(),
            old_settings=self.authorizer,
            new_settings=self.settings.after(self.target.authorizer(self.authorizer)),
            topics=topics,
            maps=self.maps,
            notify=notify,
        )


def _once() -> Callable[[str], None]:
    """Return a function that prints each note once."""
    notices: set[str] = set()

    def notify(text: str) -> None:
        if text not in notices:
            notices.add(text)
            note(text)

    return notify


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
    each = flags.states().read_each()
    sides = next(iter(each.values()))
    comparisons = compare(each, accesses=accesses)
    for comparison in comparisons.values():
        if not comparison.differences:
            comparison.premises = turning(sides.premises, comparison)
    if accesses is not None and accesses.malformed:
        warn(f"{report.accesses}: {accesses.malformed:,} lines are not accesses and were skipped")
    if accesses is not None and accesses.unread:
        warn(
            f"{report.accesses}: {accesses.unread:,} of these lines are accesses that could not be read or decided: "
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
        output.print_rows(difference_columns(comparisons), difference_objects(comparisons))
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
