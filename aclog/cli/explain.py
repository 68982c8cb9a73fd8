"""`aclog explain`, why a request is allowed or denied; and the decision that `aclog authorize` prints."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from attrs import evolve
from click.exceptions import Exit

from aclog.analysis.intents import Intent
from aclog.authorizer.acl import (
    NO_ORIGINS,
    Origins,
    ResourcePattern,
    StandardAclWithId,
    code_name,
    host_address,
    origin_text,
    place_object,
)
from aclog.authorizer.acls_image import AclsImage, Decision
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.settings import Generation, controllers_decide
from aclog.authorizer.standard import ALL_KNOWN, Premises, StandardAuthorizer, build_authorizer
from aclog.cli.flags.common import AuthorizerFlags, Output
from aclog.cli.flags.question import PANEL, AnswerFlags, Request, RequestFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group, Option
from aclog.metalog.errors import printable
from aclog.metalog.values import frozen
from aclog.ops.policies import EachGeneration, StatedSettings, each_generation, warn_of_super_users
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.snapshots.image import Image, StateSource
from aclog.terminal.columns import Column, Row
from aclog.terminal.output import say

if TYPE_CHECKING:
    from aclog.authorizer.explain import ExplainOptions, Explanation

# `authorize` imports this module for the decision, and so what explains one is imported where it is used.

# The decision on one request: of `authorize`, and what `explain` begins with.


ALLOWED, DENIED, BAD_INPUT = 0, 1, 2
"""Exit codes."""

DECISION_COLUMNS = (
    Column(key="decision"),
    Column(key="rule"),
    Column(key="principal", cut=True, spare=True),
    Column(key="host", cut=True, spare=True),
    Column(key="operation", spare=True),
    Column(key="resourceType", title="TYPE", spare=True),
    Column(key="resourceName", title="NAME", cut=True, spare=True),
    Column(key="file", cut=True),
    Column(key="line"),
)
"""Of a single request."""

canonical_host = lru_cache(1 << 16)(host_address)
"""The host of a request in Kafka's form. Raises ConfigError: it is no IP address."""


def authorizer_of(image: Image, stated: StatedSettings) -> StandardAuthorizer:
    """Return an authorizer on this state, without a decision cache; a Kafka that no flag names is one up to 4.3.

    Raises:
        ConfigError: a super user without a colon.

    """
    warn_of_super_users(stated)
    return build_authorizer(
        image.acls,
        super_users=stated.super_users or "",
        allow_everyone=bool(stated.allow_everyone),
        documented=stated.documented,
        cidr=stated.generation is Generation.V4_4,
        cache=False,
    )


@frozen(kw_only=True)
class Decided:
    """A decision; of a request for all names that begin so, with the name whose rule it is."""

    decision: Decision
    example: str | None = None


def print_decision(
    decided: Mapping[Generation, Decided],
    request: Request,
    output: Output,
    acls: AclsImage,
    *,
    origins: Origins = NO_ORIGINS,
    premises: Premises = ALL_KNOWN,
) -> int:
    """Print a decision and its rule, and as text in a second line where this stands; return the exit code.

    If several generations of Kafka may decide and they decide by different rules, the strictest decision comes first.
    `premises`: what is unknown of the settings; those that could turn the decision are part of the answer.
    """
    generation, decision = strictest({of: each.decision for of, each in decided.items()})
    others = {other: each for other, each in decided.items() if each.decision.text != decision.text}
    example = decided[generation].example
    bearing = premises.bearing_on(allowed=bool(decision), has_candidate=acls.covers(_pattern(request)))
    if output.is_rows:
        row = {**_decision_object(decision, request, origins), **_set_object(request, example), **bearing.key()}
        if others:
            more = [_other_object(other, each.decision) for other, each in others.items()]
            row = {**row, "generation": generation.value, "otherGenerations": more}
        output.print_answer(row, DECISION_COLUMNS, [row])
    else:
        answer = decision.result.value
        text = f"{bearing.decided(answer)}: {decision.text}" if bearing else f"{answer} {decision.text}"
        if others:
            from aclog.analysis.policy import only_on

            text += only_on(generation)
        say(text)
        _say_more(decided[generation], origins)
        for other, each in others.items():
            say(f"{other}: {each.decision.result.value} {each.decision.text}")
            _say_more(each, origins)
    return ALLOWED if decision.result is AuthorizationResult.ALLOWED else DENIED


