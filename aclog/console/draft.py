"""Drafts: changes of ACLs that are typed or opened, their effect, plans and applying."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from attrs import evolve, field

from aclog.analysis.comparison import Comparison
from aclog.analysis.intents import Intent
from aclog.analysis.lint_report import LocatedFinding, lint, parted
from aclog.analysis.policy import Policy
from aclog.analysis.review.review import text_lines
from aclog.analysis.rule_tests.case import Case, Outcome, touches, with_ids
from aclog.analysis.rule_tests.results import PremisedRun
from aclog.authorizer.acl import (
    NO_ORIGINS,
    AclBindingFilter,
    FileOrigin,
    Origins,
    ResourcePattern,
    StandardAcl,
    TwoOrigins,
    acl_text,
    is_cidr,
    resource_of,
    rule_of_object,
)
from aclog.authorizer.acls_image import Action, ChangedOrigins, RuleChange, changed_acls, content_of, contents_of
from aclog.authorizer.codes import (
    WILDCARD_PRINCIPAL,
    PatternType,
    ResourceType,
)
from aclog.authorizer.control import refusal
from aclog.authorizer.settings import SUPER_USERS_CONFIG, Generation, Settings, rule_pattern
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.json_object import check_unicode, parse_object
from aclog.metalog.primitives import random_uuid, uuid_text
from aclog.metalog.values import define, frozen
from aclog.planning.applying import ApplyOptions
from aclog.planning.granting import (
    AccessRequest,
    IntentResources,
    Shared,
    asked_needs,
    grant,
    near_rules,
    policy_with,
    shared,
)
from aclog.planning.plan import KIND, PLAN_BEGIN, PlaceAddress, Plan, RefusedError, parse_plan, plan_digest
from aclog.planning.planner import DeleteLimit, change_as_asked, make_plan
from aclog.planning.report import PlanReport, document_of
from aclog.sources.acl_lines import parse_change
from aclog.sources.rule_line import EXPECTED, parse_rule_line
from aclog.targets.applies import origin_now, time_now
from aclog.targets.opening import PlaceSettings, PlanApply, find_place, told_outcome

# Plans of drafts, and applying them: by a console that may write, to the one target that it shows.


_PLANS = 32
"""Plans that are kept."""


@frozen(kw_only=True)
class Ownership:
    """How a plan treats ACLs that its journal does not manage, and how many deletes it may have."""

    adopt: bool = False
    max_deletes: str = ""
    """The limit, as --max-deletes; empty for the default."""


@frozen(kw_only=True)
class Applied:
    """The outcome of an apply."""

    text: str
    """What was done, or why the apply failed."""
    apply: str | None = None
    """The id of an apply that was done."""


@frozen(eq=False, kw_only=True)
class DraftPlan:
    """A plan of a draft."""

    plan: Plan
    digest: str
    lines: tuple[str, ...]
    """The plan as lines of text."""
    applied: Applied | None = None
    """None: not applied by this console."""

    @property
    def is_done(self) -> bool:
        """Whether it was applied."""
        return self.applied is not None and self.applied.apply is not None


@define(eq=False, kw_only=True)
class Editing:
    """Makes plans for one target and one journal, and applies them one at a time. Safe for any number of threads."""

    address: PlaceAddress
    stated: PlaceSettings
    journal: Path
    others: Sequence[Path] = ()
    """Journals of other sources for the same target."""
    notify: Callable[[str], None]
    _plans: "OrderedDict[str, DraftPlan]" = field(factory=OrderedDict, init=False)
    _keeping: threading.Lock = field(factory=threading.Lock, init=False)
    _applying: threading.Lock = field(factory=threading.Lock, init=False)

    def plan(self, changes: Sequence[RuleChange], ownership: Ownership, who: str | None) -> DraftPlan:
        """Make a plan of the changes, and keep it; `who` is the requester, if known.

        Raises:
            ConfigError: an invalid limit of deletes.
            RefusedError: too many deletes, a delete of an unmanaged ACL, or an ACL that cannot be created.
            MetadataError: the target or the journal cannot be read.

        """
        limit = DeleteLimit.parse(ownership.max_deletes or None)
        ranges = (each.acl for each in changes if is_cidr(each.acl.host))
        place = find_place(self.address, self.stated, self.journal, self.notify, self.others, ranges=ranges)
        change = change_as_asked(place.holdings, changes, adopt=ownership.adopt)
        origin = origin_now()
        plan = make_plan(change, place.circumstances(evolve(origin, who=_by(who, origin.who))))
        place.check_plan(change, plan.steps, limit)
        if plan.is_empty:
            raise RefusedError(f"{place.name}: nothing to do: the target already matches")
        report = PlanReport(
            name=place.name,
            state=place.state,
            plan=plan,
            change=change,
            kafka=place.kafka,
            premises=place.premises,
        )
        lines = tuple(text_lines(document_of(report, full=True)))
        draft_plan = DraftPlan(plan=plan, digest=plan_digest(plan), lines=lines)
        self._keep(draft_plan)
        return draft_plan

    def get(self, digest: str) -> DraftPlan | None:
        """Return a plan; None: unknown or evicted."""
        with self._keeping:
            return self._plans.get(digest)

    def apply(self, digest: str, *, accept_transient: bool, who: str | None) -> DraftPlan | None:
        """Apply a plan, once; a repeated call returns the first outcome. None: the plan is unknown or evicted.

        An error that refuses or interrupts the apply is kept as its outcome, and returned.
        """
        with self._applying:
            draft_plan = self.get(digest)
            if draft_plan is None or draft_plan.is_done:
                return draft_plan
            try:
                applied = self._applied(draft_plan.plan, accept_transient=accept_transient, who=who)
            except (MetadataError, OSError) as error:
                applied = Applied(text=str(error))
            done = evolve(draft_plan, applied=applied)
            self._keep(done)
            return done

    def _applied(self, plan: Plan, *, accept_transient: bool, who: str | None) -> Applied:
        options = ApplyOptions(
            apply=uuid_text(random_uuid(secrets.token_bytes)),
            at=time_now(),
            who=_by(who, origin_now().who),
            accept_transient=accept_transient,
        )
        applied = PlanApply(plan=plan, address=self.address, options=options, notify=self.notify)
        name, outcome = applied.run(None, lambda _place: nullcontext(_untold))
        return Applied(text=told_outcome(plan, outcome, name), apply=outcome.apply)

    def _keep(self, plan: DraftPlan) -> None:
        with self._keeping:
            self._plans[plan.digest] = plan
            self._plans.move_to_end(plan.digest)
            while len(self._plans) > _PLANS:
                self._plans.popitem(last=False)


def _by(who: str | None, process: str) -> str:
    """Return the requester, if known, and the process that runs the console."""
    return process if who is None else f"{who} by {process}"


def _untold(_done: int, _of: int) -> None:
    """A progress callback that does nothing."""


# The state that drafts are compared with, and data that makes the comparison cheap.


@define(eq=False, slots=False)
class Ground:
    """A policy, with ids for its rules, so that one with a few changes is soon made. Immutable by convention."""

    original: Policy

    @cached_property
    def policy(self) -> Policy:
        """The same policy; its rules have ids."""
        return with_ids(self.original)

    @cached_property
    def contents(self) -> frozenset[bytes]:
        """Its rules (aclog.authorizer.acls_image)."""
        return frozenset(contents_of(self.policy.acls))

    def near(self, changed: Sequence[StandardAcl]) -> tuple[StandardAcl, ...]:
        """Return the rules that have a name in common with changed ones, and all those of their principals."""
        return tuple(dict.fromkeys((*near_rules(self.contents, map(resource_of, changed)), *self._of(changed))))

    def _of(self, changed: Sequence[StandardAcl]) -> Iterable[StandardAcl]:
        for principal in dict.fromkeys((*(acl.principal for acl in changed), WILDCARD_PRINCIPAL)):
            for rule in self.policy.acls.matching(AclBindingFilter(principal=principal)):
                yield rule.acl


@define(eq=False)
class Grounds:
    """The newest ground, which most drafts share. Safe for any number of threads."""

    _newest: list[Ground] = field(factory=list, init=False)
    """One for each generation of Kafka that decides on the newest rules."""
    _making: threading.Lock = field(factory=threading.Lock, init=False)

    def of(self, policy: Policy) -> Ground:
        """Return the ground of a policy."""
        with self._making:
            ground = next((each for each in self._newest if each.original is policy), None)
            if ground is None:
                ground = Ground(policy)
                same = [each for each in self._newest if each.original.acls.index is policy.acls.index]
                self._newest = [*same[-1:], ground]
            return ground


# The effect of a draft: its effective changes, the access gained and lost, and other principals on the same prefixes.


_MOST_PAIRS = 2_000_000
"""At most so many pairs of an opened prefix and a nearby rule are examined for other principals."""


@define(eq=False, slots=False, kw_only=True)
class DraftEffect:
    """A draft beside a state. Immutable by convention."""

    ground: Ground
    draft: Sequence[RuleChange]
    """All changes, in order: of several of a rule the last one counts."""
    _origins: Origins = field(default=NO_ORIGINS)
    """The locations of the state's rules."""
    generations: tuple[Generation, ...] = ()
    """The generations of Kafka that may decide, if several may: what is granted must hold for each."""

    @cached_property
    def _last(self) -> list[RuleChange]:
        return list({change.acl: change for change in self.draft}.values())

    def _is_there(self, change: RuleChange) -> bool:
        return self.ground.policy.acls.find(change.acl) is not None

    @cached_property
    def changes(self) -> tuple[RuleChange, ...]:
        """The changes with an effect on the rules."""
        return tuple(each for each in self._last if self._is_there(each) is not each.added)

    @cached_property
    def idle(self) -> tuple[RuleChange, ...]:
        """The changes without effect: an ACL to add that exists, or an ACL to remove that does not."""
        return tuple(each for each in self._last if self._is_there(each) is each.added)

    @property
    def repeated(self) -> int:
        """How many changes do not count, as a later one is of the same rule."""
        return len(self.draft) - len(self._last)

    @cached_property
    def after(self) -> Policy:
        """The policy with the draft."""
        before = self.ground.policy
        return Policy(changed_acls(before.acls, self.changes), before.settings) if self.changes else before

    @cached_property
    def comparison(self) -> Comparison:
        """The access gained and lost, by principal."""
        both = ChangedOrigins.of_changes(self._origins, self.changes)
        return Comparison.of(
            self.ground.policy, self.after, changes=self.changes, origins=TwoOrigins(old=self._origins, new=both)
        )

    @cached_property
    def near(self) -> tuple[StandardAcl, ...]:
        """The rules that have a name in common with changed ones, and those of their principals."""
        return self.ground.near([change.acl for change in self.changes])

    @cached_property
    def sharing(self) -> tuple[Shared, ...] | None:
        """Other principals with rules on prefixes that are opened or closed; None: too many to examine."""
        changed = [each.acl for each in self.changes]
        wide = sum(acl.pattern_type == PatternType.PREFIXED or acl.resource_name == "*" for acl in changed)
        if not wide:
            return ()
        if wide * len(self.near) > _MOST_PAIRS:
            return None
        return shared(changed, {content_of(acl) for acl in self.near})


