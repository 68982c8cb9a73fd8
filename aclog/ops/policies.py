"""Policies of one state, or of two that are compared.

The settings that decide on them, what is unknown of these, and the generations of Kafka that may decide.
"""

# ruff: noqa: PLC0415
# The analysis, a fifth of the imports, is imported by the functions that need it: a decision about one name works
# without.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import TYPE_CHECKING, Protocol, Self

from attrs import evolve, field

from aclog.authorizer.acl import Origins, TwoOrigins, acl_text, places_text
from aclog.authorizer.acls_image import ChangedOrigins, RuleChange, changed_acls, changes_between, net_changes
from aclog.authorizer.settings import (
    SUPER_USERS_CONFIG,
    Generation,
    GenerationPair,
    Settings,
    parse_super_users,
    super_user_mistakes,
)
from aclog.authorizer.standard import Premises
from aclog.authorizer.symbols import symbol_refusal
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.values import frozen
from aclog.snapshots.deciding_kafka import (
    DecidingKafka,
    deciding_kafka,
    generation_pairs,
    kafka_of_both,
    kafka_text,
    ranges_concern_controllers,
)
from aclog.snapshots.image import Image, StateSource
from aclog.sources.acl_lines import NameFile
from aclog.sources.choice import UNREAD, AclsSource, ChosenSource, gaps_of, settings_premises
from aclog.sources.notes import Notify
from aclog.terminal.columns import json_text
from aclog.terminal.notices import progress
from aclog.terminal.output import note, warn

if TYPE_CHECKING:
    from aclog.analysis.comparison import Compared, Comparison, SidePremises
    from aclog.analysis.policy import G, NameMap, Policy
    from aclog.analysis.regions import Direction, ExistingNames, JsonObject, Query
    from aclog.sources.accesses import Accesses
    from aclog.sources.formats.unread import Unread

# What is stated of that which decides, by flags, by a file of settings or by a caller of the library.


class StatedSettings(Protocol):
    """What is stated of the settings of an authorizer."""

    @property
    def super_users(self) -> str | None:
        """As in the broker's super.users; None if nothing states them."""

    @property
    def allow_everyone(self) -> bool | None:
        """As the broker's allow.everyone.if.no.acl.found; None is false."""

    @property
    def documented(self) -> bool:
        """Whether decisions follow Kafka's documentation instead of Kafka 4.3.1."""

    @property
    def generation(self) -> Generation | None:
        """The generation of the Kafka that decides; None if nothing states it."""

    def configs(self) -> frozenset[str]:
        """Return the properties of brokers whose values are stated."""

    def of_generation(self, generation: Generation) -> Self:
        """Return the same for a Kafka of this generation."""


def warn_of_super_users(stated: StatedSettings, flag: str = "--super-users") -> None:
    """Warn of super users that are likely unintended; `flag` named them. Raises ConfigError: one without a colon."""
    for mistake in super_user_mistakes(stated.super_users):
        warn(f"{flag}: {mistake}")


# What is unknown of that which decides in a source, noted on stderr before a command answers.


SUPER_USERS_UNKNOWN = "super users are not in this source; each is allowed everything (--super-users)"


def lacks_super_users(choice: ChosenSource, stated: StatedSettings) -> bool:
    """Return whether nothing states the super users, and the source cannot: only a running cluster has settings."""
    return stated.super_users is None and not choice.is_live


def read_premises(choice: ChosenSource, configs: AbstractSet[str]) -> Premises:
    """Return what is unknown of that which decides in a source, and note each.

    In a running cluster these are the properties that are not in `configs` and that a node hides or has set, and nodes
    without an authorizer of Kafka's; of a log or checkpoint, the records that the state lacks that `choice` returned
    last. `configs`: the properties whose values are given (StatedSettings.configs).

    Raises:
        RequestError: no node of the cluster has an authorizer.

    """
    if choice.has_premises(configs):  # an answer of several parts reads and notes them once
        return choice.premises(configs)
    premises = choice.premises(configs)
    for premise in premises.without({UNREAD}).unknown:  # which was noted when the source was read
        note(premise.note())
    return premises


