"""The difference of two policies, printed for each generation of Kafka that may decide."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING

from attrs import evolve

from aclog.analysis.comparison import Compared, Comparison, rows_of_each, turning
from aclog.analysis.policy import NameMap
from aclog.analysis.rows.report import cluster_title, markdown_lines, rows_of_clusters, sarif_log
from aclog.authorizer.acl import shell_word
from aclog.cli.flags.commands import DiffFlags
from aclog.cli.flags.common import AuthorizerFlags, Output, check_one_stdin
from aclog.cli.flags.many_requests import SecondSettingsFlags, SecondStateFlags
from aclog.cli.flags.source import SourceFlags
from aclog.metalog.errors import plural, printable
from aclog.metalog.values import frozen
from aclog.ops.policies import TwoStates, compare, difference_objects, warn_of_super_users
from aclog.sources.cluster_parts import cluster_parts, note_union
from aclog.sources.forks import each_part
from aclog.sources.formats.unread import Unread
from aclog.terminal.columns import OutputFormat, json_text
from aclog.terminal.output import emit, note, say, warn

if TYPE_CHECKING:
    from aclog.sources.accesses import Accesses

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

    def states(self, *, notes_clusters: bool = True) -> TwoStates:
        """Return both states, to be read; `notes_clusters` as in SourceFlags.choose.

        Raises:
            ConfigError: flags that do not go together, or a malformed file of changes; OSError: it cannot be read.

        """
        notify = _once()  # both sides may read one log, and have the same notes
        topics = self.source.topics()
        first, second = (
            self.source.choose(notify, topics=topics, notes_clusters=notes_clusters),
            self.target.source(self.source),
        )
        return TwoStates(
            first=first,
            second=None if second is None else second.choose(notify, topics=topics, notes_clusters=notes_clusters),
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
    accesses = _accesses(report.accesses)
    both = flags.states(notes_clusters=False)
    states = _each_cluster(both)
    # The comparison with accesses counts those that it cannot decide.
    parts = each_part(
        list(states),
        lambda name: _compared(states[name], accesses),
        what="sections",
        processes=None if accesses is None else 1,
    )
    compared = dict(parts)
    if any(each.differences for _, _, comparisons in compared.values() for each in comparisons.values()):
        _note_direction(both)
    if accesses is not None and accesses.malformed:
        warn(f"{report.accesses}: {plural(accesses.malformed, 'line')} skipped: no accesses")
    if accesses is not None and accesses.unread:
        warn(
            f"{report.accesses}: {accesses.unread:,} of these lines are accesses that could not be read or decided: "
            "more accesses may flip"
        )
    comparisons = {name: each for name, (_, _, each) in compared.items()}
    if output.form is OutputFormat.SARIF:
        _emit_sarif(compared, flags.target.file())
    else:
        _print(comparisons, {name: unread for name, (_, unread, _) in compared.items()}, output)
    each_comparison = (comparison for each in comparisons.values() for comparison in each.values())
    return DIFFERENT if any(each.differences or each.premises for each in each_comparison) else SAME


def _accesses(path: str | None) -> "Accesses | None":
    if path is None:
        return None
    from aclog.sources.accesses import read_accesses  # here: with all layouts of logs

    return read_accesses(path)


def _emit_sarif(compared: Mapping[str, tuple[list[str], tuple[Unread, ...], Compared]], path: str | None) -> None:
    from importlib.metadata import version

    from aclog.ops.lint import merged_logs, with_unread  # here: with all lints

    logs = {
        name: with_unread(sarif_log(list(rows_of_each(each)), version=version("aclog"), path=path, refs=refs), unread)
        for name, (refs, unread, each) in compared.items()
    }
    emit(json_text(merged_logs(logs)))


def _note_direction(states: TwoStates) -> None:
    """Report a second state of the same log that is older: rows read from the newer state to the older one."""
    first, second = states.first, states.second
    if second is None or second.moment is None or second.source.name != first.source.name:
        return
    newer, older = first.moment, second.moment
    if newer is None:
        is_older = True
    elif isinstance(newer, int):
        is_older = isinstance(older, int) and older < newer
    else:
        is_older = isinstance(older, datetime) and older < newer
    if is_older:
        note(
            "the second state is older than the first: GAINED is what the older one allows and the newer one denies; "
            f"for the change since then: --as-of {shell_word(str(second.as_of))}"
        )


def _each_cluster(states: TwoStates) -> dict[str, TwoStates]:
    """Return the states of each cluster by its name, an empty one if there is one cluster."""
    second = states.second
    parts = None if second is None or states.maps else cluster_parts((states.first, second))
    if parts is None:
        for each in (states.first, second):
            if each is not None:
                note_union(each)
        return {"": states}
    note(printable(parts.note))
    return {
        name: evolve(states, first=first, second=other)
        for name, (first, other) in parts.by_name.items()
        if first is not None
    }


def _compared(states: TwoStates, accesses: "Accesses | None") -> tuple[list[str], tuple[Unread, ...], Compared]:
    """Return the commits of both sides, what was not read of them, and the comparison."""
    each = states.read_each()
    sides = next(iter(each.values()))
    comparisons = compare(each, accesses=accesses)
    for comparison in comparisons.values():
        if not comparison.differences:
            comparison.premises = turning(sides.premises, comparison)
    return sides.refs(), sides.unread, comparisons


def _print(clusters: Mapping[str, Compared], unread: Mapping[str, Iterable[Unread]], output: Output) -> None:
    """Print rows for people, or exact regions; Markdown is a report for people, unless columns are chosen.

    JSON has what was not read of any cluster first: without it, no difference looks like equality.
    """
    is_markdown = output.form is OutputFormat.MARKDOWN and not output.columns
    if output.is_rows and not is_markdown:
        from aclog.cli.answers import difference_columns  # here: with plans and the history of answers

        is_json = output.form in (OutputFormat.JSON, OutputFormat.JSONL) and not output.columns
        rows = {name: difference_objects(each) for name, each in clusters.items()}
        columns = difference_columns({key: value for each in clusters.values() for key, value in each.items()})
        lacking = rows_of_clusters({name: map(Unread.to_dict, each) for name, each in unread.items()})
        objects = chain(lacking, rows_of_clusters(rows))
        output.print_rows(columns, objects if is_json else chain.from_iterable(rows.values()))
        return
    for name, comparisons in clusters.items():
        for text in cluster_title(name, is_markdown=is_markdown):
            say(text)
        if is_markdown:
            _say_parts(comparisons, heading="### {}", lines_of=_markdown_lines)
        else:
            _say_parts(comparisons, heading="On {}:", lines_of=Comparison.text_lines)


def _markdown_lines(comparison: Comparison) -> Iterable[str]:
    return markdown_lines(comparison.rows(), comparison.premises)


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
