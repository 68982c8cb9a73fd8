"""Policies from the flags of a command.

The states, settings, premises and generations of one side, or of two that are compared.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from attrs import evolve, field, frozen

from aclog.analysis.comparison import SidePremises
from aclog.analysis.policy import MappedOrigins, NameMap, Policy, mapped_acls
from aclog.analysis.regions import ExistingNames
from aclog.authorizer.acls_image import ChangedOrigins, RuleChange, changed_acls, changes_between, net_changes
from aclog.authorizer.origin import TwoOrigins
from aclog.authorizer.premises import Premises
from aclog.authorizer.settings import SUPER_USERS_CONFIG, Generation, Settings, parse_super_users
from aclog.cli.flags.common import AuthorizerFlags, check_one_stdin
from aclog.cli.flags.question import SecondSettingsFlags, SecondStateFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.images import existing_topics
from aclog.metalog.errors import ConfigError
from aclog.snapshots.deciding_kafka import DecidingKafka, deciding_kafka, ranges_concern_controllers
from aclog.snapshots.image import Image
from aclog.sources.acl_lines import NameFile
from aclog.sources.choice import ChosenSource, gaps_of, settings_premises
from aclog.terminal.output import note, warn

# What is unknown of that which decides in a source, noted on stderr before a command answers.


def read_premises(choice: ChosenSource, configs: AbstractSet[str]) -> Premises:
    """Return what is unknown of that which decides in a source, and note each.

    In a running cluster these are the properties that are not in `configs` and that a node hides or has set, and nodes
    without an authorizer of Kafka's; of a log or checkpoint, the records that the state lacks that `choice` returned
    last. `configs`: the properties whose values are given (AuthorizerFlags.configs).

    Raises:
        RequestError: no node of the cluster has an authorizer.

    """
    premises = choice.premises(configs)
    for premise in premises.unknown:
        note(premise.note())
    return premises


def refuse_unless_known(premises: Premises, what: str) -> None:
    """Refuse to go on if anything but the super users is unknown.

    Raises:
        ConfigError: it is; the text begins with `what`.

    """
    unknown = premises.without({SUPER_USERS_CONFIG}).unknown
    if unknown:
        raise ConfigError(f"{what}: {'; '.join(each.note() for each in unknown)}")


# What decides on the state of a command, where several generations of Kafka may: both answers, or none.


@frozen(kw_only=True)
class EachGeneration:
    """The flags of a command for each generation that may decide on a state."""

    kafka: DecidingKafka
    flags: Mapping[Generation, AuthorizerFlags] = field(factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether one generation decides, or all that may decide alike."""
        return self.kafka.is_known

    @property
    def first(self) -> AuthorizerFlags:
        """The flags of the only generation, or of the oldest."""
        return self.flags[self.kafka.generations[0]]

    @property
    def of_brokers(self) -> tuple[Generation, ...]:
        """The generations that may decide what no controller decides."""
        return tuple(each for each in self.kafka.generations if each not in self.kafka.only_controllers)

    def warn(self) -> None:
        """Warn that several generations may decide and that answers may differ; nothing if one decides."""
        if not self.is_known:
            warn(self.kafka.ambiguity())


def each_generation(
    image: Image, flags: AuthorizerFlags, requests: Iterable[tuple[int, int]] | None = None
) -> EachGeneration:
    """Return the flags for each generation that may decide on a state.

    `requests`: the resource type and the operation of all requests in question, as codes; None if they may be any.
    """
    kafka = deciding_kafka(
        image,
        flags.generation,
        controllers=None if requests is None else ranges_concern_controllers(image.acls, requests),
    )
    return EachGeneration(kafka=kafka, flags={each: flags.of_generation(each) for each in kafka.generations})


def only_generation(image: Image, flags: AuthorizerFlags) -> AuthorizerFlags:
    """Return the flags for the one generation that decides, for a command that gives one answer.

    Raises:
        ConfigError: several may decide, and a rule of the state has a range as host.

    """
    generations = each_generation(image, flags)
    if not generations.is_known:
        raise ConfigError(generations.kafka.ambiguity())
    return generations.first