def refuse_symbols(image: Image, origins: Origins, what: str) -> None:
    """Refuse rules with values known after apply only.

    Raises:
        ConfigError: there is one; the text has its location, the value and `what`, which cannot be done.

    """
    for acl in image.acls.symbolic():
        raise ConfigError(f"{acl_text(acl)}{places_text(acl, origins)}: {what}: {symbol_refusal(acl)}")


def refuse_unless_known(premises: Premises, what: str) -> None:
    """Refuse to continue if anything but the super users is unknown.

    Raises:
        ConfigError: it is; the text begins with `what`.

    """
    unknown = premises.without({SUPER_USERS_CONFIG}).unknown
    if unknown:
        raise ConfigError(f"{what}: {'; '.join(each.note() for each in unknown)}")


# What decides on the state of a command, where several generations of Kafka may: both answers, or none.


@frozen(kw_only=True)
class EachGeneration:
    """What is stated, for each generation that may decide on a state."""

    kafka: DecidingKafka
    stated: Mapping[Generation, StatedSettings] = field(factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether one generation decides, or all that may decide alike."""
        return self.kafka.is_known

    @property
    def first(self) -> StatedSettings:
        """What is stated, for the only generation, or for the oldest."""
        return self.stated[self.kafka.generations[0]]

    @property
    def of_brokers(self) -> tuple[Generation, ...]:
        """The generations that may decide what no controller decides."""
        return self.kafka.of_brokers

    def warn(self) -> None:
        """Warn that several generations may decide and that answers may differ; nothing if one decides."""
        if not self.is_known:
            warn(self.kafka.ambiguity())


def each_generation(
    image: Image, stated: StatedSettings, requests: Iterable[tuple[int, int]] | None = None
) -> EachGeneration:
    """Return what is stated, for each generation that may decide on a state.

    `requests`: the resource type and the operation of all requests in question, as codes; None if they may be any.
    """
    kafka = deciding_kafka(
        image,
        stated.generation,
        controllers=None if requests is None else ranges_concern_controllers(image.acls, requests),
    )
    return EachGeneration(kafka=kafka, stated={each: stated.of_generation(each) for each in kafka.generations})


def only_generation(image: Image, stated: StatedSettings) -> StatedSettings:
    """Return what is stated, for the one generation that decides: for a caller that gives one answer.

    Raises:
        ConfigError: several may decide, and a rule of the state has a range as host.

    """
    generations = each_generation(image, stated)
    if not generations.is_known:
        raise ConfigError(generations.kafka.ambiguity())
    return generations.first


# The topics that exist: of a file (`--topics`), or of the states that a command has read.


def existing_topics(
    file: NameFile | None, images: Iterable[Image], sources: Iterable[ChosenSource] = ()
) -> ExistingNames | None:
    """Return the topics of a file of names, else those of the states and clusters that were read.

    None if no source has any.

    Raises:
        ConfigError: a line is not UTF-8; OSError: the file cannot be read.

    """
    from aclog.analysis.regions import ExistingNames

    if file is not None:
        return ExistingNames.of(file.names())
    topics = {name for image in images for name in image.opaque.topic_names()}
    for source in sources:
        try:
            topics.update(source.topic_names())
        except MetadataError as error:  # what is counted matters less than what is compared
            note(f"{source.source.name}: topics are not counted: {error}")
    return ExistingNames.of(topics) if topics else None


# Policies: the state and the settings of one side, or of two that are compared.


@frozen(eq=False, kw_only=True, repr=False)
class Sides:
    """Two policies, the rules that only one of them has, and the images and sources that they come from."""

    old: Policy
    new: Policy
    changes: Sequence[RuleChange]
    images: tuple[Image, ...]
    sources: tuple[ChosenSource, ...]
    topics: NameFile | None
    """Those of --topics."""
    origins: TwoOrigins
    """Where the rules of both stand."""
    premises: SidePremises
    """What is unknown of the settings of both."""
    only_controllers: bool = False
    """Whether only controllers decide by the generations of the two."""

    def refs(self) -> list[str]:
        """Return the commits of which files were read."""
        return [source.ref for each in self.sources if (source := each.git_place) is not None]

    @property
    def unread(self) -> tuple[Unread, ...]:
        """Content of both sources that was not read and may hold rules, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(each.unread for each in self.sources)))

    def existing_topics(self) -> ExistingNames | None:
        """Return the topics that exist: those of the file, else those of both states and sources."""
        return existing_topics(self.topics, self.images, self.sources)