def strictest(decisions: Mapping[Generation, Decision]) -> tuple[Generation, Decision]:
    """Return the first decision that denies, else the first one, and its generation."""
    denied = (each for each in decisions.items() if each[1].result is not AuthorizationResult.ALLOWED)
    return next(denied, next(iter(decisions.items())))


def _say_more(decided: Decided, origins: Origins) -> None:
    if decided.example is not None:
        say(printable(f"  for all names with this prefix; the rule is that of {decided.example!r}"))
    if decided.decision.rule is not None:
        for place in origins.of(decided.decision.rule.acl):
            say(f"  at {printable(origin_text(place))}")


def _other_object(generation: Generation, decision: Decision) -> dict[str, str]:
    return {"generation": generation.value, "decision": decision.result.value, "rule": decision.text}


def _decision_object(decision: Decision, request: Request, origins: Origins) -> Row:
    return {
        "decision": decision.result.value,
        "rule": decision.text,
        "principal": request.principal,
        "host": request.host,
        "operation": code_name(AclOperation, request.operation),
        "resourceType": code_name(ResourceType, request.resource_type),
        "resourceName": request.name,
        **(place_object(decision.rule.acl, origins) if decision.rule is not None else {}),
    }


def _set_object(request: Request, example: str | None) -> Row:
    return {} if example is None else {"patternType": code_name(PatternType, request.pattern_type), "example": example}


def decide(authorizer: StandardAuthorizer, request: Request) -> Decision:
    """Return the decision on a request for a named resource.

    Raises:
        ConfigError: the host is not an IP address.
        InvalidRequestError: a request for which Kafka's authorizer throws.

    """
    return authorizer.decide(*asked_of(request))


def asked_of(request: Request) -> tuple[RequestContext, Action]:
    """Return the context and the action of a request. Raises ConfigError: the host is not an IP address."""
    context = RequestContext(principal=request.principal, host=canonical_host(request.host))
    return context, Action(operation=request.operation, resource_pattern=_pattern(request))


def _pattern(request: Request) -> ResourcePattern:
    return ResourcePattern(
        resource_type=request.resource_type, name=request.name or "", pattern_type=request.pattern_type
    )


app = Group()


@app.command()
def explain(
    source: SourceFlags,
    request: RequestFlags,
    authorizer: AuthorizerFlags,
    output: AnswerFlags,
    intent: Annotated[
        Intent | None,
        Option(
            "--intent",
            metavar="INTENT",
            help="Instead of --operation: every request of a client that has to [cyan]produce[/], [cyan]consume[/], "
            "[cyan]transact[/], [cyan]stream[/] or [cyan]admin[/].",
            rich_help_panel=PANEL,
        ),
    ] = None,
    origins: Annotated[
        bool,
        Option(
            "--origins",
            metavar="",
            help="With a log: read it for the [cyan]offset[/] and the time at which each ACL was added.",
        ),
    ] = False,
) -> None:
    """Show every ACL that takes part in a decision, the determining one, and what would reverse the decision.

    The exit code is 0 if the request is ALLOWED, and 1 if it is DENIED.

    'pii-*' means all names that begin with pii-. If they are not all decided
    alike, the command prints an example of each decision, and fails.

    [bold]Examples[/]

      aclog explain --log DIR --principal User:bob --operation WRITE --topic pay
      aclog explain --log DIR --principal User:bob --operation READ --topic t --format json
      aclog explain --log DIR --principal User:bob --operation READ --topic t --origins
      aclog explain --log DIR --principal User:bob --operation READ --topic 'pii-*'
      aclog explain --log DIR --principal User:bob --intent consume --topic t --group g
    """
    from aclog.authorizer.explain import ExplainOptions
    from aclog.ops.near import spelled_otherwise
    from aclog.ops.policies import read_premises
    from aclog.snapshots.moments import moment_text
    from aclog.terminal.output import note

    how = output.choose()
    requests = (request.request(instead="--intent"),) if intent is None else request.requests(intent)
    choice = source.choose()
    options = ExplainOptions(
        allow_everyone=authorizer.allow_everyone,
        host_given=requests[0].host_given,
        as_of=None if choice.moment is None else moment_text(choice.moment),
        place=choice.source.change_place,
    )
    image = choice.image()
    each = each_generation(image, authorizer, [(one.resource_type, one.operation) for one in requests])
    options = evolve(options, origins=choice.origins, premises=read_premises(choice, authorizer.configs()))
    explained = [_explained(image, _stated_for(one, each), one, options) for one in requests]
    _warn_of_ranges(image.acls.with_options(documented=authorizer.documented, cidr=False), explained, options.origins)
    if origins:
        explained = _with_log_origins(explained, choice.source, image)
    each.warn()
    allowed = all(one.first.allowed for one in explained)
    if not allowed:
        for text in spelled_otherwise([requests[0].principal], image.acls):
            note(text)
    if intent is None:
        _print_one(explained[0], how, in_log=origins)
    else:
        _print_all(explained, intent, how, in_log=origins)
    if not allowed:
        raise Exit(DENIED)


