"""Decisions on one request, or on a file of them."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from attrs import define, frozen

from aclog.analysis.policy import only_on
from aclog.authorizer.acl import (
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
    code_name,
    enum_field,
    host_address,
)
from aclog.authorizer.acls_image import PROBE, AclsImage
from aclog.authorizer.audit import Decision
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.origin import NO_ORIGINS, Origins, origin_text, place_object
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.settings import Generation, controllers_decide
from aclog.authorizer.standard import StandardAuthorizer, build_authorizer
from aclog.cli.flags.common import AuthorizerFlags, Output
from aclog.cli.flags.question import Request
from aclog.metalog.errors import ConfigError, MetadataError, printable
from aclog.metalog.json_object import json_string, parse_object, text_field
from aclog.ops.policies import StatedSettings, each_generation, warn_of_super_users
from aclog.snapshots.image import Image
from aclog.snapshots.image_file import check_mapping
from aclog.sources.acl_lines import blocks, display_name
from aclog.terminal.columns import Column, OutputFormat, Row, json_text
from aclog.terminal.output import complain, say
from aclog.terminal.progress import BYTES, progress

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
        say(printable(f"  on all names that begin so; the rule is that of {decided.example!r}"))
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
    """Return who asks for what. Raises ConfigError: the host is not an IP address."""
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
        check_mapping(self._acls)  # the lines may go on for days
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