def policy_of(image: Image, stated: StatedSettings) -> Policy:
    """Return the policy of a state; warn as settings_of.

    Raises:
        ConfigError: a super user without a colon, or which generation of Kafka decides is not known, and matters.

    """
    warn_of_super_users(stated)
    return policy_by(image, only_generation(image, stated))


def policies_of(
    image: Image, stated: StatedSettings, requests: Iterable[tuple[int, int]] | None = None
) -> dict[Generation, Policy]:
    """Return the policy of a state for each generation of Kafka that may decide; warn if there is more than one.

    `requests` as in `each_generation`.

    Raises:
        ConfigError: a super user without a colon.

    """
    warn_of_super_users(stated)
    each = each_generation(image, stated, requests)
    each.warn()
    return {generation: policy_by(image, own) for generation, own in each.stated.items()}


def settings_of(stated: StatedSettings) -> Settings:
    """Return the settings that are stated; warn of super users that are likely unintended.

    Raises:
        ConfigError: a super user without a colon.

    """
    warn_of_super_users(stated)
    return settings_by(stated)


def policy_by(image: Image, stated: StatedSettings) -> Policy:
    """Return the policy of a state by settings that state the Kafka; no warning. Raises ConfigError: as settings_of."""
    from aclog.analysis.policy import Policy

    settings = settings_by(stated)
    return Policy(image.acls.with_options(documented=settings.documented, cidr=settings.cidr), settings)


def settings_by(stated: StatedSettings) -> Settings:
    """Return the settings that are stated; no warning. Raises ConfigError: a super user without a colon."""
    return Settings(
        super_users=parse_super_users(stated.super_users),
        allow_everyone=bool(stated.allow_everyone),
        documented=stated.documented,
        cidr=stated.generation is Generation.V4_4,
        is_kafka_stated=stated.generation is not None,
    )


@frozen(eq=False, kw_only=True, repr=False)
class TwoStates:
    """Two states that are compared, and what is stated of that which decides on each; nothing is read yet."""

    first: ChosenSource
    second: ChosenSource | None
    """None: the first state with `changes`."""
    changes: Sequence[RuleChange] = ()
    old_settings: StatedSettings
    new_settings: StatedSettings
    topics: NameFile | None = None
    """Those that exist."""
    maps: tuple[NameMap, ...] = ()
    """How names of the first state are called in the second one."""
    notify: Notify = note

    def read_each(self) -> dict[Generation | GenerationPair | None, Sides]:
        """Read both sides for each pair of generations of Kafka that decides (generation_pairs), by its own each.

        Warns if there is more than one, and notes if another Kafka decides on the second state.

        Raises:
            ConfigError: a malformed file, or a change that was not made for this state.
            MetadataError, OSError: a source is damaged or cannot be read.

        """
        from aclog.analysis.policy import mapped_acls

        first, second = self.first, self.second
        before = first.image()
        after = before.with_acls(changed_acls(before.acls, self.changes)) if second is None else second.image()
        premises = self._premises()
        old = before.with_acls(mapped_acls(before.acls, self.maps)) if self.maps else before
        same_source = second is None and not self.maps
        pairs = self._generations(before, after)
        between = net_changes(self.changes) if same_source else changes_between(old.acls, after.acls)
        origins = self._origins()
        return {
            generation: Sides(
                old=policy_by(old, self.old_settings.of_generation(pair.old)),
                new=policy_by(after, self.new_settings.of_generation(pair.new)),
                changes=between,
                images=(before, after),
                sources=(first,) if second is None else (first, second),
                topics=self.topics,
                origins=origins,
                premises=premises,
                only_controllers=pair.only_controllers,
            )
            for generation, pair in pairs.items()
        }

    def _generations(self, before: Image, after: Image) -> dict[Generation | GenerationPair | None, GenerationPair]:
        """Return the generations that decide on both states; warn and note as `read_each`.

        If a flag names a Kafka for the second one only, and the first one does not state its own, the first is decided
        by the other generation, as before an upgrade.
        """
        named = self.old_settings.generation, self.new_settings.generation
        old, new = kafka_of_both((before, after), named)
        if old.states_nothing and named[0] is not named[1]:  # --to-kafka-version
            (other,) = set(Generation) - set(new.generations)
            old = DecidingKafka(generations=(other,), stated=other)
        is_same = self.second is None or _is_same_source(self.first.source, self.second.source)
        pairs = generation_pairs(old, new, is_one_cluster=is_same)
        if len(pairs) > 1:
            warn(next(kafka.ambiguity() for kafka in (old, new) if not kafka.is_known))
        moved = [pair for pair in pairs.values() if pair.old is not pair.new]
        if named == (None, None) and moved:
            which = f": {kafka_text(old)}; then {kafka_text(new)}" if None in pairs else f", on {moved[0]}"
            self.notify(f"another Kafka decides on the second state{which}")
        return pairs

    def _premises(self) -> SidePremises:
        """Return what is unknown, and note it; a side that is no running cluster has the settings of the other one.

        Both states have been read.
        """
        from aclog.analysis.comparison import SidePremises

        first, second = self.first, self.second
        old_given, new_given = self.old_settings.configs(), self.new_settings.configs()
        if second is not None and first.is_live and second.is_live and first.source.name != second.source.name:
            old, new = first.premises(old_given), second.premises(new_given)
            for choice, unknown in ((first, old), (second, new)):
                for premise in unknown.unknown:
                    self.notify(f"{choice.source.name}: {premise.note()}")
            return SidePremises(old=old, new=new, same_settings=False)
        live = second if second is not None and second.is_live else first
        settings = settings_premises(live.source, old_given & new_given)
        old_gaps = gaps_of(first.source)
        new_gaps = old_gaps if second is None else gaps_of(second.source)
        for premise in settings.also(old_gaps).also(new_gaps).without({UNREAD}).unknown:
            self.notify(premise.note())
        sides = SidePremises.of_one(settings, old_given, new_given)
        return evolve(sides, old=sides.old.also(old_gaps), new=sides.new.also(new_gaps))

    def _origins(self) -> TwoOrigins:
        first = self.first.origins
        from aclog.analysis.policy import MappedOrigins

        old = MappedOrigins(first, self.maps) if self.maps else first
        if self.second is not None:
            return TwoOrigins(old=old, new=self.second.origins)
        both = ChangedOrigins.of_changes(first, self.changes)
        return TwoOrigins(old=old if self.maps else both, new=both)