@frozen(kw_only=True)
class _Explained:
    """The explanation of a decision by the generation of Kafka that denies, if one does, and those by others."""

    generation: Generation
    first: "Explanation"
    others: Mapping[Generation, "Explanation"]

    @property
    def all(self) -> Mapping[Generation, "Explanation"]:
        """The explanations by generation."""
        return {self.generation: self.first, **self.others}

    def to_dict(self) -> Row:
        """Return it for JSON."""
        answer = self.first.to_dict()
        if self.others:
            answer["generation"] = self.generation.value
            answer["otherGenerations"] = {of.value: other.to_dict() for of, other in self.others.items()}
        return answer

    def lines(self) -> Iterator[str]:
        """Yield it as text."""
        from aclog.authorizer.explain import explanation_lines

        if self.others:
            yield f"On {self.generation}:"
        yield from explanation_lines(self.first)
        for of, other in self.others.items():
            yield f"\nOn {of}:"
            yield from explanation_lines(other)


def _stated_for(request: Request, each: EachGeneration) -> Mapping[Generation, StatedSettings]:
    """Return what is stated, for each generation that may decide this one of several requests."""
    if controllers_decide(request.resource_type, request.operation):
        return each.stated
    return {generation: own for generation, own in each.stated.items() if generation in each.of_brokers}


def _explained(
    image: Image, stated: Mapping[Generation, StatedSettings], request: Request, options: "ExplainOptions"
) -> _Explained:
    if request.pattern_type == PatternType.LITERAL:
        explanations = {of: explain_one(image, own, request, options) for of, own in stated.items()}
    else:
        from aclog.analysis.timeline import explained
        from aclog.ops.policies import policy_of

        asked = asked_of(request)
        explanations = {of: explained(policy_of(image, own), *asked, options) for of, own in stated.items()}
    generation, _ = strictest({of: explanation.decision for of, explanation in explanations.items()})
    first = explanations.pop(generation)
    return _Explained(generation=generation, first=first, others=explanations)


def _warn_of_ranges(acls: AclsImage, explained: Sequence[_Explained], origins: Origins) -> None:
    """Warn once of the ACLs with a CIDR range as host that a Kafka up to 4.3 compares with a host of the requests."""
    from aclog.cli.images import RangeWatch

    rules: dict[StandardAclWithId, None] = {}
    for one in explained:
        older = next((each for of, each in one.all.items() if of is not Generation.V4_4), None)
        if older is None:
            continue
        pattern = older.action.resource_pattern
        if pattern.pattern_type == PatternType.LITERAL:
            rules.update(dict.fromkeys(acls.candidates(pattern.resource_type, pattern.name)))
        else:
            rules.update(dict.fromkeys(each.rule for each in older.rules))
    watch = RangeWatch(origins)
    watch.watch_all(rules, _OLDER)
    watch.report()