# Texts that are too large for an address, kept under their digests.


_MOST_BYTES = 64 << 20


@define(eq=False, kw_only=True)
class KeptTexts:
    """The newest texts. Safe for any number of threads."""

    most: int = 64
    most_bytes: int = _MOST_BYTES
    _texts: "OrderedDict[str, str]" = field(factory=OrderedDict, init=False, repr=False)
    _bytes: int = field(default=0, init=False)
    _keeping: threading.Lock = field(factory=threading.Lock, init=False)

    def keep(self, text: str) -> str:
        """Keep a text; return its id, which is the same for the same text."""
        data = text.encode("utf-8", "surrogatepass")
        digest = sha256(data).hexdigest()[:32]
        with self._keeping:
            if digest not in self._texts:
                self._texts[digest] = text
                self._bytes += len(data)
            self._texts.move_to_end(digest)
            while len(self._texts) > 1 and (len(self._texts) > self.most or self._bytes > self.most_bytes):
                _, oldest = self._texts.popitem(last=False)
                self._bytes -= len(oldest.encode("utf-8", "surrogatepass"))
        return digest

    def get(self, digest: str) -> str | None:
        """Return a text; None: unknown or evicted."""
        with self._keeping:
            if digest in self._texts:
                self._texts.move_to_end(digest)
            return self._texts.get(digest)


