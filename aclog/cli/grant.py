"""`aclog grant`: the minimal ACLs that a client needs; and the parts that it shares with `aclog revoke`."""

from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve
from click.exceptions import Exit

from aclog.analysis.policy import marked, only_on
from aclog.analysis.regions import Direction, Region, who_text
from aclog.analysis.who_can import DEFAULT_ALLOW, SUPER_USER, permission_lines
from aclog.authorizer.acl import ResourcePattern, StandardAcl, acl_text, code_name
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import WILDCARD_PRINCIPAL, PatternType, ResourceType
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG
from aclog.authorizer.standard import Premises
from aclog.cli.app import writes_only_with
from aclog.cli.apply import apply_to_place
from aclog.cli.flags.common import AuthorizerFlags, Output
from aclog.cli.flags.many_requests import IntentFlags
from aclog.cli.flags.plans import ApplyFlags, DoFlags, RevokedFlags, StepsOutputFlags
from aclog.cli.flags.target import TargetFlags, place_address
from aclog.cli.images import warn_of_unmatched
from aclog.cli.options import Group
from aclog.cli.plan import (
    CHANGES,
    NOTHING,
    note_next_step,
    print_plan,
    print_unless_refused,
    take_plan_file,
    write_plan,
)
from aclog.metalog.errors import ConfigError, printable
from aclog.metalog.values import frozen
from aclog.ops.plan import place_settings
from aclog.planning.granting import (
    AccessRequest,
    Grant,
    Revocation,
    Shared,
    Still,
    Stranded,
    asked_needs,
    shared,
    side_effects,
    stranded,
)
from aclog.planning.granting import grant as plan_grant
from aclog.planning.granting import revoke as plan_revoke
from aclog.planning.plan import RefusedError
from aclog.planning.planner import DeleteLimit, change_as_asked, make_plan
from aclog.targets.applies import origin_now
from aclog.targets.opening import FoundPlace, find_place
from aclog.terminal.columns import OutputFormat
from aclog.terminal.output import note, say, warn

# `aclog grant`: the minimal ACLs that a client needs for its work.


app = Group()


@app.command()
@writes_only_with("--yes")
def grant(
    target: TargetFlags,
    intent: IntentFlags,
    do: DoFlags,
    authorizer: AuthorizerFlags,
    output: StepsOutputFlags,
) -> None:
    """Show the minimal rules that a client needs in addition to the existing ones; with --yes, add them.

    Grants access to the named resources only: no rule is broader than requested.
    Existing rules are taken into account. The plan lists the owners of resources
    that a prefix covers as well, and the parts that a rule still denies. Exit
    code 0 if no rule is missing, or all is done; 1 if the plan has changes; 2 if
    it is refused, because a rule denies the request or others would lose access.

    [bold]Examples[/]

      aclog grant --log DIR --principal User:a --intent consume --topic t --group g
      aclog grant --bootstrap-server HOST:9092 --principal User:a --intent produce --topic t --yes
      aclog grant --log DIR --principal User:a --intent stream --group app --input-topic t --out PLAN
    """
    raise Exit(run_grant(target, intent, do, authorizer, output.choose()))


# The plan of a grant or a revocation: shown, then written into a file or applied, on request.


@frozen(kw_only=True)
class IntentChange:
    """What is to be done for an intent."""

    changes: Sequence[RuleChange]
    aside: Direction
    """In which direction it should move nothing at all."""
    adopt: bool
    """Whether rules may be removed that the journal does not own."""
    limit: DeleteLimit
    nothing: str
    """Printed if there is nothing to do."""
    more: Sequence[str]
    """Printed besides the plan."""


def check_do(do: DoFlags) -> None:
    """Check flags before anything is read. Raises ConfigError: some do not go together; OSError: as take_plan_file."""
    if do.yes and do.out is not None:
        raise ConfigError("--yes and --out: expected one of them, since `aclog apply PLAN` applies what --out wrote")
    take_plan_file(do.out)