def _with_log_origins(explained: list[_Explained], source: StateSource, image: Image) -> list[_Explained]:
    """Return the explanations with the locations of their ACLs in the log; the same if their source has no log.

    Raises:
        MetadataError: the log is damaged, or no checkpoint reaches its start.

    """
    if source.log is None:
        return explained
    from aclog.sources.logs import past_of  # reads the whole log, which only this needs

    rules = [each.rule for one in explained for explanation in one.all.values() for each in explanation.rules]
    past = past_of(source, image.end_offset, {rule.id: rule.acl for rule in rules if rule.id is not None})

    def placed(explanation: "Explanation") -> "Explanation":
        return evolve(explanation, options=evolve(explanation.options, origins=past))

    return [
        evolve(one, first=placed(one.first), others={of: placed(other) for of, other in one.others.items()})
        for one in explained
    ]


def _print_one(explained: _Explained, how: Output, *, in_log: bool) -> None:
    if how.is_rows:
        how.print_answer(explained.to_dict(), examined_columns(in_log=in_log), examined_rows(explained.first))
        return
    for line in explained.lines():
        say(line)


def _print_all(explained: Sequence[_Explained], intent: Intent, how: Output, *, in_log: bool) -> None:
    """Print the explanations of all requests of an intent, and first how many of them are denied."""
    context, denied = explained[0].first.context, sum(not one.first.allowed for one in explained)
    decision = AuthorizationResult.DENIED if denied else AuthorizationResult.ALLOWED
    if how.is_rows:
        answer = {
            "decision": decision.value,
            "intent": intent.value,
            "principal": context.principal,
            "host": context.host,
            "requests": [one.to_dict() for one in explained],
        }
        how.print_answer(
            answer,
            (*_REQUEST_COLUMNS, *examined_columns(in_log=in_log)),
            (row for one in explained for row in _request_rows(one.first)),
        )
        return
    of = f"{denied} of the {len(explained)}" if 0 < denied < len(explained) else f"all {len(explained)}"
    say(printable(f"{decision.value}: {context.principal} {intent}: {of} requests are {decision.value.lower()}"))
    for one in explained:
        say("")
        for line in one.lines():
            say(line)


# The explanation of one decision, for `explain`.


_REQUEST_COLUMNS = (Column(key="request", cut=True), Column(key="decision"))
"""Of an ACL among those of several requests."""
_OLDER = DecidingKafka(generations=(Generation.V4_3,), stated=Generation.V4_3)
_LOG_COLUMNS = (Column(key="offset"), Column(key="timestamp", spare=True))


def examined_columns(*, in_log: bool = False) -> tuple[Column, ...]:
    """Return the columns of the ACLs of an explanation; `in_log`: also where in a log each was added."""
    from aclog.cli.images import ORIGIN_COLUMNS, RULE_COLUMNS

    placed = (*ORIGIN_COLUMNS, *_LOG_COLUMNS) if in_log else ORIGIN_COLUMNS
    return (Column(key="role"), *RULE_COLUMNS, *placed, Column(key="notes", spare=True, text="; ".join))


def examined_rows(explanation: "Explanation") -> Iterator[Row]:
    """Yield the ACLs that took part, the most important first."""
    for each in explanation.to_dict()["rules"]:
        yield {"role": each["role"], **each["rule"], "notes": each["notes"]}


def _request_rows(explanation: "Explanation") -> Iterator[Row]:
    """Yield the ACLs with the request that they took part in; a request without any has one row."""
    from aclog.authorizer.explain import action_text

    request = {"request": action_text(explanation), "decision": explanation.decision.result.value}
    for row in tuple(examined_rows(explanation)) or ({"notes": ()},):
        yield {**request, **row}


def explain_one(image: Image, stated: StatedSettings, request: Request, options: "ExplainOptions") -> "Explanation":
    """Return the explanation of a decision.

    Raises:
        ConfigError, InvalidRequestError: as aclog.cli.explain.decide.

    """
    from aclog.authorizer.explain import explain as explain_decision

    context, action = asked_of(request)
    decision = authorizer_of(image, stated).decide(context, action)
    acls = image.acls.with_options(documented=stated.documented, cidr=stated.generation is Generation.V4_4)
    return explain_decision(acls, decision, context, action, options=options)
