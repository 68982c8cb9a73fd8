"""`aclog why`: the short answer on a request: the verdict, the rule, since when and by which change, and the fix."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from attrs import evolve
from click.exceptions import Exit

from aclog.analysis.intents import Intent, Need, needs_of, requests_of
from aclog.analysis.policy import Policy, only_on
from aclog.analysis.regions import Query, only, operations_of
from aclog.analysis.timeline import Event, IntentHeld, explained, question_of
from aclog.authorizer.acl import ResourcePattern, StandardAcl, acl_text, code_name, host_address, is_cidr
from aclog.authorizer.acls_image import Decision
from aclog.authorizer.codes import AclOperation, AclPermissionType, ResourceType
from aclog.authorizer.explain import (
    Change,
    ExaminedRule,
    ExplainOptions,
    Explanation,
    Remedy,
    Role,
    action_text,
    host_text,
    located_text,
    matching_one_host,
)
from aclog.authorizer.index.layout import rule_mask
from aclog.authorizer.interface import InvalidRequestError
from aclog.authorizer.settings import Generation, asked_pattern, is_set, pattern_text
from aclog.cli.answers import change_text, event_object, made_by_object, made_by_text
from aclog.cli.explain import ALLOWED, DENIED, asked_of
from aclog.cli.flags.common import OPERATIONS, AuthorizerFlags, completions, named, typed_text
from aclog.cli.flags.question import AnswerFlags, Request
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Argument, Group, Option
from aclog.metalog.errors import ConfigError, plural, printable
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import frozen
from aclog.ops.near import meant_principal, unknown_topics
from aclog.ops.policies import StatedSettings, each_generation, policy_of, read_premises, settings_of
from aclog.ops.why import Since, answer_since
from aclog.shell.commands import parse_resource
from aclog.snapshots.image import Image
from aclog.snapshots.moments import moment_text
from aclog.sources.choice import ChosenSource
from aclog.terminal.columns import Column
from aclog.terminal.output import colored, emit, note, note_each, optional_time_text, styled, time_text

# The request: a principal and a name, with an operation or an intent.


_PANEL = "Request"
_LOCALHOST = "127.0.0.1"
_ASSUMED = {
    ResourceType.TOPIC: AclOperation.READ,
    ResourceType.GROUP: AclOperation.READ,
    ResourceType.TRANSACTIONAL_ID: AclOperation.WRITE,
    ResourceType.DELEGATION_TOKEN: AclOperation.DESCRIBE,
}
"""The operation of a request that names none."""
_USER = "User:"


@frozen(kw_only=True)
class WhyFlags:
    """The principal and the name of a request, and what else it consists of."""

    principal: Annotated[
        str,
        Argument(
            metavar="PRINCIPAL",
            help="The principal, such as User:alice; without a type it is a User.",
            show_default=False,
        ),
    ]
    name: Annotated[
        str,
        Argument(
            metavar="NAME",
            help="A topic; or TYPE:NAME, such as group:billing, transactional-id:tx or user:User:bob; or cluster.",
            show_default=False,
        ),
    ]
    operation: Annotated[
        AclOperation | None,
        Option(
            "--operation",
            parser=named(OPERATIONS),
            autocompletion=completions(OPERATIONS),
            metavar="NAME",
            help="The operation. [dim]Default: READ on topics and groups, WRITE on transactional ids[/]",
            rich_help_panel=_PANEL,
        ),
    ] = None
    consume: Annotated[
        bool,
        Option("--consume", metavar="", help="All that a consumer of the topic needs.", rich_help_panel=_PANEL),
    ] = False
    produce: Annotated[
        bool,
        Option("--produce", metavar="", help="All that a producer to the topic needs.", rich_help_panel=_PANEL),
    ] = False
    group: Annotated[
        str | None,
        Option(
            "--group",
            metavar="NAME",
            help="With --consume: the group. [dim]Default: any group on which it may READ[/]",
            rich_help_panel=_PANEL,
        ),
    ] = None
    host: Annotated[
        str | None,
        Option(
            "--host", metavar="ADDRESS", help="The client's address. [dim]Default: 127.0.0.1[/]", rich_help_panel=_PANEL
        ),
    ] = None

    def question(self) -> "Question":
        """Return the question, without its principal.

        Raises:
            ConfigError: flags that do not go together, a name that is not one, or no operation where none is assumed.

        """
        flags = [flag for flag, on in (("--consume", self.consume), ("--produce", self.produce)) if on]
        flags += ["--operation"] if self.operation is not None else []
        if len(flags) > 1:
            raise ConfigError(f"{' and '.join(flags)}: expected one of them")
        if self.group is not None and not self.consume:
            raise ConfigError("--group: expected --consume beside it, or group:NAME as NAME")
        name = typed_text(self.name)
        kind, colon, _ = name.partition(":")
        is_typed = bool(colon) or kind.lower() == "cluster"
        resource = parse_resource(name) if is_typed else asked_pattern(ResourceType.TOPIC, name)
        if not resource.name:
            raise ConfigError(f"NAME {self.name!r} is empty: expected a topic, or TYPE:NAME")
        host, host_given = host_address(_LOCALHOST if self.host is None else self.host), self.host is not None
        if not self.consume and not self.produce:
            operation = self.operation or _ASSUMED.get(ResourceType(resource.resource_type))
            if operation is None:
                kind = code_name(ResourceType, resource.resource_type)
                raise ConfigError(f"{name}: no operation is assumed on {kind}: expected --operation NAME")
            return Question(resources=(resource,), operation=operation, host=host, host_given=host_given)
        intent = Intent.CONSUME if self.consume else Intent.PRODUCE
        if resource.resource_type != ResourceType.TOPIC:
            raise ConfigError(f"{name}: with --{intent}, expected a topic")
        resources = [resource]
        if self.group is not None:
            resources.append(asked_pattern(ResourceType.GROUP, typed_text(self.group)))
        if prefix := next((each for each in resources if is_set(each)), None):
            raise ConfigError(f"{pattern_text(prefix)}: with --{intent}, expected one name and no prefix")
        needs = needs_of(intent, resources)
        return Question(resources=tuple(resources), intent=intent, needs=needs, host=host, host_given=host_given)


@frozen(kw_only=True)
class Question:
    """One request, or those of an intent."""

    resources: tuple[ResourcePattern, ...]
    operation: AclOperation = AclOperation.READ
    """Of the only resource, without an intent."""
    intent: Intent | None = None
    needs: tuple[Need, ...] = ()
    host: str
    """In the form of `host_address`."""
    host_given: bool

    def requests(self, principal: str) -> Iterator[Request]:
        """Yield the requests on the named resources."""
        one = [(self.operation, self.resources[0])]
        for operation, resource in one if self.intent is None else requests_of(self.needs, self.resources):
            yield Request(
                principal=principal,
                operation=operation,
                host=self.host,
                resource_type=resource.resource_type,
                name=resource.name,
                pattern_type=resource.pattern_type,
                host_given=self.host_given,
            )


# The principal.


def principal_of(text: str, image: Image) -> str:
    """Return the principal that is meant: `alice` is User:alice. Notes on stderr name others that are close.

    Raises:
        ConfigError: no type, and ACLs name another type of principal with this name, and no User.

    """
    users = {f"{_USER}{each.user}" for each in image.scram.describe()}
    principal, unknown = meant_principal(text, image.acls.principals() | users, "no ACL and no SCRAM credential is for")
    if unknown is not None:
        note(printable(unknown))
    return principal


# The answer.


@frozen(kw_only=True)
class Why:
    """The answer by one generation of Kafka: that on the first request that is denied, else on the first one."""

    explanation: Explanation
    denied: tuple[Explanation, ...] = ()
    """Those of all requests that are denied."""
    allowed_too: tuple[Explanation, ...] = ()
    """Those of the other requests that are allowed, one for each resource."""
    missing: Need | None = None
    """A need of the intent on a resource that is not named, which no resource meets."""

    @property
    def allowed(self) -> bool:
        """Whether the request, or everything of the intent, is allowed."""
        return self.explanation.allowed and self.missing is None

    @property
    def verdict(self) -> str:
        """The decision on the request, or on the whole intent."""
        return "ALLOWED" if self.allowed else "DENIED"

    @property
    def remedy(self) -> Remedy:
        """What reverses the decision: of several denied requests, the changes of all."""
        remedies = [each.remedy for each in self.denied or (self.explanation,)]
        changes = list(dict.fromkeys(change for each in remedies for change in each.changes))
        added = [each.acl for each in changes if each.add]
        return Remedy(
            changes=tuple(each for each in changes if not (each.add and _is_implied(each.acl, added))),
            left_off=sum(each.left_off for each in remedies),
            notes=tuple(dict.fromkeys(text for each in remedies for text in each.notes)),
        )


def _is_implied(acl: StandardAcl, others: Iterable[StandardAcl]) -> bool:
    """Return whether one of some ACLs that allow implies another one."""
    return any(
        _implies(each.operation, acl.operation) and evolve(each, operation=acl.operation) == acl for each in others
    )


def _implies(operation: int, other: int) -> bool:
    """Return whether the permission for an operation is one for another operation."""
    return operation != other and bool(rule_mask(operation, AclPermissionType.ALLOW) >> other & 1)


@frozen(kw_only=True)
class Answer:
    """What is printed: the answer by the generation of Kafka that denies, if one does, and what else is known."""

    shown: Why
    generation: Generation
    others: Mapping[Generation, Why]
    """Those of other generations that decide by other rules."""
    since: Since | str
    """Or the reason why that is unknown."""
    intent: Intent | None

    @property
    def before(self) -> Decision | None:
        """The decision on the request before the change; None if it is unknown, or was the same."""
        decision = None if isinstance(self.since, str) else self._decided_by(self.since.before)
        return None if decision is None or decision.result is self.shown.explanation.decision.result else decision

    @property
    def before_rule(self) -> Decision | None:
        """The decision before the addition of the rule, if the log begins with the answer; None if it is unknown."""
        return None if isinstance(self.since, str) else self._decided_by(self.since.before_rule)

    def _decided_by(self, policy: Policy | None) -> Decision | None:
        explanation = self.shown.explanation
        try:
            return None if policy is None else policy.authorizer.decide(explanation.context, explanation.action)
        except InvalidRequestError:  # a rule of a principal without a colon, as which Kafka's authorizer throws
            return None

    def to_dict(self) -> dict[str, Any]:
        """Return the answer for JSON; scripts depend on the keys."""
        shown, before = self.shown, self.before
        explanation = shown.explanation.to_dict()
        since = None if isinstance(self.since, str) else self.since
        row = {
            **{key: explanation[key] for key in _OF_EXPLANATION},
            "decision": shown.verdict,
            "intent": None if self.intent is None else self.intent.value,
            "missing": None if shown.missing is None else code_name(ResourceType, shown.missing.resource_type),
            "since": None if since is None else event_object(since.event),
            "ruleAdded": None if since is None or since.rule_added is None else event_object(since.rule_added),
            "madeBy": None if since is None else made_by_object(since.made_by),
            "sinceUnknown": self.since if isinstance(self.since, str) else None,
            "before": None if before is None else {"decision": before.result.value, "rule": before.text},
            "nearMisses": explanation["nearMisses"],
            "opposite": shown.remedy.to_dict(shown.explanation.options.origins),
            "asOf": explanation["asOf"],
            **shown.explanation.premises.key(),
        }
        if self.others:
            row["generation"] = self.generation.value
            row["otherGenerations"] = [
                {"generation": of.value, "decision": other.verdict, "rule": other.explanation.decision.text}
                for of, other in self.others.items()
            ]
        return row


_OF_EXPLANATION = (
    *("decision", "rule", "principal", "host", "hostGiven"),
    *("operation", "resourceType", "resourceName", "patternType"),
)


def answer(policy: Policy, principal: str, question: Question, options: ExplainOptions) -> Why:
    """Return the answer by one policy. Raises as aclog.analysis.timeline.explained."""
    explanations = [explained(policy, *asked_of(each), options) for each in question.requests(principal)]
    denied = _without_implied([each for each in explanations if not each.allowed])
    unnamed = (need for need in question.needs if not set(need.patterns) & set(question.resources))
    missing = (
        need
        for need in unnamed
        if not IntentHeld(needs=(need,), principals=only(principal), host=question.host).holds(policy, policy, None)
    )
    first = (*denied, *explanations)[0]
    allowed: dict[ResourcePattern, Explanation] = {}  # the first request on a resource implies the others
    for each in explanations:
        if each.allowed and each.action.resource_pattern != first.action.resource_pattern:
            allowed.setdefault(each.action.resource_pattern, each)
    others = {each.action.resource_pattern for each in denied}
    return Why(
        explanation=first,
        denied=denied,
        allowed_too=tuple(each for of, each in allowed.items() if of not in others),
        missing=next(missing, None),
    )


def _without_implied(denied: Sequence[Explanation]) -> tuple[Explanation, ...]:
    """Return the denied requests without those that only lack what a permission for another one implies."""
    actions = [each.action for each in denied]
    return tuple(
        each
        for each in denied
        if each.decision.rule is not None
        or not any(
            other.resource_pattern == each.action.resource_pattern and _implies(other.operation, each.action.operation)
            for other in actions
        )
    )


def since_of(
    choice: ChosenSource,
    image: Image,
    principal: str,
    question: Question,
    stated: StatedSettings,
    *,
    rule: StandardAcl | None,
) -> Since | str:
    """Return since when the answer by a rule is what it is, or why that is unknown. Raises as answer_since."""
    if choice.source.log is None:
        return "unknown: the source is a single state, and only a log has the changes (--log, --bootstrap-controller)"
    if principal in settings_of(stated).super_users:
        return "unknown: super.users allows it, and a log has no changes of settings"
    if any(map(is_set, question.resources)):
        return "not shown for a prefix, whose names may differ: `aclog when` lists the intervals"
    query = Query(
        resources=question.resources, operations=1 << question.operation, principals=only(principal), host=question.host
    )
    asked = question_of(query, question.needs)
    return answer_since(choice.source, image.end_offset, asked, settings_of(stated), rule)


app = Group()


@app.command()
def why(request: WhyFlags, source: SourceFlags, authorizer: AuthorizerFlags, output: AnswerFlags) -> None:
    """Show in a few lines why a request is allowed or denied, since when, by which change, and the smallest fix.

    By default NAME is a topic, and the operation is READ. The exit code is 0 if
    the request is ALLOWED, and 1 if it is DENIED. `aclog explain` shows every rule
    that takes part.

    If SOURCE is a log, the output also has the change that led to this answer: its
    offset and time and, for a change by `aclog apply`, who ran it and the git
    commit of the rules.

    [bold]Examples[/]

      aclog why svc-orders orders DIR
      aclog why svc-orders orders --consume --group billing --log DIR
      aclog why User:bob group:billing --bootstrap-controller HOST:9093
      aclog why User:bob cluster --operation Alter --log DIR --as-of yesterday
    """
    how, question = output.choose(), request.question()
    choice = source.choose()
    image = choice.image()
    principal = principal_of(typed_text(request.principal), image)
    note_each(unknown_topics(question.resources, image))
    premises = read_premises(choice, authorizer.configs())
    options = ExplainOptions(
        allow_everyone=authorizer.allow_everyone,
        host_given=question.host_given,
        as_of=None if choice.moment is None else moment_text(choice.moment),
        place=choice.source.change_place,
        origins=choice.origins,
        premises=premises,
    )
    kinds = [(each.resource_type, each.operation) for each in question.requests(principal)]
    each = each_generation(image, authorizer, kinds)
    answers = {of: answer(policy_of(image, own), principal, question, options) for of, own in each.stated.items()}
    each.warn()
    alike = len({own.allowed for own in answers.values()}) == 1
    first = next((of for of, own in answers.items() if not own.allowed), next(iter(answers)))
    decision = answers[first].explanation.decision
    by_rule = None if decision.rule is None else decision.rule.acl
    since: Since | str = (
        since_of(choice, image, principal, question, authorizer, rule=by_rule)
        if alike
        else "not shown, as the Kafka versions decide differently: --kafka-version names one"
    )
    rule = decision.text
    result = Answer(
        shown=answers[first],
        generation=first,
        others={of: own for of, own in answers.items() if own.explanation.decision.text != rule},
        since=since,
        intent=question.intent,
    )
    if how.is_rows:
        row = result.to_dict()
        how.print_answer(row, COLUMNS, [row])
    else:
        for line in lines(result):
            emit(line)
    choice.warn_of_age()
    raise Exit(ALLOWED if result.shown.allowed else DENIED)


# The lines for people.


_WIDTH = 8


def lines(answer: Answer) -> Iterator[str]:
    """Yield the lines: the verdict, the rule, since when, the answer before, and the fix."""
    shown, explanation = answer.shown, answer.shown.explanation
    intent = "" if answer.intent is None else f" to {answer.intent}"
    request = f"{explanation.context.principal}{intent}: {action_text(explanation)} from {host_text(explanation)}"
    verdict = explanation.premises.decided(shown.verdict)
    yield _line(verdict, f"{request}{only_on(answer.generation) if answer.others else ''}", verdict=True)
    if shown.denied or shown.missing is None:
        yield _line("rule", _rule_text(explanation))
    for more in shown.denied[1:]:
        yield _line("also", f"DENIED {action_text(more)}: {_rule_text(more)}")
    for more in shown.allowed_too:
        yield _line("also", f"ALLOWED {action_text(more)}: {_rule_text(more)}")
    if shown.missing is not None:
        yield _line("needs", _missing_text(shown.missing))
    for of, other in answer.others.items():
        yield _line(str(of), f"{other.verdict} {other.explanation.decision.text}")
    yield _line("since", _since_text(answer))
    if (before := answer.before) is not None:
        what = "" if answer.intent is None else f"{action_text(explanation)} was "
        yield _line("before", f"{what}{before.result.value} by {_decided_text(before)}")
    for miss in explanation.near_misses:
        yield _line("near", miss)
    of_others = (each for each in explanation.rules if each.role is Role.OTHER_HOST)
    count = sum(_has_clients(each, answer.generation) for each in of_others)
    if not explanation.options.host_given:
        count += len(matching_one_host(explanation))
    if count:
        yield _line("hosts", f"{plural(count, 'rule')} for certain hosts only: pass the client's address with --host")
    if not shown.allowed:
        yield from _fix_lines(shown, answer.intent)


def _line(label: str, text: str, *, verdict: bool = False) -> str:
    if not verdict:
        return f"{styled(f'{label:<{_WIDTH}}', dim=True)} {colored(printable(text))}"
    color = "green" if label.startswith("ALLOWED") else "red"
    label = label if len(label) <= _WIDTH else f"{label}:"  # with what may change it
    return f"{styled(f'{printable(label):<{_WIDTH}}', fg=color, bold=True)} {colored(printable(text))}"


def _has_clients(examined: ExaminedRule, generation: Generation) -> bool:
    """Return whether an ACL may match a client from its host."""
    host = examined.rule.acl.host
    if is_cidr(host):
        return generation is Generation.V4_4
    try:
        return bool(host_address(host))
    except ConfigError:
        return False


def _rule_text(explanation: Explanation) -> str:
    decision = explanation.decision
    text = decision.text if decision.rule is None else located_text(decision.rule.acl, explanation.options.origins)
    implied = explanation.implied_by
    return text if implied is None else f"{text} ({implied.name} implies it)"


def _missing_text(need: Need) -> str:
    operations = " and ".join(each.name for each in operations_of(need.operations))
    kind = code_name(ResourceType, need.resource_type)
    return f"{operations} on a {kind}: the principal has them on no {kind}"


def _decided_text(decision: Decision) -> str:
    return decision.text if decision.rule is None else acl_text(decision.rule.acl)


def _since_text(answer: Answer) -> str:
    since = answer.since
    if isinstance(since, str):
        return since
    event = since.event
    time = "" if event.timestamp < 0 else f"{time_text(event.timestamp)} ({_age(event.timestamp)})"
    if event.change is not None:
        start = f"{time}, " if time else ""
        made = f"{change_text(event.change)}{made_by_text(since.made_by)}"
        return f"{start}offset {event.offset}: {made}{_intent_text(answer.intent, since)}"
    premises = answer.shown.explanation.premises
    never = premises.decided("never denied" if since.allowed else "never allowed")
    begins = f", offset {event.offset} or before" if event.offset else ""
    text = f"the beginning of the log{begins} ({f'{time}, ' if time else ''}{never})"
    if since.rule_added is None:
        return f"{text}; the deciding rule may have changed"
    before = answer.before_rule
    by = "" if before is None else f"; before: {_decided_text(before)}"
    return f"{text}; by this rule {_added_text(since.rule_added)}{by}"


def _intent_text(intent: Intent | None, since: Since) -> str:
    """Return what a change did for an intent: its rule is only one of those that an intent needs."""
    if intent is None:
        return ""
    requests = "every request of such a client is allowed" if since.allowed else "a request of such a client is denied"
    return f"; since then, {requests}"


def _added_text(event: Event) -> str:
    """Return when the rule that decides was added: another one may have decided since."""
    time = "" if event.timestamp < 0 else f", {time_text(event.timestamp)} ({_age(event.timestamp)})"
    return f"at the earliest since offset {event.offset}{time}"


_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def _age(timestamp: int) -> str:
    """Return how long ago a time in ms was, in its largest whole unit."""
    seconds = (current_time_ms() - timestamp) // 1000
    if seconds < 0:
        return "in the future by this clock"
    length, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{plural(seconds // length, unit)} ago"


def _fix_lines(shown: Why, intent: Intent | None) -> Iterator[str]:
    # Where only a resource of the intent is missing, the remedy reverses a request that is allowed.
    remedy = shown.remedy if shown.denied or shown.missing is None else Remedy()
    for place, change in enumerate(remedy.changes):  # all of them are needed
        yield _line("and" if place else "fix", _change_text(change, shown.explanation))
        if change.command is not None:
            yield _line("", change.command)
    if remedy.left_off:
        yield _line("", f"and remove {plural(remedy.left_off, 'more such ACL')}")
    for text in remedy.notes:
        yield _line("" if remedy.changes else "fix", text)
    if shown.missing is not None:
        kind = code_name(ResourceType, shown.missing.resource_type).lower()
        label = "and" if remedy.changes or remedy.notes else "fix"
        yield _line(label, f"aclog grant --intent {intent} with --{kind} NAME adds the rules that it needs")


def _change_text(change: Change, explanation: Explanation) -> str:
    return f"{'add' if change.add else 'remove'} {located_text(change.acl, explanation.options.origins)}"


# The answer for programs.


COLUMNS = (
    Column(key="decision"),
    Column(key="rule", cut=True),
    Column(key="principal", cut=True),
    Column(key="operation"),
    Column(key="resourceType", title="TYPE", spare=True),
    Column(key="resourceName", title="NAME", cut=True),
    Column(key="host", spare=True),
    Column(key="since.offset", title="SINCE OFFSET"),
    Column(key="since.timestamp", title="SINCE", text=optional_time_text),
    Column(key="madeBy.who", title="CHANGED BY", spare=True, cut=True),
    Column(key="madeBy.git", title="GIT COMMIT", spare=True),
)