def finish(place: FoundPlace, intent: IntentChange, do: DoFlags, output: Output) -> int:
    """Print the plan, write or apply it; return the exit code.

    Raises:
        RefusedError, JournalError: nothing was changed.
        StoppedError: it ended on its way.
        MetadataError, OSError: the place, the journal or the file cannot be written.

    """
    if not intent.changes:
        _tell([*intent.more, intent.nothing], output)
        return NOTHING
    adopt = intent.adopt or place.journal is None  # without a journal no rule is managed
    change = change_as_asked(place.holdings, intent.changes, adopt=adopt)
    plan = make_plan(change, place.circumstances(origin_now()))
    effects = _side_effects(place, intent)

    def check() -> None:
        """Raise RefusedError: delete limit exceeded, or other principals affected; a written PLAN has neither."""
        place.check_plan(change, plan.steps, intent.limit)
        if effects and not do.accept_side_effects and (do.yes or do.out is not None):
            nothing = "nothing was changed" if do.out is None else "no plan was written"
            raise RefusedError(f"{place.name}: {_refusal(intent.aside, place)}: {nothing}")

    def show() -> None:
        """Print the plan, and the lines besides it."""
        print_plan(plan, change, place, output, full=True)
        if intent.more:
            _tell(["", *intent.more] if output.form is not OutputFormat.JSONL else intent.more, output)
        _warn_of(effects, intent.aside, place)

    print_unless_refused(check, show, output)
    if do.out is not None:
        write_plan(plan, do.out)
    if not do.yes:
        _note_next_step(effects, intent.aside, do, place, output)
        return CHANGES
    flags = ApplyFlags(yes=True, accept_transient=do.accept_transient, force=do.force)
    apply_to_place(plan, place.address, flags, note if output.form is OutputFormat.JSONL else say)
    return NOTHING


def _side_effects(place: FoundPlace, intent: IntentChange) -> list[str]:
    """Return what moves that should not, by any generation of Kafka that may decide."""
    each = place.settings.by_generation(place.kafka.generations)
    regions = {
        generation: [
            _effect_text(region, intent.aside)
            for region in side_effects(intent.changes, place.state.contents, settings, intent.aside)
        ]
        for generation, settings in each.items()
    }
    return list(marked(regions))


def _effect_text(region: Region, aside: Direction) -> str:
    """Return such as `everyone except User:a loses READ on TOPIC t, from any host`."""
    who = printable(who_text(region.principals))
    verb = "lose" if aside is Direction.LOST else "gain"
    several = not region.principals.complement and len(region.principals.named) > 1
    return f"{who} {verb}{'' if several else 's'} {str(region).removeprefix(f'{who}: ')}"


def _tell(lines: Iterable[str], output: Output) -> None:
    """Print lines with the plan; beside JSON lines they go to stderr."""
    for line in lines:
        if output.form is OutputFormat.JSONL:
            note(printable(line))
        else:
            say(printable(line))


def _warn_of(effects: Sequence[str], aside: Direction, place: FoundPlace) -> None:
    if not effects:
        return
    does = "takes access from others" if aside is Direction.LOST else "grants access to others"
    what = f"this plan also {does}: {'for example, ' if len(effects) > 1 else ''}{effects[0]}"
    if place.settings_known:
        warn(printable(f"allow.everyone.if.no.acl.found is true, so {what}"))
    else:
        warn(printable(f"allow.everyone.if.no.acl.found is unknown; if it is true, {what}"))


def _note_next_step(effects: Sequence[str], aside: Direction, do: DoFlags, place: FoundPlace, output: Output) -> None:
    """Note for people how the plan is applied."""
    if do.out is not None:
        note_next_step(do.out, output)
    elif output.form is OutputFormat.TEXT:
        verb, whom = ("take", "from others") if aside is Direction.LOST else ("grant", "to others")
        also = f"also {verb}s access" if place.settings_known else f"may also {verb} access"
        both = f" and --accept-side-effects apply this plan, which {also} {whom}" if effects else " applies this plan"
        note(f"nothing was changed: --yes{both}")


