"""`aclog check`: proofs about states, over all principals, hosts and names."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Annotated

from attrs import evolve
from click.exceptions import Exit

from aclog.analysis.comparison import rows_of_each
from aclog.analysis.policy import only_on
from aclog.analysis.regions import EVERYONE, Direction, JsonObject, Literal, witness
from aclog.analysis.rows.report import decided_by_text, example_text, row_lines
from aclog.analysis.who_can import SUPER_USER, Permission, access_text, all_of, reason_lines
from aclog.authorizer.codes import WILDCARD_PRINCIPAL, ResourceType
from aclog.authorizer.settings import Generation
from aclog.cli.answers import PERMISSION_COLUMNS, difference_columns, with_generation
from aclog.cli.diff_report import SideFlags
from aclog.cli.flags.common import AuthorizerFlags, Output
from aclog.cli.flags.many_requests import (
    AskedFlags,
    AskedResourceFlags,
    SecondSettingsFlags,
    SecondStateFlags,
    SubjectFlags,
)
from aclog.cli.flags.plans import FailOnUnread
from aclog.cli.flags.question import AnswerFlags, asked_principals
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group, Option
from aclog.metalog.errors import plural, printable
from aclog.metalog.values import frozen
from aclog.ops.check import (
    EQUAL,
    Asked,
    Claim,
    ComparisonProof,
    PermissionProof,
    Question,
    Verdict,
    no_new_access,
    prove_comparison,
    prove_none,
    question_of,
)
from aclog.ops.policies import SUPER_USERS_UNKNOWN, lacks_super_users
from aclog.ops.tables import rule_text
from aclog.sources.choice import ChosenSource
from aclog.terminal.columns import Column, OutputFormat
from aclog.terminal.output import note, say
from aclog.terminal.tables import print_rows

# The exit code of a proof.


PROVED, NOT_PROVED = 0, 1
"""Exit codes: what an unknown premise could turn is no proof."""


@frozen(kw_only=True)
class ProofExitFlags:
    """What makes the exit code 1 besides a claim that is not proved."""

    fail_on: Annotated[
        FailOnUnread | None,
        Option("--fail-on", help="Exit with 1 while content is [cyan]unread[/], regardless of the claim."),
    ] = None

    def of(self, verdict: Verdict, sources: Iterable[ChosenSource]) -> int:
        """Return the exit code of a verdict on the state of some sources, which have been read."""
        is_whole = self.fail_on is None or not any(each.unread for each in sources)
        return PROVED if verdict.is_proved and is_whole else NOT_PROVED


# `aclog check`: proofs about states, over all principals, hosts and names; nothing is sampled.


app = Group(
    name="check",
    help="Prove a statement about one state or two, or refute it with a counterexample: exit code 0 if proved, 1 if "
    "refuted or "
    "unknown (settings that a running cluster does not show could refute it).",
    no_args_is_help=True,
)


@app.command("no-new-access")
def check_no_new_access(
    source: SourceFlags,
    target: SecondStateFlags,
    authorizer: AuthorizerFlags,
    settings: SecondSettingsFlags,
    output: AnswerFlags,
    exit_code: ProofExitFlags,
    resources: AskedResourceFlags,
) -> None:
    """Prove that a second state allows no request that the first one denies, on all resources or on the named ones.

    [bold]Examples[/]

      aclog check no-new-access --log DIR --change change.jsonl
      aclog check no-new-access main:kafka kafka --topic 'payments.*' --cluster
    """
    flags = SideFlags(source=source, authorizer=authorizer, target=target, settings=settings)
    claim = no_new_access(resources.resources())
    raise Exit(print_comparison(claim, flags, output.choose(), exit_code, direction=Direction.GAINED))


@app.command()
def equal(
    source: SourceFlags,
    target: SecondStateFlags,
    authorizer: AuthorizerFlags,
    settings: SecondSettingsFlags,
    output: AnswerFlags,
    exit_code: ProofExitFlags,
) -> None:
    """Prove that two states decide every request the same, regardless of how their ACLs are written.

    [bold]Example[/]

      aclog check equal --acls tidied.jsonl --to-bootstrap-server HOST:9092
    """
    flags = SideFlags(source=source, authorizer=authorizer, target=target, settings=settings)
    raise Exit(print_comparison(EQUAL, flags, output.choose(), exit_code, direction=None))


@app.command("not-granted")
def not_granted(
    source: SourceFlags,
    action: AskedFlags,
    subjects: SubjectFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    exit_code: ProofExitFlags,
) -> None:
    """Prove that no principal, or none of these, is allowed an operation on any of the resources.

    With an intent: that none of them has all its permissions. 'pii-*' means every
    name that begins with pii-.

    [bold]Examples[/]

      aclog check not-granted --log DIR --operation READ --topic 'pii-*'
      aclog check not-granted --log DIR --principal User:bob --intent produce --topic payments
    """
    action.check()
    question = _question("not-granted", action, subjects)
    raise Exit(print_question(question, source, authorizer, output.choose(), exit_code))


@app.command()
def only(
    source: SourceFlags,
    action: AskedFlags,
    subjects: SubjectFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    exit_code: ProofExitFlags,
) -> None:
    """Prove that only these principals are allowed an operation on any of the resources, or hold an intent.

    [bold]Example[/]

      aclog check only --log DIR --operation WRITE --topic audit --principal User:auditor
    """
    action.check()
    question = _question("only", action, subjects)
    raise Exit(print_question(question, source, authorizer, output.choose(), exit_code))


@app.command("no-public")
def no_public(
    source: SourceFlags,
    action: AskedFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    exit_code: ProofExitFlags,
) -> None:
    """Prove that a principal that no rule names is allowed nothing, or none of the requests that the flags describe.

    [bold]Examples[/]

      aclog check no-public --log DIR
      aclog check no-public --log DIR --operation DESCRIBE --topic '*'
    """
    action.check_one()
    question = _question("no-public", action, SubjectFlags())
    raise Exit(print_question(question, source, authorizer, output.choose(), exit_code))


def _question(check: str, action: AskedFlags, subjects: SubjectFlags) -> Question:
    asked = Asked(operation=action.operation, intent=action.intent, resources=action.resources())
    return question_of(
        check,
        action.query(EVERYONE, subjects.host),
        asked,
        principals=asked_principals(subjects.principal),
        requests=action.requests(),
    )


# Prints what was to be proved, and what refutes it.


REFUTATION_COLUMNS = (
    *PERMISSION_COLUMNS,
    Column(key="rule", title="DECIDED BY", cut=True, spare=True, text=rule_text),
    Column(key="topics", spare=True),
)
"""Of the refutations of a question."""

_MAX_PARTS = 20
"""Refuting rows or regions as text; the JSON lines have all."""


def print_comparison(
    claim: Claim, flags: SideFlags, output: Output, exit_code: ProofExitFlags, *, direction: Direction | None
) -> int:
    """Prove that two policies do not differ in a direction, or at all; print it, and return the exit code.

    Raises:
        ConfigError: flags that do not go together, or malformed input.
        MetadataError, OSError: a source is damaged or cannot be read.

    """
    flags.check({})
    states = flags.states()
    proof = prove_comparison(claim, states, direction=direction)
    if output.is_rows:
        _print_rows(proof, difference_columns(proof.compared), output)
    else:
        _say(proof.claim, proof.verdict, [list(row_lines(row)) for row in rows_of_each(proof.compared)])
    return exit_code.of(proof.verdict, [each for each in (states.first, states.second) if each is not None])


def print_question(
    question: Question, source: SourceFlags, authorizer: AuthorizerFlags, output: Output, exit_code: ProofExitFlags
) -> int:
    """Prove the claim of a question; print the proof, and return the exit code. Raises as prove_none."""
    names = source.topics()
    choice = source.choose(topics=names)
    proof = prove_none(question, choice, authorizer, topics=names)
    if output.is_rows:
        _print_rows(proof, with_generation(REFUTATION_COLUMNS, proof.policies), output)
    else:
        _say(
            proof.claim,
            proof.verdict,
            [list(_lines(proof, *each)) for each in islice(proof.counterexamples, _MAX_PARTS)],
            count=len(proof.counterexamples),
        )
        if proof.verdict.is_proved and lacks_super_users(choice, authorizer):
            note(SUPER_USERS_UNKNOWN)
    return exit_code.of(proof.verdict, [choice])


def _print_rows(proof: ComparisonProof | PermissionProof, columns: Sequence[Column], output: Output) -> None:
    """Print the verdict, in JSON as the first object, in a table as its title; csv and Markdown have the rows alone."""
    rows: Iterable[JsonObject] = proof.refutations()
    if output.form is OutputFormat.TABLE:
        say(printable(proof.verdict.sentence(proof.claim)))
    elif output.form in (OutputFormat.JSON, OutputFormat.JSONL) and not output.columns:
        rows = chain([proof.head()], rows)
    print_rows(columns, rows, output.form, keys=output.columns)


def _say(claim: Claim, verdict: Verdict, parts: Sequence[Sequence[str]], *, count: int | None = None) -> None:
    say(printable(verdict.sentence(claim)))
    for line in (line for part in parts[:_MAX_PARTS] for line in part):
        say(printable(line))
    remaining = (len(parts) if count is None else count) - _MAX_PARTS
    if remaining > 0:
        say(printable(f"and {remaining:,} more: --format jsonl has all"))


def _lines(proof: PermissionProof, permission: Permission, generation: Generation | None) -> Iterator[str]:
    # The exceptions of the region have other permissions of their own; the claim is about the rest alone.
    who = all_of(permission.region.principals)
    if proof.claim.check == "no-public":
        who = "principals not named in any rule"
        general = tuple(rule for rule in permission.denies if rule.principal == WILDCARD_PRINCIPAL)
        permission = evolve(permission, denies=general)
    yield f"{who}: {access_text(permission)}{only_on(generation)}"
    yield from (f"  {line}" for line in reason_lines(permission, proof.origins))
    rule, topics = proof.deciding(permission, generation), proof.topics
    request = witness(permission.region)
    own = (Literal(name=request.resource_name),)
    is_made_up = own[0] not in permission.region.names and not (
        topics is not None and request.resource_type == ResourceType.TOPIC and topics.among(own)
    )
    example = example_text(request, permission.region.principals, is_made_up=is_made_up)
    is_known = permission.rules == (rule,) and rule != SUPER_USER  # the line `granted by` has it
    yield f"  for example {example}{'' if is_known else f'; decided by {decided_by_text(rule, proof.origins)}'}"
    if topics is not None and permission.region.resource_type == ResourceType.TOPIC:
        yield f"  covers {len(topics.among(permission.region.names)):,} of {plural(len(topics), 'existing topic')}"
