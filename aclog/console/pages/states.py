"""States of a source to show.

The newest, those of the past, and the viewer's own; the ACLs of a state in order, and the inputs of pages.
"""

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice, pairwise, takewhile
from weakref import WeakKeyDictionary

from attrs import evolve, field

from aclog.analysis.comparison import Compared as ByKafka
from aclog.analysis.comparison import Comparison, differences, rows_of_each
from aclog.analysis.policy import Policy
from aclog.analysis.rows.report import ReportRow
from aclog.authorizer.acl import NO_ORIGINS, ChangePlace, Origins, ResourcePattern, StandardAcl
from aclog.authorizer.acls_image import AclsImage, RuleChange, net_changes
from aclog.authorizer.codes import WILDCARD, PatternType
from aclog.authorizer.index.layout import Pause, no_pause
from aclog.authorizer.settings import Generation, GenerationPair, Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises, StandardAuthorizer
from aclog.console.draft import Drafts, Editing
from aclog.console.findings import Kind, Lookout, Uses
from aclog.console.listing import Listing, NameKey, Ordered, span
from aclog.console.live import (
    FollowedApplies,
    KnownHistory,
    LiveHistory,
    LivePremises,
    LiveState,
    RuleTimeline,
    none_unknown,
)
from aclog.console.login.guard import Own, Sights, decides_alone, visible_premises, visible_settings
from aclog.console.pages.page import BadParameterError, CommandLine
from aclog.console.patch import Files
from aclog.console.shared import Cache
from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import define, frozen
from aclog.planning.plan import ApplyNote
from aclog.snapshots.deciding_kafka import (
    ANY_KAFKA,
    DecidingKafka,
    KafkaChange,
    deciding_kafka,
    generation_pairs,
    node_history,
    range_hosts,
    ranges_concern_controllers,
    without_moves,
)
from aclog.snapshots.history import Change, ChangeKind
from aclog.snapshots.image import Image
from aclog.sources.logs import ReplacedError
from aclog.targets.applies import with_applies

# States to show: the newest one, and requested ones of the past; each with its derived data.


_PAST = 6
"""States of the past that are kept."""


class NotReadyError(Exception):
    """There is no state to show yet."""


@define(eq=False)
class LateListing:
    """A listing made on first use: it takes longer than all other derived data of a state."""

    _make: Callable[[], Listing] | None
    """None once it is made: it holds on to the state before."""
    _listing: Listing | None = field(default=None, init=False)
    _making: threading.Lock = field(factory=threading.Lock, init=False)

    @property
    def made(self) -> Listing | None:
        """The listing; None: it is not made yet."""
        return self._listing

    def get(self) -> Listing:
        """Return the listing; concurrent callers wait while it is made."""
        listing = self._listing
        if listing is None:
            with self._making:
                listing = self._listing
                if listing is None:
                    assert self._make is not None  # noqa: S101 - until it is made
                    listing = self._listing = self._make()
                    self._make = None
        return listing


class UnknownStateError(BadParameterError):
    """A state of the past that cannot be read or decided; the text may name rules of any principal."""