# Policies from the flags of a command: the state and the settings of one side, or of two that are compared.


@frozen(eq=False, kw_only=True)
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

    def refs(self) -> list[str]:
        """Return the commits of which files were read."""
        return [source.ref for each in self.sources if (source := each.git_place) is not None]

    def existing_topics(self) -> ExistingNames | None:
        """Return the topics that exist, as aclog.cli.images does."""
        return existing_topics(self.topics, self.images, self.sources)


def policy_of(image: Image, flags: AuthorizerFlags) -> Policy:
    """Return the policy of a state; warn as settings_of.

    Raises:
        ConfigError: a super user without a colon, or which generation of Kafka decides is not known, and matters.

    """
    flags.warn_of_super_users()
    return policy_by(image, only_generation(image, flags))


def policies_of(
    image: Image, flags: AuthorizerFlags, requests: Iterable[tuple[int, int]] | None = None
) -> dict[Generation, Policy]:
    """Return the policy of a state for each generation of Kafka that may decide; warn if there is more than one.

    `requests` as in `each_generation`.

    Raises:
        ConfigError: a super user without a colon.

    """
    flags.warn_of_super_users()
    each = each_generation(image, flags, requests)
    each.warn()
    return {generation: policy_by(image, own) for generation, own in each.flags.items()}


def settings_of(flags: AuthorizerFlags) -> Settings:
    """Return the settings that the flags name; warn of super users that are hardly meant.

    Raises:
        ConfigError: a super user without a colon.

    """
    flags.warn_of_super_users()
    return _settings(flags)


def policy_by(image: Image, flags: AuthorizerFlags) -> Policy:
    """Return the policy of a state by flags that name the Kafka; no warning. Raises ConfigError: as settings_of."""
    settings = _settings(flags)
    return Policy(image.acls.with_options(documented=settings.documented, cidr=settings.cidr), settings)


def _settings(flags: AuthorizerFlags) -> Settings:
    return Settings(
        super_users=parse_super_users(flags.super_users),
        allow_everyone=flags.allow_everyone,
        documented=flags.documented,
        cidr=flags.generation is Generation.V4_4,
        is_kafka_stated=flags.generation is not None,
    )


