"""Prints what was to be proved, and what refutes it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from attrs import frozen

from aclog.analysis.answers.permission_report import permission_lines, permission_object
from aclog.analysis.answers.permissions import Permission
from aclog.analysis.by_generation import generation_object, merged, only_on
from aclog.analysis.comparison import Comparison, rows_of_each
from aclog.analysis.deciding import deciding
from aclog.analysis.policy import Policy
from aclog.analysis.regions.existing_names import ExistingNames
from aclog.analysis.regions.names import Names
from aclog.analysis.regions.region import Difference, Direction, Region
from aclog.analysis.regions.region_json import JsonObject, decided_by_object
from aclog.analysis.regions.witness import witness
from aclog.analysis.rows.row_report import decided_by_text, request_text, row_lines
from aclog.analysis.side_premises import turning
from aclog.authorizer.acl import ResourceType
from aclog.authorizer.generation import Generation
from aclog.authorizer.origin import Origins
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.cli.differing import Compared, difference_objects
from aclog.cli.flags.output import Output
from aclog.cli.policies import SideFlags
from aclog.cli.region_columns import DIFFERENCE_COLUMNS, PERMISSION_COLUMNS, rule_text, with_generation
from aclog.metalog.printable import printable
from aclog.terminal.columns import Column
from aclog.terminal.output import say
from aclog.terminal.output_format import OutputFormat
from aclog.terminal.progress import progress
from aclog.terminal.rows import print_rows

REFUTATION_COLUMNS = (
    *PERMISSION_COLUMNS,
    Column(key="rule", title="DECIDED BY", cut=True, spare=True, text=rule_text),
    Column(key="topics", spare=True),
)
"""Of `_objects`."""

PROVED, REFUTED, UNKNOWN = 0, 1, 1
"""Exit codes: what an unknown premise could turn is no proof."""

_SHOWN = 20
"""Refuting rows or regions as text; the JSON lines have all."""


@frozen(kw_only=True)
class Claim:
    """What is to be proved: the name of the check, and what it says of the states that are read."""

    check: str
    text: str


@frozen(kw_only=True)
class Verdict:
    """What became of a claim."""

    refuted: bool
    premises: Premises
    """What is unknown, and could turn it."""

    @property
    def name(self) -> str:
        """PROVED, REFUTED or UNKNOWN."""
        return "REFUTED" if self.refuted else "UNKNOWN" if self.premises else "PROVED"

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return {"REFUTED": REFUTED, "UNKNOWN": UNKNOWN, "PROVED": PROVED}[self.name]

    def sentence(self, claim: Claim) -> str:
        """Return the claim with its verdict: what is unknown holds `unless` something else is the case."""
        return f"{self.name}: {claim.check}: {self.premises.decided(claim.text)}"


@frozen(eq=False, kw_only=True)
class Asked:
    """The policies that are asked, by the generation of Kafka that may decide, and where their rules stand."""

    policies: Mapping[Generation, Policy]
    origins: Origins
    premises: Premises = ALL_KNOWN
    """What is unknown of its settings."""

    def policy(self, generation: Generation | None) -> Policy:
        """Return the policy of one generation; of the first for None."""
        return next(iter(self.policies.values())) if generation is None else self.policies[generation]


def prove_comparison(claim: Claim, flags: SideFlags, output: Output, *, direction: Direction | None) -> int:
    """Prove that two policies do not differ in a direction, or at all; return the exit code.

    Raises:
        ConfigError: flags that do not go together, or malformed input.
        MetadataError, OSError: a source is damaged or cannot be read.

    """
    flags.check({})
    each = flags.read_each()
    topics = next(iter(each.values())).existing_topics()
    with progress("comparing"):
        compared = {
            generation: Comparison.of(
                sides.old, sides.new, changes=sides.changes, direction=direction, topics=topics, origins=sides.origins
            )
            for generation, sides in each.items()
        }
    found = [difference for difference, _ in merged(_differences(compared))]
    unknown = next(iter(each.values())).premises
    if found:
        verdict = Verdict(refuted=True, premises=unknown.unknown.turning(allowed=True))
    else:
        could_turn = [turning(unknown, comparison, direction) for comparison in compared.values()]
        verdict = Verdict(refuted=False, premises=next(filter(None, could_turn), ALL_KNOWN))
    if output.is_rows:
        rows = difference_objects(compared)
        head = _head(claim, verdict, [difference.region for difference in found], topics)
        columns = with_generation(DIFFERENCE_COLUMNS, compared)
        _print_rows(head, columns, rows, output, verdict.sentence(claim))
    else:
        _say(claim, verdict, [list(row_lines(row)) for row in rows_of_each(compared)])
    return verdict.exit_code


def _differences(compared: Compared) -> dict[Generation | None, list[Difference]]:
    return {generation: comparison.differences for generation, comparison in compared.items()}


def prove_none(
    claim: Claim,
    found: Sequence[tuple[Permission, Generation | None]],
    asked: Asked,
    *,
    topics: ExistingNames | None,
    output: Output,
) -> int:
    """Prove that nothing is found; return the exit code.

    What is found refutes it, each with the generation of Kafka that alone allows it, if it is one of several.
    """
    verdict = Verdict(refuted=bool(found), premises=asked.premises.turning(allowed=bool(found)))
    if output.is_rows:
        head = _head(claim, verdict, [each.region for each, _ in found], topics)
        columns = with_generation(REFUTATION_COLUMNS, asked.policies)
        _print_rows(head, columns, _objects(asked, found, topics), output, verdict.sentence(claim))
    else:
        _say(claim, verdict, [list(_lines(asked, *each, topics)) for each in islice(found, _SHOWN)], count=len(found))
    return verdict.exit_code


def _head(claim: Claim, verdict: Verdict, regions: Sequence[Region], topics: ExistingNames | None) -> JsonObject:
    head: JsonObject = {"check": claim.check, "verdict": verdict.name, "regions": len(regions)}
    if topics is not None:
        head["topics"] = len(set[str]().union(*(topics.among(names) for names in _topic_names(regions))))
    return {**head, **verdict.premises.key()}


def _print_rows(
    head: JsonObject, columns: Sequence[Column], rows: Iterable[JsonObject], output: Output, title: str
) -> None:
    """Print the verdict, in JSON as the first object, in a table as its title; csv and Markdown have the rows alone."""
    if output.form is OutputFormat.TABLE:
        say(printable(title))
    elif output.form in (OutputFormat.JSON, OutputFormat.JSONL) and not output.columns:
        rows = chain([head], rows)
    print_rows(columns, rows, output.form, chosen=output.columns)


def _say(claim: Claim, verdict: Verdict, parts: Sequence[Sequence[str]], *, count: int | None = None) -> None:
    say(printable(verdict.sentence(claim)))
    for line in (line for part in parts[:_SHOWN] for line in part):
        say(printable(line))
    left = (len(parts) if count is None else count) - _SHOWN
    if left > 0:
        say(printable(f"and {left:,} more: --format jsonl has all"))


def _topic_names(regions: Iterable[Region]) -> Iterator[Names]:
    return (region.names for region in regions if region.resource_type == ResourceType.TOPIC)


def _objects(
    asked: Asked, found: Iterable[tuple[Permission, Generation | None]], topics: ExistingNames | None
) -> Iterator[JsonObject]:
    for permission, generation in found:
        rule = deciding(asked.policy(generation), witness(permission.region))
        line = {**permission_object(permission, asked.origins), "rule": decided_by_object(rule, asked.origins)}
        line |= generation_object(generation)
        if topics is not None and permission.region.resource_type == ResourceType.TOPIC:
            line["topics"] = len(topics.among(permission.region.names))
        yield line


def _lines(
    asked: Asked, permission: Permission, generation: Generation | None, topics: ExistingNames | None
) -> Iterator[str]:
    first, *more = permission_lines(permission, asked.origins)
    yield first + only_on(generation)
    yield from more
    example = witness(permission.region)
    rule = deciding(asked.policy(generation), example)
    yield f"  such as {request_text(example)}: {decided_by_text(rule, asked.origins)}"
    if topics is not None and permission.region.resource_type == ResourceType.TOPIC:
        yield f"  {len(topics.among(permission.region.names)):,} of {len(topics):,} topics"