# Lint findings that a draft introduces, and those that it fixes.


MOST_RULES = 5_000
"""Rules near the draft that lint examines while the user types."""


@frozen(kw_only=True)
class LintEffect:
    """Findings that only one side has."""

    introduced: tuple[LocatedFinding, ...] = ()
    fixed: tuple[LocatedFinding, ...] = ()


def lint_effect(effect: DraftEffect, premises: Premises = ALL_KNOWN) -> LintEffect | None:
    """Return the lint findings of one side only; None if there are too many rules near the draft.

    Where `premises` by which a rule may be needed are unknown, no rule is called redundant.

    Only rules that share a name or a principal with a change are examined: findings on other rules are the same on both
    sides.
    """
    if not effect.changes:
        return LintEffect()
    if len(effect.near) > MOST_RULES:
        return None
    before = policy_with(effect.near, effect.ground.policy.settings)
    after = Policy(changed_acls(before.acls, effect.changes), before.settings)
    is_known = not premises.without({SUPER_USERS_CONFIG})
    was, now = (_findings(policy, effect, is_known=is_known) for policy in (before, after))
    return LintEffect(introduced=tuple(parted(now, was)[0]), fixed=tuple(parted(was, now)[0]))


def _findings(policy: Policy, effect: DraftEffect, *, is_known: bool) -> list[LocatedFinding]:
    origins = effect.comparison.origins.new
    return [LocatedFinding.of(finding, origins) for finding in lint(policy) if is_known or not finding.neutral]


