"""`aclog check`: proofs about states, over all principals, hosts and names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from attrs import frozen
from click.exceptions import Exit

from aclog.analysis.comparison import Comparison, rows_of_each, turning
from aclog.analysis.policy import Policy, deciding, generation_object, merged, only_on
from aclog.analysis.regions import (
    Difference,
    Direction,
    ExistingNames,
    JsonObject,
    Names,
    Principals,
    Region,
    decided_by_object,
    witness,
)
from aclog.analysis.rows.report import decided_by_text, request_text, row_lines
from aclog.analysis.who_can import (
    Permission,
    intent_permissions,
    permission_key,
    permission_lines,
    permission_object,
    permissions,
)
from aclog.authorizer.acl import ResourceType
from aclog.authorizer.origin import Origins
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.settings import Generation
from aclog.cli.answers import DIFFERENCE_COLUMNS, PERMISSION_COLUMNS, rule_text, with_generation
from aclog.cli.diff_report import Compared, difference_objects
from aclog.cli.flags.common import AuthorizerFlags, Output
from aclog.cli.flags.question import (
    AnswerFlags,
    AskedFlags,
    SecondSettingsFlags,
    SecondStateFlags,
    SubjectFlags,
    asked_principals,
)
from aclog.cli.flags.source import SourceFlags
from aclog.cli.images import existing_topics
from aclog.cli.options import Group
from aclog.cli.policies import SideFlags, policies_of, read_premises
from aclog.metalog.errors import ConfigError, printable
from aclog.terminal.columns import Column, OutputFormat
from aclog.terminal.output import say
from aclog.terminal.progress import progress, tracked
from aclog.terminal.tables import print_rows

# `aclog check`: proofs about states, over all principals, hosts and names; nothing is sampled.


app = Group(
    name="check",
    help="Prove something about one state or two, or refute it with an example: exit code 0 if proved, 1 if refuted or "
    "unknown (settings that a running cluster does not show could refute it).",
    no_args_is_help=True,
)


@app.command("no-new-access")
def no_new_access(
    source: SourceFlags,
    target: SecondStateFlags,
    authorizer: AuthorizerFlags,
    settings: SecondSettingsFlags,
    output: AnswerFlags,
) -> None:
    """Prove that a second state allows no request that the first one denies.

    [bold]Example[/]

      aclog check no-new-access --log DIR --change change.jsonl
    """
    from aclog.analysis.regions import Direction
    from aclog.cli.policies import SideFlags

    claim = Claim(check="no-new-access", text="the second state allows no request that the first one denies")
    flags = SideFlags(source=source, authorizer=authorizer, target=target, settings=settings)
    raise Exit(prove_comparison(claim, flags, output.choose(), direction=Direction.GAINED))


@app.command()
def equal(
    source: SourceFlags,
    target: SecondStateFlags,
    authorizer: AuthorizerFlags,
    settings: SecondSettingsFlags,
    output: AnswerFlags,
) -> None:
    """Prove that two states decide every request the same, whatever their ACLs look like.

    [bold]Example[/]

      aclog check equal --acls tidied.jsonl --to-bootstrap-server HOST:9092
    """
    from aclog.cli.policies import SideFlags

    claim = Claim(check="equal", text="both states decide every request the same")
    flags = SideFlags(source=source, authorizer=authorizer, target=target, settings=settings)
    raise Exit(prove_comparison(claim, flags, output.choose(), direction=None))


@app.command("not-granted")
def not_granted(
    source: SourceFlags,
    action: AskedFlags,
    subjects: SubjectFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
) -> None:
    """Prove that no principal, or none of these, is allowed an operation on any of the resources.

    With an intent: that for none of them all that it needs is allowed.
    'pii-*' is every name that begins with pii-.

    [bold]Examples[/]

      aclog check not-granted --log DIR --operation READ --topic 'pii-*'
      aclog check not-granted --log DIR --principal User:bob --intent produce --topic payments
    """
    from aclog.analysis import regions

    action.check()
    named = asked_principals(subjects.principal)
    who = "nobody may" if not named else f"{named[0]} may not" if len(named) == 1 else f"none of {', '.join(named)} may"
    claim = Claim(check="not-granted", text=f"{who} do it")
    question = Question(
        claim=claim,
        action=action,
        principals=regions.only(*named) if named else regions.EVERYONE,
        host=subjects.host,
    )
    raise Exit(question.prove(source, authorizer, output.choose()))


@app.command()
def only(
    source: SourceFlags,
    action: AskedFlags,
    subjects: SubjectFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
) -> None:
    """Prove that only these principals are allowed an operation on any of the resources, or hold an intent.

    [bold]Example[/]

      aclog check only --log DIR --operation WRITE --topic audit --principal User:auditor
    """
    from aclog.analysis.regions import everyone_but

    action.check()
    named = asked_principals(subjects.principal)
    if not named:
        raise ConfigError("--principal is missing: expected those who may")
    claim = Claim(check="only", text=f"nobody but {', '.join(named)} may do it")
    question = Question(claim=claim, action=action, principals=everyone_but(*named), host=subjects.host)
    raise Exit(question.prove(source, authorizer, output.choose()))


@app.command("no-public")
def no_public(
    source: SourceFlags,
    action: AskedFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
) -> None:
    """Prove that a principal whom nothing names is allowed nothing, or nothing of what is asked.

    [bold]Examples[/]

      aclog check no-public --log DIR
      aclog check no-public --log DIR --operation DESCRIBE --topic '*'
    """
    from aclog.analysis.regions import EVERYONE

    action.check_one()
    what = "none of what is asked" if action.narrows() else "nothing"
    claim = Claim(check="no-public", text=f"a principal that nothing names is allowed {what}")
    question = Question(claim=claim, action=action, principals=EVERYONE, host=None)
    raise Exit(question.prove(source, authorizer, output.choose(), unnamed=True))


# Prints what was to be proved, and what refutes it.


REFUTATION_COLUMNS = (
    *PERMISSION_COLUMNS,
    Column(key="rule", title="DECIDED BY", cut=True, spare=True, text=rule_text),
    Column(key="topics", spare=True),
)
"""Of `_objects`."""

PROVED, REFUTED, UNKNOWN = 0, 1, 1
"""Exit codes: what an unknown premise could turn is no proof."""

_MAX_PARTS = 20
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
class Basis:
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
    counterexamples = [difference for difference, _ in merged(_differences(compared))]
    unknown = next(iter(each.values())).premises
    if counterexamples:
        verdict = Verdict(refuted=True, premises=unknown.unknown.turning(allowed=True))
    else:
        could_turn = [turning(unknown, comparison, direction) for comparison in compared.values()]
        verdict = Verdict(refuted=False, premises=next(filter(None, could_turn), ALL_KNOWN))
    if output.is_rows:
        rows = difference_objects(compared)
        head = _head(claim, verdict, [difference.region for difference in counterexamples], topics)
        columns = with_generation(DIFFERENCE_COLUMNS, compared)
        _print_rows(head, columns, rows, output, verdict.sentence(claim))
    else:
        _say(claim, verdict, [list(row_lines(row)) for row in rows_of_each(compared)])
    return verdict.exit_code


def _differences(compared: Compared) -> dict[Generation | None, list[Difference]]:
    return {generation: comparison.differences for generation, comparison in compared.items()}


def prove_none(
    claim: Claim,
    counterexamples: Sequence[tuple[Permission, Generation | None]],
    basis: Basis,
    *,
    topics: ExistingNames | None,
    output: Output,
) -> int:
    """Prove that nothing is found; return the exit code.

    What is found refutes it, each with the generation of Kafka that alone allows it, if it is one of several.
    """
    verdict = Verdict(refuted=bool(counterexamples), premises=basis.premises.turning(allowed=bool(counterexamples)))
    if output.is_rows:
        head = _head(claim, verdict, [each.region for each, _ in counterexamples], topics)
        columns = with_generation(REFUTATION_COLUMNS, basis.policies)
        _print_rows(head, columns, _objects(basis, counterexamples, topics), output, verdict.sentence(claim))
    else:
        _say(
            claim,
            verdict,
            [list(_lines(basis, *each, topics)) for each in islice(counterexamples, _MAX_PARTS)],
            count=len(counterexamples),
        )
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
    print_rows(columns, rows, output.form, keys=output.columns)


def _say(claim: Claim, verdict: Verdict, parts: Sequence[Sequence[str]], *, count: int | None = None) -> None:
    say(printable(verdict.sentence(claim)))
    for line in (line for part in parts[:_MAX_PARTS] for line in part):
        say(printable(line))
    remaining = (len(parts) if count is None else count) - _MAX_PARTS
    if remaining > 0:
        say(printable(f"and {remaining:,} more: --format jsonl has all"))


def _topic_names(regions: Iterable[Region]) -> Iterator[Names]:
    return (region.names for region in regions if region.resource_type == ResourceType.TOPIC)


def _objects(
    basis: Basis, counterexamples: Iterable[tuple[Permission, Generation | None]], topics: ExistingNames | None
) -> Iterator[JsonObject]:
    for permission, generation in counterexamples:
        rule = deciding(basis.policy(generation), witness(permission.region))
        line = {**permission_object(permission, basis.origins), "rule": decided_by_object(rule, basis.origins)}
        line |= generation_object(generation)
        if topics is not None and permission.region.resource_type == ResourceType.TOPIC:
            line["topics"] = len(topics.among(permission.region.names))
        yield line


def _lines(
    basis: Basis, permission: Permission, generation: Generation | None, topics: ExistingNames | None
) -> Iterator[str]:
    first, *more = permission_lines(permission, basis.origins)
    yield first + only_on(generation)
    yield from more
    example = witness(permission.region)
    rule = deciding(basis.policy(generation), example)
    yield f"  such as {request_text(example)}: {decided_by_text(rule, basis.origins)}"
    if topics is not None and permission.region.resource_type == ResourceType.TOPIC:
        yield f"  {len(topics.among(permission.region.names)):,} of {len(topics):,} topics"


# A question whether anybody may do something, and its proof.


@frozen(kw_only=True)
class Question:
    """Whether any of these principals may do what is asked, from a host or from any."""

    claim: Claim
    """That none may."""
    action: AskedFlags
    principals: Principals
    host: str | None

    def prove(self, source: SourceFlags, authorizer: AuthorizerFlags, output: Output, *, unnamed: bool = False) -> int:
        """Print whether the claim holds; return the exit code. `unnamed`: only principals that nothing names count.

        Raises:
            ConfigError: a malformed question.
            MetadataError, OSError: the source is damaged or cannot be read.

        """
        query, needs = self.action.query(self.principals, self.host), self.action.needs()
        names = source.topics()
        choice = source.choose(topics=names)
        image = choice.image()
        policies = policies_of(image, authorizer, self.action.requests())
        premises = read_premises(choice, authorizer.configs())
        topics = existing_topics(names, [image], [choice])
        allowed: dict[Generation, Iterable[Permission]] = {
            generation: (
                intent_permissions(policy, needs, principals=self.principals, host=query.host)
                if needs
                else permissions(policy, query)
            )
            for generation, policy in policies.items()
        }
        counterexamples = [
            (each, generation)
            for each, generation in tracked(merged(allowed, permission_key), "looking for who may", "permissions")
            if each.region.principals.complement or not unnamed
        ]
        basis = Basis(policies=policies, origins=choice.origins, premises=premises)
        return prove_none(self.claim, counterexamples, basis, topics=topics, output=output)
