"""Plans: what has to change so that a place holds what a source of rules wants."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import field

from aclog.authorizer.acl import NO_ORIGINS, Origins, StandardAcl, is_cidr, places_text
from aclog.authorizer.acls_image import ChangedOrigins, RuleChange, content_of, ranges_among
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, parse_super_users
from aclog.metalog.errors import ConfigError, EncodeError, plural
from aclog.metalog.values import frozen
from aclog.ops.policies import StatedSettings, warn_of_super_users
from aclog.planning.plan import PlaceAddress, Plan, RefusedError, step_object
from aclog.planning.planner import DeleteLimit, Holdings, PlannedChange, change_as_asked, change_to_want, make_plan
from aclog.planning.report import PlanReport, RuleUses
from aclog.sources.acl_lines import NameFile, read_changes
from aclog.sources.choice import find_rules, not_accepted
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.unread import Unread, unread_text
from aclog.sources.read_options import NO_INPUTS, ModuleInputs, ReadOptions
from aclog.targets.applies import origin_now
from aclog.targets.opening import FoundPlace, PlaceSettings, find_place
from aclog.terminal.notices import BYTES, progress
from aclog.terminal.output import note

# What is stated of that which decides in a place.


def place_settings(stated: StatedSettings, *, is_warned: bool = False) -> PlaceSettings:
    """Return what is stated for a place; warn of likely unintended super users, unless `is_warned`.

    Raises:
        ConfigError: a super user without a colon.

    """
    if not is_warned:
        warn_of_super_users(stated)
    return PlaceSettings(
        super_users=parse_super_users(stated.super_users) if stated.super_users is not None else None,
        allow_everyone=bool(stated.allow_everyone) if ALLOW_EVERYONE_CONFIG in stated.configs() else None,
        documented=stated.documented,
        generation=stated.generation,
    )


# The desired rules.


@frozen(kw_only=True)
class DesiredRules:
    """The file or directory that has all desired rules of a source, and how it is read."""

    path: str
    form: AclsFormat = AclsFormat.AUTO
    modules: Mapping[str, str] = field(factory=dict)
    """The directory of each Terraform module that is not among the files, by its source."""
    exclude: tuple[str, ...] = ()
    """Globs of files that are not read."""
    accept_unread: frozenset[str] = frozenset()
    """Labels of content that may stay unread."""
    inputs: ModuleInputs = NO_INPUTS
    """What the root modules of Terraform get."""
    topics: str | None = None
    """A file of the topics that exist."""


@frozen(kw_only=True)
class WantedRules:
    """The desired rules of a source."""

    rules: frozenset[bytes]
    origins: Origins = NO_ORIGINS
    """Their locations."""
    unread: tuple[Unread, ...] = ()
    """Content that was not read, may hold rules and is not accepted."""


@frozen(kw_only=True)
class PlanGoal:
    """All rules of a source, or changes of some; exactly one of the two is not None."""

    path: str
    rules: frozenset[bytes] | None = None
    changes: tuple[RuleChange, ...] | None = None
    origins: Origins = NO_ORIGINS
    """Where the rules stand."""
    unread: tuple[Unread, ...] = ()
    """Content that may hold more rules."""

    def ranges(self) -> Iterator[StandardAcl]:
        """Yield the rules whose hosts are ranges of addresses."""
        yield from ranges_among(self.rules or ())
        yield from (each.acl for each in self.changes or () if is_cidr(each.acl.host))

    def change_of(self, ownership: Holdings, *, adopt: bool) -> PlannedChange:
        """Return what has to change where this is held. Raises RefusedError: as change_as_asked."""
        if self.rules is not None:
            return change_to_want(ownership, self.rules, adopt=adopt)
        return change_as_asked(ownership, self.changes or (), adopt=adopt)


def read_goal(source: DesiredRules) -> PlanGoal:
    """Return all rules that are wanted. Raises as read_wanted_rules."""
    desired = read_wanted_rules(source)
    return PlanGoal(path=source.path, rules=desired.rules, origins=desired.origins, unread=desired.unread)


def read_changes_goal(path: str) -> PlanGoal:
    """Return the changes of a file. Raises ConfigError: a line is not a change; OSError: the file cannot be read."""
    changes = tuple(read_changes(path))
    return PlanGoal(path=path, changes=changes, origins=ChangedOrigins.of_changes(NO_ORIGINS, changes))


def read_wanted_rules(goal: DesiredRules, tell: Callable[[str], None] = note) -> WantedRules:
    """Return the desired rules; the callback gets what was read.

    Raises:
        ConfigError: what is in the files is no rule; OSError: a file cannot be read.

    """
    topics = None if goal.topics is None else NameFile(goal.topics).names
    with progress(f"reading {goal.path}", BYTES) as advance:
        options = ReadOptions(
            form=goal.form,
            modules=goal.modules,
            exclude=goal.exclude,
            inputs=goal.inputs,
            topics=topics,
            advance=advance,
            strict=True,  # a rule that never comes is no less wanted
        )
        source = find_rules(goal.path, options)
        rules = frozenset(_content(rule.acl, source.origins) for rule in source.rules)
    for text in source.notes:
        tell(text)
    return WantedRules(rules=rules, origins=source.origins, unread=not_accepted(source.unread, goal.accept_unread))


def _content(acl: StandardAcl, origins: Origins) -> bytes:
    try:
        return content_of(acl)
    except EncodeError as error:
        raise ConfigError(f"a rule{places_text(acl, origins)}: {error}") from error


# Makes a plan.


@frozen(kw_only=True)
class Ownership:
    """What belongs to the source, and how much of it may be deleted."""

    journal: Path
    others: Sequence[Path] = ()
    """The journals of other sources."""
    adopt: bool = False
    """Whether a wanted rule that is there already becomes its own."""
    limit: DeleteLimit = field(factory=DeleteLimit)
    fail_on_unread: bool = False
    """Whether unread content of the source refuses a plan that deletes nothing as well."""


@frozen(eq=False, kw_only=True)
class NewPlan:
    """A plan, and what it was made from."""

    plan: Plan
    change: PlannedChange
    place: FoundPlace
    goal: PlanGoal
    ownership: Ownership

    def check(self) -> None:
        """Check the plan.

        Raises:
            RefusedError: a source without rules would delete all, or one with unread content any; or as
                FoundPlace.check_plan.

        """
        change = self.change
        unread, always, limit = self.goal.unread, self.ownership.fail_on_unread, self.ownership.limit
        if unread and (change.removed or always):
            why = "" if always else f", and {plural(len(change.removed), 'rule')} would be deleted"
            raise RefusedError(
                f"{self.goal.path}: {unread_text(unread)}{why}: render or move the content, or "
                "--accept-unread KIND if it holds no rule of this source"
            )
        if self.goal.rules == frozenset() and change.removed and limit == DeleteLimit():  # none was given
            raise RefusedError(
                f"{self.goal.path}: has no rules at all, so all {len(change.removed):,} that are owned would be "
                "deleted: expected --max-deletes if that is meant"
            )
        self.place.check_plan(change, self.plan.steps, limit, origins=self.goal.origins)

    def objects(self) -> Iterator[dict[str, object]]:
        """Yield an object for each step."""
        return map(step_object, self.plan.steps)


def report_of(plan: Plan, change: PlannedChange, place: FoundPlace, uses: RuleUses | None = None) -> PlanReport:
    """Return what is reported of a plan; `uses`: when the ACLs that it deletes were last used."""
    return PlanReport(
        name=place.name,
        state=place.state,
        plan=plan,
        change=change,
        uses=uses,
        kafka=place.kafka,
        premises=place.premises,
    )


def new_plan(address: PlaceAddress, goal: PlanGoal, ownership: Ownership, stated: StatedSettings) -> NewPlan:
    """Make a plan for a place; it is not checked yet (`NewPlan.check`). What is not known is noted.

    Raises:
        RefusedError: something cannot be done.
        ConfigError: files that hold something else.
        MetadataError, OSError: the place, a journal or a file cannot be read.

    """
    settings, ranges = place_settings(stated), goal.ranges()
    place = find_place(address, settings, ownership.journal, note, ownership.others, ranges=ranges)
    change = goal.change_of(place.holdings, adopt=ownership.adopt)
    plan = make_plan(change, place.circumstances(origin_now(goal.path)))
    return NewPlan(
        plan=plan,
        change=change,
        place=place,
        goal=goal,
        ownership=ownership,
    )