# The minimal ACLs that a client needs, as lines of a draft.


INTENTS = Intent.PRODUCE, Intent.CONSUME, Intent.TRANSACT, Intent.STREAM


@frozen(kw_only=True)
class Preset:
    """The intent of a client, and its names."""

    intent: Intent
    principal: str
    topics: tuple[str, ...] = ()
    """The topics that a stream reads, or that a client works with."""
    groups: tuple[str, ...] = ()
    """The groups; of a stream, its application id."""
    transactional_ids: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """Topics that a stream writes."""


def preset_lines(preset: Preset, effect: DraftEffect) -> list[str]:
    """Return the lines to add to a draft; none if all is allowed already. Names are those of questions: `ord*`.

    Raises:
        ConfigError: something is missing, or no name. RefusedError: a rule denies it.

    """
    principal = preset.principal.strip()
    check_unicode("the principal", principal)
    if ":" not in principal:
        raise ConfigError(f"principal {principal[:80]!r}: expected TYPE:NAME, such as User:alice")
    topics = tuple(_patterns(ResourceType.TOPIC, preset.topics))
    is_stream = preset.intent is Intent.STREAM
    others = (
        *_patterns(ResourceType.GROUP, preset.groups),
        *_patterns(ResourceType.TRANSACTIONAL_ID, preset.transactional_ids),
    )
    resources = IntentResources(
        named=others if is_stream else (*topics, *others),
        inputs=topics if is_stream else (),
        outputs=tuple(_patterns(ResourceType.TOPIC, preset.outputs)),
    )
    needs = asked_needs(preset.intent, resources, whole=True)
    # Without any ACL a resource may be open to all; the first ACL closes it to others.
    settings = evolve(effect.after.settings, allow_everyone=False)
    request = AccessRequest(principal=principal, needs=needs)
    result = grant(request, contents_of(effect.after.acls), settings, effect.generations)
    return [f"+ {acl_text(acl)}" for acl in result.added]


