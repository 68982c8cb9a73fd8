"""`aclog explain`: why a request is allowed or denied."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated

from attrs import define, evolve, frozen
from click.exceptions import Exit

from aclog.analysis.intents import Intent
from aclog.analysis.policy import only_on
from aclog.authorizer.acl import (
    NO_ORIGINS,
    Origins,
    ResourcePattern,
    code_name,
    enum_field,
    host_address,
    origin_text,
    place_object,
)
from aclog.authorizer.acls_image import PROBE, AclsImage, Decision
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.explain import ExplainOptions, Explanation, action_text
from aclog.authorizer.explain import explain as explain_decision
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.settings import Generation, controllers_decide
from aclog.authorizer.standard import ALL_KNOWN, Premises, StandardAuthorizer, build_authorizer
from aclog.cli.flags.common import AuthorizerFlags, Output, SourceFlags
from aclog.cli.flags.question import PANEL, AnswerFlags, Request, RequestFlags
from aclog.cli.images import ORIGIN_COLUMNS, RULE_COLUMNS, RangeWatch
from aclog.cli.options import Group, Option
from aclog.metalog.errors import ConfigError, MetadataError, printable
from aclog.metalog.json_object import json_string, parse_object, text_field
from aclog.ops.policies import StatedSettings, each_generation, warn_of_super_users
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.snapshots.image import Image, StateSource
from aclog.snapshots.image_file import check_mapping
from aclog.sources.acl_lines import blocks, display_name
from aclog.terminal.columns import Column, OutputFormat, Row, json_text
from aclog.terminal.notices import BYTES, progress
from aclog.terminal.output import complain, say

# Decisions on one request, or on a file of requests.


ALLOWED, DENIED, BAD_INPUT = 0, 1, 2
"""Exit codes."""

ANSWER_COLUMNS = (Column(key="decision"), Column(key="rule", cut=True), Column(key="error", flows=True))
"""Of a line of `--requests`."""
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

_BY_RESOURCE_TYPE = "byResourceType"
_CACHE_LIMIT = 1 << 18
"""Cached lines, at about 400 bytes each; the cache is cleared when it is full."""

_ALLOWED = AuthorizationResult.ALLOWED

_canonical = lru_cache(1 << 16)(host_address)


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
        say(f"{text}{only_on(generation) if others else ''}")
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
    context = RequestContext(principal=request.principal, host=_canonical(request.host))
    return context, Action(operation=request.operation, resource_pattern=_pattern(request))


def _pattern(request: Request) -> ResourcePattern:
    return ResourcePattern(
        resource_type=request.resource_type, name=request.name or "", pattern_type=request.pattern_type
    )


def decide_requests(
    image: Image,
    flags: AuthorizerFlags,
    path: str,
    output: Output,
    *,
    answered: Callable[[], None],
    premises: Premises = ALL_KNOWN,
) -> int:
    """Print one line for each line of a file; return the exit code. `answered` is called after each block of lines.

    Without another format these are JSON lines.

    Raises:
        ConfigError: a super user without a colon, a damaged gzip file, or a line of more than 4 MiB.
        OSError: the file cannot be read.
        LogError: the image file that the state is mapped from was overwritten meanwhile.

    """
    each = each_generation(image, flags)
    each.warn()
    authorizers = {generation: authorizer_of(image, own) for generation, own in each.stated.items()}
    acls = image.acls.with_options(documented=flags.documented, cidr=image.acls.cidr)
    decider = LineDecider(authorizers, acls, premises, brokers=each.of_brokers)
    counted = _Counted(path)
    if output.is_rows and (output.columns or output.form is not OutputFormat.JSONL):
        output.print_rows(ANSWER_COLUMNS, _answers(decider, counted, answered))
    else:
        for lines in counted.blocks():
            sys.stdout.buffer.write(b"\n".join(decider.decide_lines(lines)) + b"\n")
            sys.stdout.buffer.flush()  # a program at the other end of the pipe may wait for these
            answered()
    if decider.failed:
        failed = f"{decider.failed:,} of {counted.lines:,} requests could not be decided"
        complain(f"{display_name(path)}: {failed}: each has a line with ERROR in the output")
    return BAD_INPUT if decider.failed else ALLOWED


@define
class _Counted:
    """The lines of a file of requests, in blocks, and how many there were."""

    path: str
    lines: int = 0

    def blocks(self) -> Iterator[Sequence[bytes]]:
        """Yield blocks of lines. Raises as decide_requests."""
        with progress("deciding requests", BYTES, streams=True) as advance:
            for block in blocks(self.path, advance):
                self.lines += len(block)
                if block:
                    yield block


def _answers(decider: "LineDecider", counted: _Counted, answered: Callable[[], None]) -> Iterator[Row]:
    for lines in counted.blocks():
        yield from map(json.loads, decider.decide_lines(lines))
        answered()


class LineDecider:
    """Decides requests in lines of JSON on one state; a repeated line costs a dict lookup.

    `failed` is the number of lines that were malformed.
    """

    def __init__(
        self,
        authorizers: Mapping[Generation, StandardAuthorizer],
        acls: AclsImage,
        premises: Premises = ALL_KNOWN,
        *,
        brokers: Sequence[Generation] | None = None,
    ) -> None:
        """Take an authorizer for each generation that may decide, and the ACLs that they decide on.

        They do not change, as their decisions are cached. `premises`: what is unknown of their settings. `brokers`: the
        generations that may decide what no controller decides; None: all.
        """
        self.failed = 0
        self._acls = acls
        self._premises = premises
        self._authorizers = authorizers
        self._of_brokers = {each: own for each, own in authorizers.items() if brokers is None or each in brokers}
        self._cache: dict[bytes, bytes] = {}
        self._malformed: set[bytes] = set()
        """The outputs in the cache that are errors."""

    def decide_lines(self, lines: Sequence[bytes]) -> list[bytes]:
        """Return the output for each line, without line ends.

        Raises:
            LogError: the image file that the ACLs are mapped from was overwritten.

        """
        cache = self._cache
        outputs = [cache.get(line) or self._add(line) for line in lines]
        check_mapping(self._acls)  # reading all lines may take days
        if self._malformed:
            self.failed += sum(output in self._malformed for output in outputs)
        return outputs

    def _add(self, line: bytes) -> bytes:
        if len(self._cache) >= _CACHE_LIMIT:
            self._cache.clear()
            self._malformed.clear()
        text, is_good = self._output(line)
        output = self._cache[line] = text.encode(errors="backslashreplace")
        if not is_good:
            self._malformed.add(output)
        return output

    def _output(self, line: bytes) -> tuple[str, bool]:
        """Return the output for a line, and whether that is a decision."""
        try:
            request = parse_request(line)
            by_controllers = controllers_decide(request.resource_type, request.operation)
            authorizers = self._authorizers if by_controllers else self._of_brokers
            answers = {each: _decide(own, request) for each, own in authorizers.items()}
        except MetadataError as error:
            return f'{{"decision":"ERROR","error":{json_string(str(error))}}}', False
        denied = (each for each in answers.values() if each[0] is not _ALLOWED)
        result, rule = next(denied, next(iter(answers.values())))
        decision = "ALLOWED" if result is _ALLOWED else "DENIED"
        more = self._unknown(request, result)
        if len({each for each, _ in answers.values()}) > 1:
            allowing = [each.value for each, (own, _) in answers.items() if own is _ALLOWED]
            more = f',"allowedOnlyOn":{json.dumps(allowing)}{more}'
        return f'{{"decision":"{decision}","rule":{json_string(rule)}{more}}}', True

    def _unknown(self, request: Request, result: AuthorizationResult) -> str:
        """Return the key with the names of what could turn a decision; empty if nothing could."""
        if not self._premises:
            return ""
        name = PROBE if request.name is None else request.name
        bearing = self._premises.bearing_on(
            allowed=result is _ALLOWED, has_candidate=self._acls.has_candidate(request.resource_type, name)
        )
        return f',"premises":{json_text(bearing.names)}' if bearing else ""


def _decide(authorizer: StandardAuthorizer, request: Request) -> tuple[AuthorizationResult, str]:
    if request.name is not None:
        decision = decide(authorizer, request)
        return decision.result, decision.text
    context = RequestContext(principal=request.principal, host=_canonical(request.host))
    result = authorizer.authorize_by_resource_type(context, request.operation, request.resource_type)
    # authorizeByResourceType returns no rule. What is shown is the decision on the name that Kafka tries first.
    probe = ResourcePattern(resource_type=request.resource_type, name=PROBE)
    action = Action(operation=request.operation, resource_pattern=probe)
    return result, f"{PROBE}:{authorizer.decide(context, action).text}"


def parse_request(line: bytes) -> Request:
    """Return the request in one line of JSON.

    Raises:
        ConfigError: it is not JSON, a key is missing, or an enum name is unknown.

    """
    value = parse_object(line)
    kind = value.get("kind")
    if kind not in {None, _BY_RESOURCE_TYPE}:
        raise ConfigError(f"kind must be {_BY_RESOURCE_TYPE} or absent, not {json.dumps(kind)[:40]}")
    return Request(
        principal=text_field(value, "principal"),
        operation=enum_field(value, "operation", AclOperation),
        host=text_field(value, "host"),
        resource_type=enum_field(value, "resourceType", ResourceType),
        name=None if kind else text_field(value, "resourceName"),
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
    explained = [_explained(image, each.stated, one, options) for one in requests]
    if origins:
        explained = [one.with_log_origins(choice.source, image) for one in explained]
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
    first: Explanation
    others: Mapping[Generation, Explanation]

    def with_log_origins(self, source: StateSource, image: Image) -> "_Explained":
        """Return it with the locations of its ACLs in the log. Raises as `with_log_origins`."""
        others = {of: with_log_origins(other, source, image) for of, other in self.others.items()}
        return evolve(self, first=with_log_origins(self.first, source, image), others=others)

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


def _explained(
    image: Image, stated: Mapping[Generation, StatedSettings], request: Request, options: ExplainOptions
) -> _Explained:
    if request.pattern_type == PatternType.LITERAL:
        explanations = {of: explain_one(image, own, request, options) for of, own in stated.items()}
    else:
        from aclog.analysis.timeline import explained
        from aclog.ops.policies import policy_of

        asked = asked_of(request)
        explanations = {of: explained(policy_of(image, own), *asked, options) for of, own in stated.items()}
        for of, explanation in explanations.items():
            watch_ranges(explanation, stated[of])
    generation, _ = strictest({of: explanation.decision for of, explanation in explanations.items()})
    first = explanations.pop(generation)
    return _Explained(generation=generation, first=first, others=explanations)


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
    placed = (*ORIGIN_COLUMNS, *_LOG_COLUMNS) if in_log else ORIGIN_COLUMNS
    return (Column(key="role"), *RULE_COLUMNS, *placed, Column(key="notes", spare=True, text="; ".join))


def examined_rows(explanation: Explanation) -> Iterator[Row]:
    """Yield the ACLs that took part, the most important first."""
    for each in explanation.to_dict()["rules"]:
        yield {"role": each["role"], **each["rule"], "notes": each["notes"]}


def _request_rows(explanation: Explanation) -> Iterator[Row]:
    """Yield the ACLs with the request that they took part in; a request without any has one row."""
    request = {"request": action_text(explanation), "decision": explanation.decision.result.value}
    for row in tuple(examined_rows(explanation)) or ({"notes": ()},):
        yield {**request, **row}


def explain_one(image: Image, stated: StatedSettings, request: Request, options: ExplainOptions) -> Explanation:
    """Return the explanation of a decision; warn of ACLs with a CIDR range as host.

    Raises:
        ConfigError, InvalidRequestError: as aclog.cli.explain.decide.

    """
    context, action = asked_of(request)
    pattern = action.resource_pattern
    decision = authorizer_of(image, stated).decide(context, action)
    has_ranges = stated.generation is Generation.V4_4
    acls = image.acls.with_options(documented=stated.documented, cidr=has_ranges)
    if not has_ranges:
        watch = RangeWatch(options.origins)
        watch.watch_all(acls.candidates(pattern.resource_type, pattern.name), _OLDER)
        watch.report()
    return explain_decision(acls, decision, context, action, options=options)


def watch_ranges(explanation: Explanation, stated: StatedSettings) -> None:
    """Warn of ACLs with a CIDR range as host among those of an explanation."""
    if stated.generation is not Generation.V4_4:
        watch = RangeWatch(explanation.options.origins)
        watch.watch_all((each.rule for each in explanation.rules), _OLDER)
        watch.report()


def with_log_origins(explanation: Explanation, source: StateSource, image: Image) -> Explanation:
    """Return an explanation of `image` with the locations of its ACLs; the same if its source has no log.

    Raises:
        MetadataError: the log is damaged, or no checkpoint reaches its start.

    """
    if source.log is None:
        return explanation
    from aclog.sources.logs import past_of  # reads the whole log, which only this needs

    ids = {each.rule.id: each.rule.acl for each in explanation.rules if each.rule.id is not None}
    past = past_of(source, image.end_offset, ids)
    return evolve(explanation, options=evolve(explanation.options, origins=past))