@frozen(eq=False, kw_only=True)
class State:
    """A state, and its derived data. Immutable by convention."""

    image: Image
    policy: Policy
    late: LateListing
    as_of: str | None = None
    """The moment as requested; None for the newest state."""
    whole: Policy | None = None
    """The policy with all rules, if `policy` has only those that a viewer may see."""
    premises: Premises = ALL_KNOWN
    """Unknown premises of the settings."""
    kafka: DecidingKafka
    """The generations of Kafka that may decide on it."""
    by_kafka: Mapping[Generation, "State"] = field(factory=dict)
    """The same state by each generation, even if one decides, or all decide alike; only by one that a flag names."""

    @property
    def policies(self) -> dict[Generation, Policy]:
        """The policies of the generations that may decide differently; one, if all decide alike."""
        return {generation: self.by_kafka[generation].policy for generation in self.kafka.generations}

    @property
    def listing(self) -> Listing:
        """Its rules in order."""
        return self.late.get()

    @property
    def authorizer(self) -> StandardAuthorizer:
        """The authorizer, always with all rules."""
        return (self.whole or self.policy).authorizer

    def principal(self, text: str) -> str:
        """Return the principal of a text: as it is if a rule has that name, otherwise stripped of blanks.

        A name without its type is that of a user, or of the only principal in rules that has it; otherwise as it is.
        """
        principals = self.listing.principals
        stripped = text.strip()
        if text in principals or not stripped or ":" in stripped:
            return text if text in principals else stripped
        user = f"User:{stripped}"
        named = [user] if user in principals else [each for each in principals if each.partition(":")[2] == stripped]
        return named[0] if len(named) == 1 else stripped

    @property
    def offset(self) -> int:
        """Its end offset; 0 where there are no offsets."""
        return self.image.end_offset


@define(eq=False, kw_only=True)
class States:
    """The states of a source. Safe for any number of threads."""

    live: LiveState
    settings: Settings
    premises: LivePremises = field(factory=none_unknown)
    """Unknown premises."""
    pause: Pause = no_pause
    """Called again and again while a state of the past is made, which others may have to wait for."""
    _newest: State | None = field(default=None, init=False)
    _undecided: str = field(default="", init=False)
    """Why the newest state is not shown: the version of Kafka that decides is unknown, and matters."""
    _past: "OrderedDict[int, State]" = field(factory=OrderedDict, init=False)
    """By the identity of its image: the same text may name another moment later."""
    _version: int = field(default=0, init=False)
    start_ms: int = field(factory=current_time_ms, init=False)
    """Differs at each start, so that a page from before a restart is refreshed."""
    _deriving: threading.Lock = field(factory=threading.Lock, init=False)
    _keeping: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self.live.prepare = self._follow
        if self.live.newest is not None:
            self._follow(self.live.newest.image)

    @property
    def version(self) -> str:
        """Changes with the rules that `now` shows; read it first: a page may be newer than its version."""
        return "none" if self._newest is None else f"{self.start_ms}-{self._version}"

    def now(self) -> State:
        """Return the newest known state. Raises NotReadyError: none yet, with the reason."""
        if self._newest is None:
            raise NotReadyError(self._undecided or self.live.trouble or "no state was read yet")
        return self._newest

    def _follow(self, image: Image) -> None:
        """Derive the data of the next state before it is published; called by the thread that reads it."""
        with self._deriving:
            self.premises.look()
            before = self._newest
            if before is not None and before.image is image:
                if before.premises is not self.premises.unknown:  # a gap opened or closed behind the same records
                    self._newest = evolve(before, premises=self.premises.unknown)
                    self._version += 1
                return
            try:
                newest = self._derived(image, before)
                listing = newest.late.get()
                _ = listing.names_index, listing.rules_index  # before the first request
                self._newest, self._undecided = newest, ""
            except ConfigError as error:
                self._newest, self._undecided = None, str(error)
            if before is None or before.image.acls is not image.acls or before.premises is not self.premises.unknown:
                self._version += 1

    def at(self, as_of: str) -> State:
        """Return the state at a moment, the newest one if the text is empty.

        Raises:
            BadParameterError: no such moment. UnknownStateError: the state is unknown. NotReadyError: as `now`.
            ReplacedError: another log is where that of the newest state was.

        """
        if not as_of:
            return self.now()
        self.pause()
        try:
            image = self.live.past(as_of)
        except ReplacedError:  # not an error of the request
            raise
        except (ConfigError, LogError) as error:
            raise BadParameterError(f"as of {as_of[:80]}: {error}") from error
        except (MetadataError, OSError) as error:
            raise UnknownStateError(f"as of {as_of[:80]}: {error}") from error
        if image is None:
            return self.now()
        with self._keeping:
            cached = self._past.get(id(image))
        if cached is not None and cached.as_of == as_of and cached.premises is self.premises.unknown:
            return cached
        try:
            self.pause()
            state = self._derived(image, cached or self._newest, as_of)
        except ConfigError as error:
            raise UnknownStateError(f"as of {as_of[:80]}: {error}") from error
        with self._keeping:
            self._past[id(image)] = state
            self._past.move_to_end(id(image))
            while len(self._past) > _PAST:
                self._past.popitem(last=False)
        return state

    def _derived(self, image: Image, before: State | None, as_of: str | None = None) -> State:
        # Another one for each state: brokers may have been upgraded.
        kafka = deciding_kafka(image, self.settings.generation)
        if before is not None and before.image.acls is image.acls and before.kafka.generations == kafka.generations:
            # records of other kinds were committed
            unknown = self.premises.unknown
            by_kafka = {
                each: evolve(own, image=image, as_of=as_of, premises=unknown) for each, own in before.by_kafka.items()
            }
            return evolve(before, image=image, as_of=as_of, premises=unknown, kafka=kafka, by_kafka=by_kafka)
        late = LateListing(lambda: self._listing(image.acls, before, is_past=as_of is not None))

        def decided(generation: Generation) -> State:
            """Return the state as a generation decides it."""
            return State(
                image=image,
                policy=policy_of(image.acls, self.settings.of_generation(generation)),
                late=late,
                as_of=as_of,
                premises=self.premises.unknown,
                kafka=kafka,
            )

        possible = tuple(Generation) if self.settings.generation is None else kafka.generations
        by_kafka = {generation: decided(generation) for generation in possible}
        return evolve(by_kafka[kafka.generations[0]], by_kafka=by_kafka)

    def _listing(self, acls: AclsImage, before: State | None, *, is_past: bool) -> Listing:
        pause = self.pause if is_past else no_pause
        return Listing.of(acls, pause) if before is None else before.listing.followed_by(acls, pause)