def _patterns(kind: ResourceType, names: Iterable[str]) -> Iterator[ResourcePattern]:
    for name in names:
        check_unicode("the name", name)
        yield rule_pattern(kind, name)


# The text of a draft: changes of rules, line by line, in whichever form they come.


MOST_BYTES = 2_000_000
MOST_CHANGES = 10_000
_LONGEST = 16_384
"""Characters of a line."""
NAME = "draft"
"""The name of the text in locations of rules."""


@frozen(kw_only=True)
class Problem:
    """A line without a valid change."""

    line: int
    """The number of the line, from 1."""
    text: str
    """The error, and the expected text."""


@frozen(kw_only=True)
class DraftText:
    """The changes of a text."""

    changes: tuple[RuleChange, ...] = ()
    """The changes in order; the origin of each has its line."""
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks on the text as a whole."""


def read_draft(text: str, *, cidr: bool) -> DraftText:
    """Read a text: changes as JSON lines, rules as JSON lines or in a line, which are added, or a PLAN file.

    Blank lines and lines that begin with `#` are skipped. A rule to add that CreateAcls would refuse is a problem.

    Raises:
        ConfigError: it is too long, or has too many changes.

    """
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise ConfigError(f"the draft has more than {MOST_BYTES:,} bytes: `aclog diff --change FILE` takes any number")
    lines = text.split("\n")
    if text.lstrip().startswith(PLAN_BEGIN.decode()):
        return _plan(text, lines)
    return _Reader(cidr=cidr).read(lines)


def _plan(text: str, lines: list[str]) -> DraftText:
    """Read a PLAN file; if it is not as it was written, its steps are read as they are."""
    try:
        plan = parse_plan((line.encode() for line in text.strip().split("\n")), NAME)
    except (ConfigError, UnicodeEncodeError) as error:
        draft = _Reader(cidr=True).read(lines)
        return evolve(draft, notes=(f"{error}; its steps are read as written here", *draft.notes))
    _check_number(len(plan.steps) + len(plan.adopt))
    adopted = [RuleChange(added=True, acl=acl) for acl in plan.adopt]
    steps = [
        RuleChange(added=step.adds, acl=step.acl, where=f"line {number}", origin=FileOrigin(file=NAME, line=number))
        for number, step in enumerate(plan.steps, 2)
    ]
    address = plan.place.address
    note = f"A plan for --{address.kind} {address.value}, made at {plan.origin.at} by {plan.origin.who}"
    return DraftText(changes=(*steps, *adopted), notes=(note,))


@define(kw_only=True)
class _Reader:
    cidr: bool
    changes: list[RuleChange] = field(factory=list, init=False)
    problems: list[Problem] = field(factory=list, init=False)

    def read(self, lines: Iterable[str]) -> DraftText:
        """Read all lines."""
        for number, line in enumerate(lines, 1):
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            try:
                self.changes += self._read(stripped, FileOrigin(file=NAME, line=number))
            except ConfigError as error:
                self.problems.append(Problem(line=number, text=str(error)))
            _check_number(len(self.changes) + len(self.problems))
        return DraftText(changes=tuple(self.changes), problems=tuple(self.problems))

    def _read(self, line: str, origin: FileOrigin) -> Iterator[RuleChange]:
        if len(line) > _LONGEST:
            raise ConfigError(f"more than {_LONGEST:,} characters: {EXPECTED}")
        change = _json(line) if line.startswith("{") else _plain(line)
        if change is None:
            return
        why = refusal(change.acl, cidr=self.cidr) if change.added else None
        if why is not None:
            raise ConfigError(f"{acl_text(change.acl)}: CreateAcls refuses it: {why}")
        yield evolve(change, where=f"line {origin.line}", origin=origin)


def _plain(line: str) -> RuleChange:
    rule_line = parse_rule_line(line)
    return RuleChange(added=rule_line.added, acl=rule_line.acl)


def _json(line: str) -> RuleChange | None:
    """Return the change in an object; None in the head of a plan, which has none."""
    value: dict[str, Any] = parse_object(line.encode("utf-8", "replace"))
    if value.get("kind") == KIND:
        return None
    if "action" in value or "rule" in value:
        return parse_change(value, "")
    try:
        return RuleChange(added=True, acl=rule_of_object(value).acl)
    except ConfigError as error:
        raise ConfigError(f'{error}: expected a rule, or {{"action":"{Action.ADD}","rule":{{...}}}}') from error


def _check_number(changes: int) -> None:
    if changes > MOST_CHANGES:
        raise ConfigError(f"more than {MOST_CHANGES:,} changes: `aclog diff --change FILE` takes any number")


# Tests of rules that a draft turns red or green.


_MOST_TEST_PAIRS = 200_000
"""The most pairs of a case and a changed set of requests; with more, all cases are run."""


@frozen(kw_only=True)
class StatedCases:
    """The cases of a file, and the settings that decide besides the rules."""

    settings: Settings
    cases: tuple[Case, ...]
    properties: frozenset[str] = frozenset()
    """The properties of brokers whose values the settings have."""


@frozen(kw_only=True)
class TestedCase:
    """A case, before the draft and with it."""

    __test__ = False  # not a class of tests for pytest

    before: Outcome
    after: Outcome

    @property
    def has_turned(self) -> bool:
        """Whether the draft decides it."""
        return self.before.passed is not self.after.passed


@frozen(kw_only=True)
class TestsEffect:
    """Cases that depend on the changes of a draft."""

    __test__ = False

    cases: tuple[TestedCase, ...] = ()
    """The cases that turn red, then those that turn green, those that stay red, and those that stay green."""
    others: int = 0
    """Cases that decide on no request that the draft changes: they are as they were, and were not run."""


def effect_on_tests(effect: DraftEffect, files: Sequence[StatedCases], premises: Premises = ALL_KNOWN) -> TestsEffect:
    """Return how the cases of some files change; a case that depends on an unknown premise does not pass.

    Raises:
        MetadataError: the state that a case compares with cannot be read.

    """
    cases: list[TestedCase] = []
    total = 0
    for file in files:
        old, new = (
            PremisedRun(_under(policy, file.settings), premises.without(file.properties), file.properties)
            for policy in (effect.ground.policy, effect.after)
        )
        total += len(file.cases)
        concerned = _concerned(effect, file.cases, file.settings)
        cases += [TestedCase(before=old.run(case), after=new.run(case)) for case in concerned]
    cases.sort(key=lambda each: (not each.has_turned, each.after.passed))
    return TestsEffect(cases=tuple(cases), others=total - len(cases))


def _under(policy: Policy, settings: Settings) -> Policy:
    if settings == policy.settings:
        return policy
    return Policy(policy.acls.with_options(documented=settings.documented, cidr=settings.cidr), settings)


def _concerned(effect: DraftEffect, cases: Sequence[Case], settings: Settings) -> Sequence[Case]:
    """Return the cases that decide on a request that changes; all cases if the changed requests are unknown."""
    if not effect.changes:
        return ()
    differences = effect.comparison.differences
    if settings != effect.ground.policy.settings or len(differences) * len(cases) > _MOST_TEST_PAIRS:
        return cases
    return [
        case
        for case in cases
        if any(touches(each.region, query) for query in case.queries(settings) for each in differences)
    ]


# What all drafts of a console share.


@define(eq=False, kw_only=True)
class Drafts:
    """The plans and texts kept for drafts. Safe for any number of threads."""

    texts: KeptTexts = field(factory=KeptTexts)
    grounds: Grounds = field(factory=Grounds)
    tests: Callable[[Settings], Sequence[StatedCases]] | None = None
    """Returns the tests that a draft may turn red or green, and the settings that decide them, given those of the
    console. Raises MetadataError, OSError: they cannot be read. None: no tests."""