def _refusal(aside: Direction, place: FoundPlace) -> str:
    lost = "other principals would lose access"
    what = lost if aside is Direction.LOST else "each resource that loses its last rule would be open to all"
    if place.settings_known:
        return f"{what}: expected --accept-side-effects, if this is intended"
    return (
        f"allow.everyone.if.no.acl.found is unknown; if it is true, {what}: expected "
        "--no-allow-everyone-if-no-acl-found if it is false, or --accept-side-effects"
    )


# What a grant or a revocation prints besides its plan.


_MAX_LINES = 10
"""Lines of one kind; the rest is counted."""
_NAMED = 3
"""Patterns of one principal."""

_REASONS = {
    SUPER_USER: "the principal is a super user",
    DEFAULT_ALLOW: "no rule covers it, and allow.everyone.if.no.acl.found opens it",
}
_MAY_BE, _NO_RULE = "still allowed if names without ACLs are open", "no rule covers it"


def grant_lines(principal: str, outcome: Grant, sharing: Sequence[Shared], unknown: Premises) -> Iterator[str]:
    """Yield what a grant uses, what it does not reach, and whom else it touches.

    `unknown`: what could allow what stays denied.
    """
    if principal == WILDCARD_PRINCIPAL and outcome.added:
        yield f"{WILDCARD_PRINCIPAL} is everyone: every principal is granted this"
    already = [f"already granted: {_reason(each)}{only_on(outcome.reused_only.get(each))}" for each in outcome.reused]
    yield from _cut(already, "already granted: {} more rules")
    denied = (
        f"{unknown.decided('stays denied')}: {each.region}{only_on(each.only)} ("
        + ("a rule there has a principal without a colon)" if each.rule is None else f"by {acl_text(each.rule)})")
        for each in outcome.overruled
    )
    yield from _cut(list(denied), "stays denied: {} more sets of requests")
    yield from _cut(list(map(_shared_line, sharing)), "shared: {} more")


def revocation_lines(
    principal: str, revocation: Revocation, stopped: Iterable[Stranded], premises: Premises
) -> Iterator[str]:
    """Yield what still allows the revoked access, or may, and the other access that stops.

    `premises`: what is unknown of what decides.
    """
    is_open = ALLOW_EVERYONE_CONFIG not in premises.names
    if principal == WILDCARD_PRINCIPAL and revocation.removed:
        yield f"{WILDCARD_PRINCIPAL} is everyone: every principal without a rule of its own loses this"
    lines = [line for each in revocation.still for line in _still_lines(each, is_open=is_open)]
    yield from _cut(lines, "still allowed: {} more lines")
    if unknown := premises.turning(allowed=False):
        yield f"still allowed if {unknown.unless()}"
    yield from map(_stranded_line, stopped)


def _still_lines(still: Still, *, is_open: bool) -> Iterator[str]:
    """Yield what is still allowed; `is_open`: whether names without ACLs are known to be open."""
    permission = still.permission
    if permission.rules == (SUPER_USER,):
        yield f"still allowed: everything ({_REASONS[SUPER_USER]})"
        return
    head, *rules = permission_lines(permission)
    if permission.rules == (DEFAULT_ALLOW,):
        where = f"{head}{only_on(still.only)}"
        yield f"still allowed: {where} ({_REASONS[DEFAULT_ALLOW]})" if is_open else f"{_MAY_BE}: {where} ({_NO_RULE})"
        return
    yield f"still allowed: {head}{only_on(still.only)}"
    yield from rules


def _stranded_line(item: Stranded) -> str:
    kind = code_name(ResourceType, item.lost[0].resource_type)
    return (
        f"side effect: clients that use {kind} {_patterns_text(item.lost)} to {item.operation.name} "
        f"TOPIC {_patterns_text(item.topics)} lose access"
    )


def _shared_line(item: Shared) -> str:
    who = "everyone" if item.principal == WILDCARD_PRINCIPAL else item.principal
    kind = code_name(ResourceType, item.pattern.resource_type)
    return f"shared: {who} also has rules under {kind} {_pattern_text(item.pattern)}: {_patterns_text(item.patterns)}"