@frozen(kw_only=True)
class SideFlags:
    """All flags that name two policies."""

    source: SourceFlags
    authorizer: AuthorizerFlags
    target: SecondStateFlags
    settings: SecondSettingsFlags
    maps: tuple[NameMap, ...] = ()

    def check(self, more: Mapping[str, str | None]) -> None:
        """Check the flags before anything is read; a second state may differ in settings only. Raises ConfigError.

        Warns of super users that are hardly meant. `more`: other flags that name files, of which one may be stdin.
        """
        if self.target.is_given() or not self.settings.is_given():
            self.target.check(self.source)
        check_one_stdin({**self.source.files(), **self.target.files(), **more})
        after = self.settings.after(self.authorizer)
        self.authorizer.warn_of_super_users()
        if self.settings.to_super_users is not None:
            after.warn_of_super_users("--to-super-users")

    def read(self) -> Sides:
        """Read both sides.

        Raises:
            ConfigError: a malformed file, a change that was not made for this state, or which generation of Kafka
                decides is not known, and matters.
            MetadataError, OSError: a source is damaged or cannot be read.

        """
        (sides,) = self._read(only_one=True).values()
        return sides

    def read_each(self) -> dict[Generation | None, Sides]:
        """Read both sides for each generation of Kafka that may decide on both; warn if there is more than one.

        Each side is decided by its own generation, under None, where both state it. Raises as `read`, but for the last
        case of ConfigError.
        """
        return self._read(only_one=False)

    def _read(self, *, only_one: bool) -> dict[Generation | None, Sides]:
        notify = _once()  # both sides may read one log, and have the same to say of it
        topics = self.source.topics()
        first, second = self.source.choose(notify, topics=topics), self.target.source(self.source)
        choice = None if second is None else second.choose(notify, topics=topics)
        changes = self.target.changes()
        before = first.image()
        after_flags = self.settings.after(self.target.authorizer(self.authorizer))
        after = before.with_acls(changed_acls(before.acls, changes)) if choice is None else choice.image()
        premises = self._premises(first, choice, after_flags, notify)
        old = before.with_acls(mapped_acls(before.acls, self.maps)) if self.maps else before
        same_source = choice is None and not self.maps
        pairs, ambiguity = _generations((before, self.authorizer), (after, after_flags))
        if ambiguity:
            if only_one:
                raise ConfigError(ambiguity)
            warn(ambiguity)
        between = net_changes(changes) if same_source else changes_between(old.acls, after.acls)
        origins = self._origins(first, choice, changes)
        return {
            generation: Sides(
                old=policy_by(old, self.authorizer.of_generation(own)),
                new=policy_by(after, after_flags.of_generation(to)),
                changes=between,
                images=(before, after),
                sources=(first,) if choice is None else (first, choice),
                topics=topics,
                origins=origins,
                premises=premises,
            )
            for generation, (own, to) in pairs.items()
        }

    def _premises(
        self, first: ChosenSource, second: ChosenSource | None, flags: AuthorizerFlags, notify: Callable[[str], None]
    ) -> SidePremises:
        """Return what is unknown, and note it; a side that is no running cluster has the settings of the other one.

        Both states have been read. `flags`: those of the second side.
        """
        old_given, new_given = self.authorizer.configs(), flags.configs()
        if second is not None and first.is_live and second.is_live and first.source.name != second.source.name:
            old, new = first.premises(old_given), second.premises(new_given)
            for choice, unknown in ((first, old), (second, new)):
                for premise in unknown.unknown:
                    notify(f"{choice.source.name}: {premise.note()}")
            return SidePremises(old=old, new=new, same_settings=False)
        live = second if second is not None and second.is_live else first
        settings = settings_premises(live.source, old_given & new_given)
        old_gaps = gaps_of(first.source)
        new_gaps = old_gaps if second is None else gaps_of(second.source)
        for premise in settings.also(old_gaps).also(new_gaps).unknown:
            notify(premise.note())
        sides = SidePremises.of_one(settings, old_given, new_given)
        return evolve(sides, old=sides.old.also(old_gaps), new=sides.new.also(new_gaps))

    def _origins(self, first: ChosenSource, second: ChosenSource | None, changes: Sequence[RuleChange]) -> TwoOrigins:
        old = MappedOrigins(first.origins, self.maps) if self.maps else first.origins
        if second is not None:
            return TwoOrigins(old=old, new=second.origins)
        both = ChangedOrigins.of_changes(first.origins, changes)
        return TwoOrigins(old=old if self.maps else both, new=both)


def _generations(
    first: tuple[Image, AuthorizerFlags], second: tuple[Image, AuthorizerFlags]
) -> tuple[dict[Generation | None, tuple[Generation, Generation]], str]:
    """Return the generations that decide on two states: one for each that may decide on both, and why there are more.

    A state that does not state its own is decided as the other: rules in files are those of the other's cluster. Unless
    a flag names a Kafka for the second one: then the first is decided by the other generation, as before an upgrade.
    """
    controllers = any(ranges_concern_controllers(image.acls) for image, _ in (first, second))
    kafkas = [deciding_kafka(image, flags.generation, controllers=controllers) for image, flags in (first, second)]
    old, new = kafkas[0].stated or kafkas[1].stated, kafkas[1].stated or kafkas[0].stated
    if kafkas[0].stated is None and first[1].generation is not second[1].generation:  # --to-kafka-version
        old = next(each for each in Generation if each is not new)
    if old is not None and new is not None:
        return {None: (old, new)}, ""
    possible = [each for each in Generation if any(each in kafka.generations for kafka in kafkas)]
    if len(possible) == 1:
        return {None: (possible[0], possible[0])}, ""
    return {each: (each, each) for each in possible}, next(kafka.ambiguity() for kafka in kafkas if not kafka.is_known)


def _once() -> Callable[[str], None]:
    """Return a function that prints each note once."""
    notices: set[str] = set()

    def notify(text: str) -> None:
        if text not in notices:
            notices.add(text)
            note(text)

    return notify
