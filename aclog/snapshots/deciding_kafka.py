"""The generations of Kafka's authorizer that may decide on a state, and how they are known.

The software of a broker selects its generation (aclog.authorizer.generation), and each broker registers the newest
level of metadata.version that its software supports. While a cluster is upgraded, brokers differ. A checkpoint without
registrations, JSON lines and files of rules state nothing of it: then any generation may decide.
"""

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, field, frozen

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.cidr import cidr_range
from aclog.authorizer.generation import CIDR_FEATURE, RANGES_LEVEL, Generation, generation_of_level
from aclog.authorizer.index.keys import split_pair
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.snapshots.cluster import ClusterImage
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image

SOME_RANGE = ("0.0.0.0/0",)
"""In place of the hosts that are ranges, where it is not asked whether there are any."""
SETTLED_BY = "--kafka-version V settles it"
"""How a text ends that says that several generations may decide, and that it matters."""
_SHOWN = 5


@frozen(kw_only=True)
class DecidingKafka:
    """The generations that may decide on one state."""

    generations: tuple[Generation, ...]
    """Those whose decisions can differ on this state, ascending; one if all that may decide decide alike."""
    stated: Generation | None = None
    """The generation that is named, or that all brokers state; None if they state none, or differ."""
    brokers: Mapping[Generation, tuple[int, ...]] = field(factory=dict)
    """The ids of the brokers of each generation, as far as they are known."""
    silent: tuple[int, ...] = ()
    """The ids of the brokers that did not answer."""

    @property
    def is_known(self) -> bool:
        """Whether there is one answer to every request."""
        return len(self.generations) == 1

    def reason(self) -> str:
        """Return why several generations may decide; empty if one does."""
        if self.is_known:
            return ""
        if self.silent:
            return f"{_ids(self.silent)} did not answer which Kafka it runs"
        if not self.brokers:
            return "the source does not state the version of its brokers"
        parts = (f"{_ids(self.brokers[each])} {_is_of(self.brokers[each])} {each}" for each in self.generations)
        return f"the brokers differ: {', '.join(parts)}"


def kafka_text(kafka: DecidingKafka) -> str:
    """Return which Kafka brokers run: all the same, or why several may decide."""
    return kafka.reason() or f"all brokers run {kafka.generations[0]}"


def deciding_kafka(image: Image, named: Generation | None) -> DecidingKafka:
    """Return what may decide on a state.

    `named`: the generation that a flag, a context or a settings file names; it takes precedence. Otherwise brokers
    state it: by what they answer themselves, or by their registrations.
    """
    if named is not None:
        return DecidingKafka(generations=(named,), stated=named)
    levels = registered_levels(image.cluster) if image.live_levels is None else image.live_levels
    return kafka_of_levels(levels, range_hosts(image.acls))


def kafka_of_levels(levels: Mapping[int, int | None], ranges: Iterable[str]) -> DecidingKafka:
    """Return what may decide where brokers support these levels of metadata.version, by id; None: one does not answer.

    `ranges`: the hosts of ACLs that are ranges of addresses. Without one, all generations decide alike.
    """
    brokers: dict[Generation, list[int]] = {}
    for broker, level in sorted(levels.items()):
        if level is not None:
            brokers.setdefault(generation_of_level(level), []).append(broker)
    silent = tuple(sorted(broker for broker, level in levels.items() if level is None))
    possible = tuple(each for each in Generation if each in brokers or silent or not brokers)
    if len(possible) > 1 and next(iter(ranges), None) is None:
        possible = possible[:1]
    return DecidingKafka(
        generations=possible,
        stated=next(iter(brokers)) if len(brokers) == 1 and not silent else None,
        brokers={each: tuple(ids) for each, ids in brokers.items()},
        silent=silent,
    )


def possible_generations(image: Image) -> tuple[Generation, ...]:
    """Return the generations that may decide, as the brokers of a state are known, whatever its rules are."""
    levels = registered_levels(image.cluster) if image.live_levels is None else image.live_levels
    return kafka_of_levels(levels, SOME_RANGE).generations


def registered_levels(cluster: ClusterImage) -> dict[int, int]:
    """Return the newest level by which the software of each registered broker decides, by id."""
    ranges = dict(cluster.newest_levels(CIDR_FEATURE))
    return {
        broker: deciding_level(level, has_ranges=ranges.get(broker, 0) > 0)
        for broker, level in cluster.newest_levels(METADATA_VERSION)
    }


def deciding_level(newest: int, *, has_ranges: bool) -> int:
    """Return the level that stands for how a broker decides.

    `newest`: the newest level of metadata.version that it supports. `has_ranges`: whether it is a node of ours that
    takes hosts for ranges, whatever that level is (aclog.cidr.enabled).
    """
    return max(newest, RANGES_LEVEL) if has_ranges else newest


def settled(settings: Settings, image: Image) -> Settings:
    """Return the settings by which a state is decided, for an answer that can be only one.

    Raises:
        ConfigError: which generation of Kafka decides is not stated, and an ACL of the state has a range as host.

    """
    if settings.is_kafka_stated:
        return settings
    kafka = deciding_kafka(image, None)
    if not kafka.is_known:
        raise ConfigError(ambiguity(kafka, image))
    return evolve(settings, cidr=kafka.generations[0].has_ranges, is_kafka_stated=True)


def ambiguity(kafka: DecidingKafka, image: Image) -> str:
    """Return why the generations that may decide on a state matter, and how to name one."""
    hosts = sorted(set(range_hosts(image.acls)))
    count = f"{len(hosts):,} host{'' if len(hosts) == 1 else 's'} of ACLs"
    return (
        f"{kafka.reason()}, and {count} such as {hosts[0]} {'is a range' if len(hosts) == 1 else 'are ranges'}, which "
        f"Kafka 4.4 matches and Kafka 4.3 does not: {SETTLED_BY}"
    )


def range_hosts(acls: AclsImage) -> Iterator[str]:
    """Yield the hosts of ACLs that are ranges of addresses to Kafka 4.4, each once for each principal.

    A range may be among them whose last ACL was removed since the index was built.
    """
    base, overlay = acls.index.base, acls.index.overlay
    hosts: Iterable[str] = (split_pair(base.pairs.key(pair))[1] for pair in base.range_pairs)
    yield from filter(cidr_range, hosts)
    for added in overlay.ranges.values():
        yield from filter(cidr_range, added)


def _ids(brokers: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, brokers[:_SHOWN]))
    more = f" and {len(brokers) - _SHOWN} more" if len(brokers) > _SHOWN else ""
    return f"broker{'' if len(brokers) == 1 else 's'} {shown}{more}"


def _is_of(brokers: tuple[int, ...]) -> str:
    return "runs" if len(brokers) == 1 else "run"