def _patterns_text(patterns: Sequence[ResourcePattern]) -> str:
    more = f" and {len(patterns) - _NAMED:,} more" if len(patterns) > _NAMED else ""
    return ", ".join(map(_pattern_text, patterns[:_NAMED])) + more


def _pattern_text(pattern: ResourcePattern) -> str:
    return f"{code_name(PatternType, pattern.pattern_type)} {pattern.name!r}"


def _reason(reason: StandardAcl | str) -> str:
    return acl_text(reason) if isinstance(reason, StandardAcl) else _REASONS.get(reason, reason)


def _cut(lines: Sequence[str], rest: str) -> Iterable[str]:
    if len(lines) <= _MAX_LINES + 1:
        return lines
    return [*lines[:_MAX_LINES], rest.format(f"{len(lines) - _MAX_LINES:,}")]


# Runs `aclog grant`.


def run_grant(target: TargetFlags, flags: IntentFlags, do: DoFlags, authorizer: AuthorizerFlags, output: Output) -> int:
    """Grant the requested access; return the exit code.

    Raises:
        ConfigError: flags that do not go together.
        RefusedError: a rule denies the request, or others would lose access.
        MetadataError, OSError: the place, the journal or a file cannot be read or written.

    """
    check_do(do)
    address = place_address(target)
    needs = asked_needs(flags.intent, flags.resources(), whole=True)
    request = AccessRequest(principal=flags.who(), needs=needs, hosts=flags.rule_hosts())
    place = find_place(address, place_settings(authorizer), do.journal, note, ranges=request.ranges())
    return finish(place, _change(request, flags, place), do, output)


def _change(request: AccessRequest, flags: IntentFlags, place: FoundPlace) -> IntentChange:
    # What is not known to be open is to be allowed by rules.
    settings = place.settings if place.settings_known else evolve(place.settings, allow_everyone=False)
    granted = plan_grant(request, place.state.contents, settings, place.kafka.generations)
    warn_of_unmatched(granted.added, lambda: settings.cidr)
    return IntentChange(
        changes=[RuleChange(added=True, acl=acl) for acl in granted.added],
        aside=Direction.LOST,
        adopt=False,
        limit=DeleteLimit(),
        nothing=place.premises.turning(allowed=True)
        .without({ALLOW_EVERYONE_CONFIG})  # what is not known to be open is allowed by rules
        .decided(f"nothing to do: {request.principal} may {flags.intent} already"),
        more=list(
            grant_lines(
                request.principal,
                granted,
                shared(granted.added, place.state.contents),
                place.premises.turning(allowed=False),
            )
        ),
    )


# Runs `aclog revoke`.


def run_revoke(
    target: TargetFlags,
    flags: IntentFlags,
    revoked: RevokedFlags,
    do: DoFlags,
    authorizer: AuthorizerFlags,
    output: Output,
) -> int:
    """Revoke the requested access; return the exit code: 1 also if something still allows it.

    Raises:
        ConfigError: flags that do not go together.
        RefusedError: a rule that the journal does not manage, an exceeded delete limit, or others would gain access.
        MetadataError, OSError: the place, the journal or a file cannot be read or written.

    """
    check_do(do)
    address = place_address(target)
    limit = DeleteLimit.parse(revoked.max_deletes)
    needs = asked_needs(flags.intent, flags.resources(), whole=False)
    request = AccessRequest(principal=flags.who(), needs=needs, hosts=flags.rule_hosts())
    place = find_place(address, place_settings(authorizer), do.journal, note)
    revocation = plan_revoke(request, place.state.contents, place.settings, place.kafka.generations)
    intent = IntentChange(
        changes=[
            *(RuleChange(added=True, acl=acl) for acl in revocation.added),
            *(RuleChange(added=False, acl=acl) for acl in revocation.removed),
        ],
        aside=Direction.GAINED,
        adopt=revoked.adopt,
        limit=limit,
        nothing=f"nothing to do: no rule grants this to {request.principal} only",
        more=list(
            revocation_lines(
                request.principal,
                revocation,
                stranded(revocation, place.state.contents, request.principal),
                place.premises,
            )
        ),
    )
    code = finish(place, intent, do, output)
    return CHANGES if revocation.still else code