def _is_same_source(first: StateSource, second: StateSource) -> bool:
    """Return whether two sources are known to be one; others may be of one cluster, as a checkpoint and its log."""
    if not isinstance(first, AclsSource) and not isinstance(second, AclsSource):
        from aclog.sources.logs import LogSource

        if isinstance(first, LogSource) and isinstance(second, LogSource):
            return first.directory.resolve() == second.directory.resolve()
    return first.name == second.name


# Differences of two policies, where several generations of Kafka may decide on both: those of each, and of all.


def compare(
    each: Mapping[Generation | GenerationPair | None, Sides],
    *,
    direction: Direction | None = None,
    query: Query | None = None,
    accesses: Accesses | None = None,
) -> Compared:
    """Compare two sides, for each generation; `direction`: only what is gained, or only what is lost.

    `query`: only these requests. `accesses`: those that are decided differently are counted.

    Raises:
        ConfigError, OSError: the file of topics is malformed, or cannot be read.

    """
    from aclog.analysis.comparison import Comparison

    topics = next(iter(each.values())).existing_topics()

    def compared(sides: Sides) -> Comparison:
        """Compare two sides."""
        comparison = Comparison.of(
            sides.old,
            sides.new,
            changes=sides.changes,
            direction=direction,
            query=query,
            topics=topics,
            flips=None if accesses is None else accesses.flipped(sides.old, sides.new),
            origins=sides.origins,
        )
        return comparison.by_controllers() if sides.only_controllers else comparison

    with progress("comparing"):
        return {generation: compared(sides) for generation, sides in each.items()}


def difference_objects(compared: Mapping[G, Comparison]) -> Iterator[JsonObject]:
    """Yield an object for each region, with `generation` where only one decides so."""
    from aclog.analysis.policy import generation_object, merged

    answers = {generation: comparison.json_lines() for generation, comparison in compared.items()}
    objects = ({**line, **generation_object(generation)} for line, generation in merged(answers, json_text))
    # Nodes that were upgraded and nodes that ran the later generation before may have the same difference.
    yield from objects if len(compared) < 3 else {json_text(each): each for each in objects}.values()