def policy_of(acls: AclsImage, settings: Settings) -> Policy:
    """Return the policy of some rules by settings."""
    return Policy(acls.with_options(documented=settings.documented, cidr=settings.cidr), settings)


# The states of a source as one generation of Kafka decides them, where several may.


@frozen(eq=False, kw_only=True)
class StatesByKafka:
    """The states of a source, each by one generation if several may decide on it."""

    states: "States | OwnStates"
    generation: Generation

    @property
    def live(self) -> LiveState:
        """The source that is followed."""
        return self.states.live

    @property
    def version(self) -> str:
        """As that of the states."""
        return self.states.version

    def now(self) -> State:
        """Return the newest state. Raises as States.now."""
        return self._of(self.states.now())

    def at(self, as_of: str) -> State:
        """Return the state at a moment. Raises as States.at."""
        return self._of(self.states.at(as_of))

    def _of(self, state: State) -> State:
        return state.by_kafka.get(self.generation, state)


# States as one viewer may see them: with the rules that apply to the viewer.


@define(eq=False, kw_only=True)
class OwnStates:
    """The states of a source for one viewer: decided from all rules, with only the visible rules shown."""

    states: States
    sights: Sights
    own: Own
    _visible: "WeakKeyDictionary[State, State]" = field(factory=WeakKeyDictionary, init=False)
    """By the whole state, with weak references: states of former viewers are not kept in memory."""
    _versions: "WeakKeyDictionary[State, str]" = field(factory=WeakKeyDictionary, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    @property
    def live(self) -> LiveState:
        """The source that is followed."""
        return self.states.live

    @property
    def version(self) -> str:
        """Changes with the visible rules, and when other rules that decide for the viewer may have changed."""
        version = self.states.version  # before the state, which may be newer
        whole = self._judged_alone()
        if whole is None:
            return version
        visible = self._visible_state(whole)
        with self._lock:
            digest = self._versions.get(visible)
        if digest is None:
            digest = visible.image.acls.digest().hex()
            with self._lock:
                self._versions[visible] = digest
        return f"{self.states.start_ms}-{digest}"

    @property
    def is_version_known(self) -> bool:
        """Whether `version` needs no computation, so that an event loop may call it."""
        whole = self._judged_alone()
        if whole is None:
            return True
        with self._lock:
            visible = self._visible.get(whole)
            return visible is not None and visible in self._versions

    def _judged_alone(self) -> State | None:
        """Return the newest state if the viewer has a separate version; None if the global version applies."""
        try:
            whole = self.states.now()
        except NotReadyError:
            return None
        return whole if decides_alone(whole.image, whole.policy.settings) else None

    def now(self) -> State:
        """Return the newest state as the viewer sees it. Raises as States.now."""
        return self._visible_state(self.states.now())

    def at(self, as_of: str) -> State:
        """Return the state at a moment as the viewer sees it. Raises as States.at."""
        return self._visible_state(self.states.at(as_of))

    def _visible_state(self, whole: State) -> State:
        with self._lock:
            cached = self._visible.get(whole)
        if cached is not None:
            return cached
        image = self.sights.image(whole.image, self.own)
        visible = State(
            image=image,
            policy=policy_of(image.acls, visible_settings(whole.policy.settings, self.own)),
            late=LateListing(lambda: Listing.of(image.acls)),
            as_of=whole.as_of,
            whole=whole.policy,
            premises=visible_premises(whole.premises),
            kafka=_visible_kafka(whole.kafka, image),
        )
        by_kafka = {
            generation: evolve(
                visible, policy=policy_of(image.acls, visible_settings(own.policy.settings, self.own)), whole=own.policy
            )
            for generation, own in whole.by_kafka.items()
        }
        visible = evolve(visible, by_kafka=by_kafka)
        with self._lock:
            self._visible[whole] = visible
        return visible


def _visible_kafka(kafka: DecidingKafka, image: Image) -> DecidingKafka:
    """Return which generations may decide on visible rules: ranges of hidden ones do not count."""
    hosts = () if kafka.is_known else tuple(sorted(set(range_hosts(image.acls))))
    return evolve(kafka, generations=kafka.generations if hosts else kafka.generations[:1], hosts=hosts)


# The history of a source, and data derived from its states.


_POLICIES = 24
"""Cached policies, each with the lookup cache of its rules."""
_COMPARISONS = 128
_WARMING = 100
"""Rules that are compared to begin with."""
_WAIT_S = 0.3
"""How long to wait for the history to reach the newest state, which is read in parallel, in seconds."""


@frozen(eq=False, kw_only=True)
class Compared:
    """The interval between two states of a history, given as positions."""

    net: tuple[RuleChange, ...]
    """The rules that only one of them has."""
    comparisons: ByKafka
    """By the generation of Kafka that decides on both states; under None, if each state has its own."""
    rows: tuple[ReportRow, ...]
    """The rows of all; one of only one generation has it."""
    kafka: tuple[DecidingKafka, DecidingKafka]
    """The generations that may decide on the two states."""

    @property
    def is_upgrade(self) -> bool:
        """Whether each state has its own generation, and it matters."""
        old, new = self.kafka
        return old.is_known and new.is_known and old.generations != new.generations

    def ambiguity(self) -> str:
        """Return why several generations may decide; empty if each state has its own."""
        if len(self.comparisons) == 1:
            return ""
        return next((each.ambiguity() for each in reversed(self.kafka) if not each.is_known), "")


@frozen(eq=False, kw_only=True)
class _KnownKafka:
    """The known changes of the Kafka that decides, from an offset up to a state."""

    begin: int
    until: Image
    changes: tuple[KafkaChange, ...]


def _with_hosts(kafka: DecidingKafka, hosts: tuple[str, ...]) -> DecidingKafka:
    return kafka if kafka.is_known else evolve(kafka, hosts=hosts)


def _kafka_at(timeline: RuleTimeline, kafka: DecidingKafka) -> KafkaChange:
    begin = timeline.begin
    return KafkaChange(offset=begin, end_offset=begin, timestamp=timeline.begin_time, kafka=kafka)


DAY_MS = 86_400_000
"""A day, in ms."""


@define(eq=False)
class ChangeIndex:
    """The changes of a timeline by rule, principal, name and day; extended with it. Safe for any number of threads."""

    _timeline: RuleTimeline | None = field(default=None, init=False)
    _positions: dict[Hashable, list[int]] = field(factory=dict, init=False)
    """By rule, principal, and (type, name, pattern type): the positions before the changes, in order."""
    _names: Ordered[NameKey] = field(factory=Ordered, init=False)
    """Type, name and pattern type of the resources in changes, each once, in order."""
    _days: dict[int, list[int]] = field(factory=dict, init=False)
    """By day since 1970: how many rules were added and removed."""
    _added: list[int] = field(factory=lambda: [0], init=False)
    """By position: how many of the changes before it added a rule."""
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def positions(self, timeline: RuleTimeline, key: Hashable) -> list[int]:
        """Return the positions of the changes of a rule, a principal or a name."""
        with self._lock:
            self._follow(timeline)
            return [each for each in self._positions.get(key, ()) if each < len(timeline)]

    def last(self, timeline: RuleTimeline, key: Hashable, before: int) -> int | None:
        """Return the last of these positions that is less than another one; None without such a change."""
        with self._lock:
            self._follow(timeline)
            positions = self._positions.get(key, ())
            place = bisect_left(positions, before)
            return positions[place - 1] if place else None

    def positions_on(self, timeline: RuleTimeline, pattern: ResourcePattern) -> list[int]:
        """Return the positions of the changes of rules that cover a name, or some names with a prefix."""
        kind, name = pattern.resource_type, pattern.name
        keys: Iterable[Hashable] = [
            (kind, WILDCARD, PatternType.LITERAL),
            *((kind, name[:size], PatternType.PREFIXED) for size in range(1, len(name) + 1)),
            *([(kind, name, PatternType.LITERAL)] if name != WILDCARD else []),
        ]
        with self._lock:
            self._follow(timeline)
            if pattern.pattern_type == PatternType.PREFIXED:
                low, high = span(self._names, kind, name)
                keys = dict.fromkeys((*keys, *self._names[low:high]))
            positions = sorted(each for key in keys for each in self._positions.get(key, ()))
        return positions[: bisect_left(positions, len(timeline))]

    def days(self, timeline: RuleTimeline) -> dict[int, tuple[int, int]]:
        """Return how many rules were added and removed, by day since 1970 (UTC)."""
        with self._lock:
            self._follow(timeline)
            return {day: (counts[0], counts[1]) for day, counts in self._days.items()}

    def density(self, timeline: RuleTimeline, offsets: Sequence[int]) -> list[tuple[int, int]]:
        """Return how many rules were added and removed from each offset, exclusive, to the next one, inclusive."""
        with self._lock:
            self._follow(timeline)
            positions = [timeline.position(each) for each in offsets]
            pairs = [(low, high, self._added[high] - self._added[low]) for low, high in pairwise(positions)]
        return [(added, high - low - added) for low, high, added in pairs]

    def _follow(self, timeline: RuleTimeline) -> None:
        last = self._timeline
        if last is timeline:
            return
        if last is not None and len(last) > len(timeline) and last.begin == timeline.begin:
            return  # another thread has seen a later one
        start = 0 if last is None else len(last)
        if last is None or last.begin != timeline.begin or last.changes[-1:] != timeline.changes[start - 1 : start]:
            start = 0
            self._positions, self._names, self._days, self._added = {}, Ordered(), {}, [0]
        come: list[NameKey] = []
        for position, change in enumerate(timeline.changes[start:], start):
            acl = change.rule.acl
            name = acl.resource_type, acl.resource_name, acl.pattern_type
            if name not in self._positions:
                come.append(name)
            for key in (acl, acl.principal, name):
                self._positions.setdefault(key, []).append(position)
            if change.timestamp >= 0:
                counts = self._days.setdefault(change.timestamp // DAY_MS, [0, 0])
                counts[0 if is_added(change) else 1] += 1
            self._added.append(self._added[-1] + is_added(change))
        self._names = self._names.changed((), come)
        self._timeline = timeline


@define(eq=False, kw_only=True)
class History:
    """Safe for any number of threads."""

    live: LiveHistory
    settings: Settings
    applies: FollowedApplies | None = None
    """None if no file records applies."""
    index: ChangeIndex = field(factory=ChangeIndex, init=False)
    _policies: Cache[Policy] = field(factory=lambda: Cache(_POLICIES), init=False)
    _compared: Cache[Compared] = field(factory=lambda: Cache(_COMPARISONS), init=False)
    _kafka: dict[bool, "_KnownKafka"] = field(factory=dict, init=False)
    """By whether controllers count."""
    _reading_kafka: threading.Lock = field(factory=threading.Lock, init=False)

    @property
    def edition(self) -> int:
        """Changes when more of the past is known, or with the error."""
        current = self.live.current
        return -1 if current is None else current.edition

    def current(self, offset: int) -> KnownHistory:
        """Return the known history; waits a little for it to reach an offset. Raises NotReadyError: nothing yet."""
        current = self.live.caught_up(offset, _WAIT_S)
        if current is None:
            raise NotReadyError("the history was not read yet")
        return current

    def added(self, timeline: RuleTimeline, acl: StandardAcl, offset: int) -> Change | None:
        """Return the change that added a rule of the state at an offset; None: it is not known."""
        position = self.index.last(timeline, acl, timeline.position(offset))
        last = None if position is None else timeline.changes[position]
        return last if last is not None and is_added(last) and not last.gap else None

    def at_positions(self, timeline: RuleTimeline, positions: Sequence[int]) -> list[tuple[Change, ApplyNote | None]]:
        """Return the changes at some positions, each with its apply, the last position first."""
        return [self.with_applies(timeline, each, each + 1)[0][0] for each in reversed(positions)]

    def policy(self, timeline: RuleTimeline, position: int, generation: Generation) -> Policy:
        """Return the policy of a position, as a generation of Kafka decides it."""

        def make() -> Policy:
            """Return the policy, made from the nearest known image."""
            return policy_of(timeline.acls_at(position), self.settings.of_generation(generation))

        return self._policies.get((timeline.offset(position), generation), make)

    def kafka(self, timeline: RuleTimeline, *, controllers: bool) -> list[KafkaChange]:
        """Return which generations of Kafka may decide when a known history begins, and each change, in order.

        Where the log no longer records it, any generation may. `controllers` as for kafka_history.
        """
        return list(without_moves(self._node_changes(timeline, controllers=controllers)))

    def _node_changes(self, timeline: RuleTimeline, *, controllers: bool) -> list[KafkaChange]:
        """Return the same, and each change of the nodes of a generation."""
        if self.settings.generation is not None:
            named = DecidingKafka(generations=(self.settings.generation,), stated=self.settings.generation)
            return [_kafka_at(timeline, named)]
        with self._reading_kafka:
            changes = self._known_kafka(timeline, controllers=controllers)
        before = [each for each in changes if each.end_offset <= timeline.begin]
        first = _kafka_at(timeline, before[-1].kafka if before else ANY_KAFKA)
        return [first, *(each for each in changes if timeline.begin < each.end_offset <= timeline.end)]

    def kafka_of_both(self, timeline: RuleTimeline, first: int, last: int) -> tuple[DecidingKafka, DecidingKafka]:
        """Return which generations may decide on the states at two offsets, given the ranges in their rules."""
        both = [timeline.acls_at(timeline.position(offset)) for offset in (first, last)]
        hosts = tuple(sorted({host for acls in both for host in range_hosts(acls)}))
        if not hosts:  # they decide alike
            alike = DecidingKafka(generations=(self.settings.generation or Generation.V4_3,))
            return alike, alike
        changes = self._node_changes(timeline, controllers=any(map(ranges_concern_controllers, both)))
        old, new = ([each.kafka for each in changes if each.end_offset <= offset][-1] for offset in (first, last))
        return _with_hosts(old, hosts), _with_hosts(new, hosts)

    def _known_kafka(self, timeline: RuleTimeline, *, controllers: bool) -> Sequence[KafkaChange]:
        """Return the changes of the deciding Kafka up to the newest state, from the earliest one that is legible on."""
        newest = self.live.live.newest
        image = None if newest is None else newest.image
        cached = self._kafka.get(controllers)
        if cached is not None and cached.begin <= timeline.begin and image is cached.until:
            return cached.changes
        if cached is not None and cached.begin > timeline.begin:  # more of the past is known
            cached = None
        try:
            begin = self.live.live.image_at(timeline.begin) if cached is None else cached.until
            read = takewhile(
                lambda each: image is None or each.end_offset <= image.end_offset,
                node_history(begin, self.live.log, controllers=controllers),
            )
            changes = [*read] if cached is None else [*cached.changes, *islice(read, 1, None)]
        except MetadataError:  # retention has deleted what was not read yet
            return () if cached is None else cached.changes
        if image is not None:
            first = timeline.begin if cached is None else cached.begin
            self._kafka[controllers] = _KnownKafka(begin=first, until=image, changes=tuple(changes))
        return changes

    def net(self, timeline: RuleTimeline, first: int, last: int) -> tuple[RuleChange, ...]:
        """Return the rules that only one of two positions has, as changes from the earlier to the later one."""
        changes = timeline.changes[first:last]
        return tuple(net_changes(RuleChange(added=is_added(each), acl=each.rule.acl) for each in changes))

    def compared(self, timeline: RuleTimeline, first: int, last: int, net: tuple[RuleChange, ...]) -> Compared:
        """Return the difference between the states at two offsets, whose rules differ by `net`."""
        kafka = self.kafka_of_both(timeline, first, last)
        positions = timeline.position(first), timeline.position(last)

        def compare() -> Compared:
            """Compare them."""
            comparisons = {
                key: self._compared_by(timeline, positions, pair, net) for key, pair in generation_pairs(*kafka).items()
            }
            rows = tuple(rows_of_each(comparisons))
            return Compared(net=net, comparisons=comparisons, rows=rows, kafka=kafka)

        return self._compared.get(self._comparison_key(timeline, positions, kafka), compare)

    def _compared_by(
        self, timeline: RuleTimeline, positions: tuple[int, int], pair: GenerationPair, net: tuple[RuleChange, ...]
    ) -> Comparison:
        first, last = positions
        old, new = self.policy(timeline, first, pair.old), self.policy(timeline, last, pair.new)
        comparison = Comparison.of(old, new, changes=net)
        return comparison.by_controllers() if pair.only_controllers else comparison

    def was_compared(self, timeline: RuleTimeline, first: int, last: int) -> bool:
        """Return whether `compared` has the answer cached."""
        kafka = self.kafka_of_both(timeline, first, last)
        positions = timeline.position(first), timeline.position(last)
        return self._compared.has(self._comparison_key(timeline, positions, kafka))

    @staticmethod
    def _comparison_key(
        timeline: RuleTimeline, positions: tuple[int, int], kafka: tuple[DecidingKafka, DecidingKafka]
    ) -> tuple[object, ...]:
        return (*map(timeline.offset, positions), *(each.generations for each in kafka))

    def with_applies(
        self, timeline: RuleTimeline, first: int, last: int
    ) -> tuple[Sequence[tuple[Change, ApplyNote | None]], str]:
        """Return the changes between two positions, each with its author, and why authors are unknown, if they are."""
        changes = timeline.changes[first:last]
        if self.applies is None:
            return [(each, None) for each in changes], "authors are not recorded"
        try:
            applied = self.applies.read()
        except MetadataError as error:
            return [(each, None) for each in changes], f"author unknown: {error}"
        if applied is None:
            return [(each, None) for each in changes], "author unknown (not changed by `aclog apply`)"
        # An apply may have begun before the first of these changes.
        begun = [each.offset for each in applied if each.done and timeline.begin <= each.offset]
        since = max((each for each in begun if changes and each <= changes[0].offset), default=None)
        start = first
        while since is not None and start > 0 and timeline.changes[start - 1].offset >= since:
            start -= 1
        pairs = with_applies(timeline.changes[start:last], applied, timeline.begin)
        return list(islice(pairs, first - start, None)), ""


def warm(acls: AclsImage, settings: Settings) -> None:
    """Compare rules with themselves, to fill the lookup caches of their base."""
    rules = acls.with_options(documented=settings.documented, cidr=settings.cidr)
    some = [rule.acl for rule in islice(rules, _WARMING)]
    for _ in differences(Policy(rules, settings), Policy(rules, settings), changed=some):
        pass


def is_added(change: Change) -> bool:
    """Return whether a change adds its rule."""
    return change.kind is ChangeKind.ADDED


# The inputs of pages.


SEPARATORS = ".-_/:"
"""Where names are thought to have their parts."""


class NotShownError(Exception):
    """The viewer may not see this."""


@frozen(eq=False, kw_only=True)
class Console:
    """A source that is followed, and further data on its cluster."""

    name: str
    """The name of the source."""
    cluster_id: str = ""
    """Empty if the source does not record it."""
    states: States | OwnStates | StatesByKafka
    command: CommandLine
    place: ChangePlace = field(factory=ChangePlace)
    """Where advised commands make their changes."""
    origins: Origins = NO_ORIGINS
    """The locations of rules in files."""
    files: Files | None = None
    """The files of the rules, which a draft may patch; None: of another source, or for this viewer."""
    history: History | None = None
    """None if the source is a single state."""
    lookout: Lookout | None = None
    """The findings; None: not scanned."""
    drafts: Drafts = field(factory=Drafts)
    editing: Editing | None = None
    """Makes and applies plans; None: this console, or this viewer, may not write."""
    viewer: str | None = None
    """The principal of the viewer, if there is a login."""
    own: Own | None = None
    """The viewer, if only the permissions of the viewer are shown; None: all is shown."""

    @property
    def version(self) -> str:
        """Changes with the rules, their findings, or their known history."""
        version = self.states.version
        if self.history is not None:
            version = f"{version}-{self.history.edition}"
        return version if self.lookout is None else f"{version}-{self.lookout.version}"

    @property
    def uses(self) -> Uses | None:
        """The use of the newest rules; None while it is unknown: then rules are neither used nor unused."""
        look = None if self.lookout is None else self.lookout.last_look(Kind.UNUSED)
        return None if look is None or look.result is None else look.result.uses

    def has_principal(self, state: State, principal: str) -> bool:
        """Return whether a state, or its known history, has rules of a principal."""
        if principal in state.listing.principals:
            return True
        history = self.history
        current = None if history is None else history.live.current
        if history is None or current is None:
            return False
        return bool(history.index.positions(current.timeline, principal))

    def principal(self, state: State, text: str) -> str:
        """Return the principal of a text as `State.principal`, also a user whom only the known history has rules of."""
        name = state.principal(text)
        user = f"User:{name}"
        return user if name and ":" not in name and self.has_principal(state, user) else name

    def check_own(self, principal: str) -> None:
        """Refuse requests about other principals if only the permissions of the viewer are shown.

        Raises:
            NotShownError: the principal is not the viewer.

        """
        if self.own is not None and principal != self.own.principal:
            raise NotShownError(
                f"You see the permissions of {self.own.principal} only: those of others need DESCRIBE on the cluster."
            )
