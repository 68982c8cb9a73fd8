"""The generations of Kafka's authorizer that may decide on a state, their sources, and their history."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, product
from typing import TYPE_CHECKING, Final, Self

from attrs import evolve, field

from aclog.authorizer.acl import StandardAcl, cidr_range, is_cidr
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.index.layout import ALLOWED, DENIED, rule_mask, split_pair
from aclog.authorizer.index.subjects import range_masks
from aclog.authorizer.settings import (
    CIDR_FEATURE,
    RANGES_LEVEL,
    Generation,
    GenerationPair,
    Settings,
    controllers_decide,
    deciding_level,
    generation_of_level,
)
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    OpaqueRecord,
    RecordType,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from aclog.metalog.values import frozen
from aclog.snapshots.image import (
    METADATA_VERSION,
    Appended,
    ClusterImage,
    FeaturesImage,
    Image,
    controller_levels,
    effect_of,
)

if TYPE_CHECKING:
    from aclog.metalog.committed_log import LogReader
    from aclog.snapshots.history import VisibleRecord

# The generations of Kafka's authorizer that may decide on a state, and how they are determined.
#
# The software of a node selects its generation (aclog.authorizer.settings), and each node registers the newest
# level of metadata.version that its software supports. While a cluster is upgraded, nodes differ; once it is
# finalized at a level that only the newer generation supports, no older node can join it. Brokers decide every
# request, except that they forward some to a controller, which decides those (`controllers_decide`): the controllers'
# generations count where a range could matter to such a request. A checkpoint without registrations, JSON lines and
# files of rules state no generation: then any may decide.


SOME_RANGE = ("0.0.0.0/0",)
"""A placeholder for the hosts that are ranges, where it does not matter whether there are any."""
SETTLED_BY = "state it with --kafka-version V"
"""The end of a message about several generations that may decide, where it matters."""
_MAX_IDS = 5


@frozen(kw_only=True)
class NodeIds:
    """The ids of some nodes, ascending in each role."""

    brokers: tuple[int, ...] = ()
    controllers: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.brokers or self.controllers)

    def __str__(self) -> str:
        named = (("broker", self.brokers), ("controller", self.controllers))
        return " and ".join(_of_role(role, ids) for role, ids in named if ids)

    def verb(self, one: str, several: str) -> str:
        """Return the form of a verb for as many nodes."""
        return one if len(self.brokers) + len(self.controllers) == 1 else several


@frozen(kw_only=True)
class NodeKafkas:
    """The generations of Kafka that the nodes of a cluster run, as far as known."""

    of_generation: Mapping[Generation, NodeIds] = field(factory=dict)
    """The nodes of each generation that runs, the older one first."""
    unknown: NodeIds = NodeIds()
    """The nodes whose generation is unknown."""

    @classmethod
    def of_levels(cls, brokers: Mapping[int, int | None], controllers: Mapping[int, int | None]) -> Self:
        """Return the generations, given the level by which each node decides, by id; None where it is unknown."""

        def ids(generation: Generation | None) -> NodeIds:
            return NodeIds(brokers=_running(brokers, generation), controllers=_running(controllers, generation))

        return cls(
            of_generation={generation: members for generation in Generation if (members := ids(generation))},
            unknown=ids(None),
        )

    @property
    def only(self) -> Generation | None:
        """The generation of all nodes; None if there is no node, if they differ, or if some are unknown."""
        return next(iter(self.of_generation)) if len(self.of_generation) == 1 and not self.unknown else None

    def brokers(self) -> Mapping[int, Generation]:
        """Return the generation of each broker, by id; empty if that of some is unknown."""
        return {} if self.unknown.brokers else self._by_id(lambda ids: ids.brokers)

    def controllers(self) -> Mapping[int, Generation]:
        """Return the generation of each controller, by id; empty if that of some is unknown."""
        return {} if self.unknown.controllers else self._by_id(lambda ids: ids.controllers)

    def _by_id(self, of_role: Callable[[NodeIds], tuple[int, ...]]) -> Mapping[int, Generation]:
        return {node: generation for generation, ids in self.of_generation.items() for node in of_role(ids)}

    def difference(self) -> str:
        """Return the differences between nodes as text; empty if they do not differ."""
        if len(self.of_generation) < 2:
            return ""
        what = "nodes" if any(ids.controllers for ids in self.of_generation.values()) else "brokers"
        parts = (f"{ids} {ids.verb('runs', 'run')} {generation}" for generation, ids in self.of_generation.items())
        return f"the {what} differ: {', '.join(parts)}"

    def gap(self) -> str:
        """Return the nodes with an unknown Kafka as text; empty without such nodes."""
        return f"it is unknown which Kafka {self.unknown} {self.unknown.verb('runs', 'run')}" if self.unknown else ""


@frozen(kw_only=True)
class DecidingKafka:
    """The generations that may decide on one state."""

    generations: tuple[Generation, ...]
    """Those whose decisions can differ on this state, ascending; one if all that may decide decide alike."""
    stated: Generation | None = None
    """The generation that was given, or that all nodes run; None if they differ or are unknown."""
    nodes: NodeKafkas = NodeKafkas()
    """The nodes that decide."""
    only_controllers: tuple[Generation, ...] = ()
    """Those of `generations` that no broker runs: they decide only the requests of controllers."""
    hosts: tuple[str, ...] = ()
    """If several generations may decide: the hosts of ACLs that are ranges, each once, sorted."""

    @property
    def of_brokers(self) -> tuple[Generation, ...]:
        """The generations that may decide what no controller decides."""
        return tuple(each for each in self.generations if each not in self.only_controllers)

    @property
    def has_brokers(self) -> bool:
        """Whether a broker states something, or something is implied for all nodes."""
        of_nodes = any(ids.brokers for ids in self.nodes.of_generation.values())
        return of_nodes or bool(self.nodes.unknown.brokers) or self.stated is not None

    @property
    def states_nothing(self) -> bool:
        """Whether neither a flag nor a node states a generation."""
        return self.stated is None and not self.nodes.of_generation and not self.nodes.unknown

    @property
    def is_known(self) -> bool:
        """Whether there is one answer to every request."""
        return len(self.generations) == 1

    def reason(self) -> str:
        """Return why several generations may decide; empty if only one does."""
        if self.is_known:
            return ""
        has_brokers = any(ids.brokers for ids in self.nodes.of_generation.values())
        unstated = "controllers" if has_brokers else "brokers"
        return self.nodes.gap() or self.nodes.difference() or f"the version of the {unstated} is unknown"

    def ambiguity(self) -> str:
        """Return why the generations that may decide matter, and how to select one; empty if only one decides."""
        if self.is_known:
            return ""
        return f"{self.reason()}, and {ranges_text(self.hosts)}: {SETTLED_BY}"


def kafka_text(kafka: DecidingKafka) -> str:
    """Return the Kafka of the nodes that decide, or why several may decide."""
    what = "nodes" if any(ids.controllers for ids in kafka.nodes.of_generation.values()) else "brokers"
    return kafka.reason() or f"all {what} run {kafka.generations[0]}"


def ranges_text(hosts: Sequence[str]) -> str:
    """Return the effect of the two generations on hosts of ACLs that are ranges, as a clause."""
    count = len(hosts)
    what = f"{count:,} host{'' if count == 1 else 's'} of ACLs such as {hosts[0]}"
    return f"{what} {'is a range' if count == 1 else 'are ranges'}, which Kafka 4.4 matches and Kafka 4.3 does not"


def deciding_kafka(image: Image, named: Generation | None, *, controllers: bool | None = None) -> DecidingKafka:
    """Return the generations that may decide on a state.

    `named`: the generation of a flag, a context or a settings file; it takes precedence. Otherwise nodes state it: in
    their responses, or by their registrations. `controllers`: whether controllers decide some of the requests in
    question; None:
    if a range of the state could matter to any that they decide.
    """
    if named is not None:
        return DecidingKafka(generations=(named,), stated=named)
    if controllers is None:
        controllers = ranges_concern_controllers(image.acls)
    return kafka_of_image(image, range_hosts(image.acls), _controller_levels(image) if controllers else None)


def kafka_of_image(
    image: Image, ranges: Iterable[str], controllers: Mapping[int, int | None] | None = None
) -> DecidingKafka:
    """Return the generations that may decide, by a state's implication for all nodes, otherwise by its brokers' levels.

    `ranges` and `controllers` as for `kafka_of_levels`: the hosts need not be those of the state's own ACLs.
    """
    finalized = _finalized(image)
    if finalized is not None:
        return DecidingKafka(generations=(finalized,), stated=finalized)
    return kafka_of_levels(_broker_levels(image), ranges, controllers)


def kafka_of_levels(
    brokers: Mapping[int, int | None], ranges: Iterable[str], controllers: Mapping[int, int | None] | None = None
) -> DecidingKafka:
    """Return the generations that may decide where nodes decide by these levels of metadata.version, by id.

    `ranges`: the hosts of ACLs that are ranges of addresses. Without one, all generations decide alike. `controllers`:
    None if they decide none of the requests.
    """
    nodes = NodeKafkas.of_levels(brokers, controllers or {})
    is_stated = bool(brokers) and (controllers is None or bool(controllers)) and not nodes.unknown
    possible = tuple(each for each in Generation if each in nodes.of_generation or not is_stated)
    hosts = tuple(sorted(set(ranges))) if len(possible) > 1 else ()
    of_brokers = [each for each, ids in nodes.of_generation.items() if ids.brokers]
    are_stated = bool(brokers) and not nodes.unknown.brokers
    return DecidingKafka(
        generations=possible if hosts else possible[:1],  # without a range they decide alike
        stated=nodes.only if is_stated else None,
        nodes=nodes,
        only_controllers=tuple(each for each in possible if hosts and are_stated and each not in of_brokers),
        hosts=hosts,
    )


ANY_KAFKA = DecidingKafka(generations=tuple(Generation), hosts=SOME_RANGE)
"""Any generation may decide: nothing states it."""


def kafka_with(image: Image, added: Iterable[StandardAcl]) -> DecidingKafka:
    """Return the generations that may decide on a state with more ACLs: by its nodes, as no flag names one."""
    ranges = [acl for acl in added if is_cidr(acl.host)]
    controllers = ranges_concern_controllers(image.acls) or rules_concern_controllers(ranges)
    hosts = (*range_hosts(image.acls), *(acl.host for acl in ranges))
    return kafka_of_image(image, hosts, _controller_levels(image) if controllers else None)


def kafka_of_both(
    states: tuple[Image, Image], named: tuple[Generation | None, Generation | None] = (None, None)
) -> tuple[DecidingKafka, DecidingKafka]:
    """Return the generations that may decide on two states, given the ranges in the ACLs of both.

    `named` as for `deciding_kafka`, for each state.
    """
    ranges = sorted({host for image in states for host in range_hosts(image.acls)})
    controllers = any(ranges_concern_controllers(image.acls) for image in states)
    old, new = (
        DecidingKafka(generations=(generation,), stated=generation)
        if generation is not None
        else kafka_of_image(image, ranges, _controller_levels(image) if controllers else None)
        for image, generation in zip(states, named, strict=True)
    )
    return old, new


def generation_pairs(
    old: DecidingKafka, new: DecidingKafka, *, is_one_cluster: bool = True
) -> dict[Generation | GenerationPair | None, GenerationPair]:
    """Return the generations by which nodes decide on two states, an earlier and a later one.

    One pair under None, if each state has one generation. Otherwise a pair for each transition of a node, under its
    generation, if that is the same on both states. A node that only one of the states has counts as one of the other's
    nodes, of its own generation if there is any. Where nodes are not known, each generation counts as a node; also
    if it is unknown whether the states are of one cluster (not `is_one_cluster`). A state that states nothing is
    decided as the other one: it is of the time before the first broker, or of files for the other's cluster.
    """
    old, new = (new if old.states_nothing else old), (old if new.states_nothing else new)
    if old.is_known and new.is_known:
        return {None: GenerationPair(old=old.generations[0], new=new.generations[0])}
    brokers, controllers = (
        (of_role(old.nodes), of_role(new.nodes)) for of_role in (NodeKafkas.brokers, NodeKafkas.controllers)
    )
    transitions = partial(_transitions, is_one_cluster=is_one_cluster)
    of_brokers = transitions((old.of_brokers, new.of_brokers), brokers)
    only_controllers = set[tuple[Generation, Generation]]()
    if old.only_controllers or new.only_controllers or any(controllers):
        only_controllers = (
            _transitions((old.generations, new.generations), controllers, is_one_cluster=is_one_cluster) - of_brokers
        )
    pairs = [GenerationPair(old=was, new=now) for was, now in of_brokers]
    pairs += [GenerationPair(old=was, new=now, only_controllers=True) for was, now in only_controllers]
    pairs.sort(key=lambda each: (each.old.value, each.new.value))
    return {each.old if each.old is each.new else each: each for each in pairs}


def _transitions(
    generations: tuple[Sequence[Generation], Sequence[Generation]],
    nodes: tuple[Mapping[int, Generation], Mapping[int, Generation]],
    *,
    is_one_cluster: bool,
) -> set[tuple[Generation, Generation]]:
    """Return the generations before and after of each node, given those of both states and of their nodes."""
    (old, new), (before, after) = generations, nodes
    own = set[tuple[Generation, Generation]]()
    if before and after:
        ids = before.keys() | after.keys()
        own = {(before.get(each) or after[each], after.get(each) or before[each]) for each in ids}
    if not own or not is_one_cluster:
        own |= {(each, each) for each in (*old, *new)}
    return {(_nearest(old, was), _nearest(new, now)) for was, now in own}


def _nearest(generations: Sequence[Generation], generation: Generation) -> Generation:
    return generation if generation in generations else generations[0]


def possible_kafka(image: Image, *, controllers: bool = False) -> DecidingKafka:
    """Return the generations that may decide, given the nodes of a state, as if an ACL had a range as host.

    `controllers`: whether controllers decide some of the requests in question.
    """
    return kafka_of_image(image, SOME_RANGE, _controller_levels(image) if controllers else None)


def _finalized(image: Image) -> Generation | None:
    """Return the generation that all nodes of a state must have; None if the state does not imply one."""
    return _finalized_at(image.features, image.generation)


def _finalized_at(features: FeaturesImage, implied: Generation | None) -> Generation | None:
    return Generation.V4_4 if features.level(METADATA_VERSION) >= RANGES_LEVEL else implied


def ranges_concern_controllers(acls: AclsImage, requests: Iterable[tuple[int, int]] | None = None) -> bool:
    """Return whether an ACL whose host is a range could matter to a request that a controller decides.

    `requests`: the resource type and the operation, as codes, of all requests in question; None if they may be any.
    """
    if not acls.index.has_slashes:
        return False
    requests = product(ResourceType, AclOperation) if requests is None else requests
    masks = range_masks(acls.index)
    return any(
        controllers_decide(kind, operation) and masks[kind] >> operation & (ALLOWED | DENIED)
        for kind, operation in requests
    )


def rules_concern_controllers(ranges: Iterable[StandardAcl]) -> bool:
    """Return the same for these ACLs, whose hosts are ranges, and for any request."""
    return any(
        controllers_decide(acl.resource_type, operation)
        and rule_mask(acl.operation, acl.permission_type) >> operation & (ALLOWED | DENIED)
        for acl in ranges
        for operation in AclOperation
    )


def _running(levels: Mapping[int, int | None], generation: Generation | None) -> tuple[int, ...]:
    """Return the ids of the nodes of a generation, or of those that do not state theirs."""
    generations = ((node, None if level is None else generation_of_level(level)) for node, level in levels.items())
    return tuple(sorted(node for node, node_generation in generations if node_generation is generation))


def _broker_levels(image: Image) -> Mapping[int, int | None]:
    return registered_levels(image.cluster) if image.live_levels is None else image.live_levels


def _controller_levels(image: Image) -> Mapping[int, int | None]:
    return registered_controllers(image) if image.live_levels is None else image.live_controllers or {}


def registered_levels(cluster: ClusterImage) -> dict[int, int]:
    """Return, by id, the level by which each registered broker decides."""
    ranges = dict(cluster.newest_levels(CIDR_FEATURE))
    return {
        broker: deciding_level(level, has_ranges=ranges.get(broker, 0) > 0)
        for broker, level in cluster.newest_levels(METADATA_VERSION)
    }


def registered_controllers(image: Image) -> dict[int, int | None]:
    """Return, by id, the level by which each registered controller decides; None if its registration is not legible.

    Controllers register since metadata.version 3.7-IV0.
    """
    return {number: _controller_level(value) for number, value in image.opaque.controllers()}


def _controller_level(value: bytes) -> int | None:
    """Return the level by which a controller decides, given its RegisterControllerRecord; None: it is not legible."""
    try:
        features = controller_levels(value)
    except DecodeError:  # of a newer Kafka: all that is known is that there is a controller
        return None
    return deciding_level(features.get(METADATA_VERSION, 0), has_ranges=features.get(CIDR_FEATURE, 0) > 0)


def settled(settings: Settings, image: Image) -> Settings:
    """Return the settings by which a state is decided, for a single answer.

    Raises:
        ConfigError: the deciding generation of Kafka is unknown, and an ACL of the state has a range as host.

    """
    if settings.is_kafka_stated:
        return settings
    kafka = deciding_kafka(image, None)
    if not kafka.is_known:
        raise ConfigError(kafka.ambiguity())
    return evolve(settings, cidr=kafka.generations[0].has_ranges, is_kafka_stated=True)


def range_hosts(acls: AclsImage) -> Iterator[str]:
    """Yield the hosts of ACLs that are ranges of addresses to Kafka 4.4, each once for each principal.

    A range may be among them whose last ACL was removed since the index was built.
    """
    base, overlay = acls.index.base, acls.index.overlay
    hosts: Iterable[str] = (split_pair(base.pairs.key(pair))[1] for pair in base.range_pairs)
    yield from filter(cidr_range, hosts)
    for added in overlay.ranges.values():
        yield from filter(cidr_range, added)


def _of_role(role: str, ids: tuple[int, ...]) -> str:
    text = ", ".join(map(str, ids[:_MAX_IDS]))
    more = f" and {len(ids) - _MAX_IDS} more" if len(ids) > _MAX_IDS else ""
    return f"{role}{'' if len(ids) == 1 else 's'} {text}{more}"


# The history of the deciding Kafka: when the generations that may decide changed, as brokers registered.


_BROKER_RECORDS: Final = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    BrokerRegistrationChangeRecord,
)
_MARKERS: Final = (
    RecordType.BEGIN_TRANSACTION_RECORD,
    RecordType.END_TRANSACTION_RECORD,
    RecordType.ABORT_TRANSACTION_RECORD,
)
_API_KEYS: Final = frozenset(
    (
        *(record.api_key for record in _BROKER_RECORDS),
        RecordType.FEATURE_LEVEL_RECORD,
        RecordType.REGISTER_CONTROLLER_RECORD,
        RecordType.UNREGISTER_CONTROLLER_RECORD,
        *_MARKERS,
    )
)


@frozen(kw_only=True)
class KafkaChange:
    """The generations that may decide from a state on.

    `offset` and `timestamp` (ms since 1970; -1: unknown) are those of the record that changed it, or those of the state
    with which the history begins; `end_offset` is that of the first state that includes it.
    """

    offset: int
    end_offset: int
    timestamp: int
    kafka: DecidingKafka

    def __str__(self) -> str:
        return kafka_text(self.kafka)


def kafka_history(begin: Image, reader: "LogReader", *, controllers: bool = False) -> Iterator[KafkaChange]:
    """Yield the generations that may decide in the first state of a history, and each change, in the order of the log.

    The first broker is also a change: before it, any generation may decide as far as the log shows. `controllers`:
    whether controllers decide some of the requests in question. Raises as `node_history`.
    """
    return without_moves(node_history(begin, reader, controllers=controllers))


def without_moves(changes: Iterable[KafkaChange]) -> Iterator[KafkaChange]:
    """Yield the changes after which other generations may decide: not those between nodes, of a generation each."""
    last = None
    for change in changes:
        if last is None or _key(change.kafka) != _key(last.kafka):
            yield change
        last = change


def node_history(begin: Image, reader: "LogReader", *, controllers: bool = False) -> Iterator[KafkaChange]:
    """Yield as `kafka_history`, and each change of the nodes of a generation.

    Raises:
        LogError: the log cannot be read.
        DecodeError: damage, a ReplayError if its records are inconsistent; with path and offset.

    """
    nodes = _Nodes.of(begin)
    kafka = nodes.kafka(controllers=controllers)
    yield KafkaChange(offset=begin.end_offset, end_offset=begin.end_offset, timestamp=begin.timestamp, kafka=kafka)
    try:
        yield from _changes(begin, nodes, reader, controllers=controllers)
    except DecodeError as e:
        raise type(e)(e.what, offset=e.offset, path=e.path or reader.name) from None


def _changes(begin: Image, nodes: "_Nodes", reader: "LogReader", *, controllers: bool) -> Iterator[KafkaChange]:
    """Yield each change after the first state of a history, with the generations that may decide then."""
    # commands that read no log start sooner
    from aclog.snapshots.history import visible_records  # noqa: PLC0415
    from aclog.snapshots.record_filters import OfKinds  # noqa: PLC0415

    kafka = nodes.kafka(controllers=controllers)
    visible = (each for each in visible_records(begin.provenance, reader, OfKinds(_API_KEYS)) if _is_of_node(each))
    for end_offset, step in groupby(visible, lambda each: each.end_offset):
        records = list(step)
        nodes = nodes.apply(records)
        current = nodes.kafka(controllers=controllers)
        if _key(current) != _key(kafka) or current.nodes != kafka.nodes:
            last = records[-1]
            yield KafkaChange(offset=last.offset, end_offset=end_offset, timestamp=last.timestamp, kafka=current)
        kafka = current


def _key(kafka: DecidingKafka) -> tuple[object, ...]:
    """Return what makes a change of the deciding Kafka."""
    is_stated = bool(kafka.nodes.of_generation) or kafka.stated is not None
    return kafka.generations, kafka.only_controllers, is_stated


@frozen(kw_only=True)
class _Nodes:
    """The software of the nodes that a state records."""

    cluster: ClusterImage
    features: FeaturesImage
    controllers: Mapping[int, int | None]
    implied: Generation | None
    """As Image.generation."""

    @classmethod
    def of(cls, image: Image) -> Self:
        """Return that of a state."""
        return cls(
            cluster=image.cluster,
            features=image.features,
            controllers=registered_controllers(image),
            implied=image.generation,
        )

    def apply(self, records: Sequence["VisibleRecord"]) -> Self:
        """Return the same after these records. Raises ReplayError: they are inconsistent."""
        brokers = ((each.offset, each.record) for each in records if isinstance(each.record, _BROKER_RECORDS))
        levels = [each.record for each in records if isinstance(each.record, FeatureLevelRecord)]
        controllers = dict(self.controllers)
        for each in records:
            if isinstance(each.record, UnregisterControllerRecord):
                controllers.pop(each.record.controller_id, None)
            elif isinstance(each.record, OpaqueRecord):
                effect = effect_of(each.record)
                if isinstance(effect, Appended):
                    controllers[effect.subject[1]] = _controller_level(each.record.value)
        return evolve(
            self,
            cluster=self.cluster.apply(brokers),
            features=self.features.apply(levels) if levels else self.features,
            controllers=controllers,
        )

    def kafka(self, *, controllers: bool) -> DecidingKafka:
        """Return the generations that may decide, as if an ACL had a range as host."""
        of_controllers = self.controllers if controllers else None
        kafka = kafka_of_levels(registered_levels(self.cluster), SOME_RANGE, of_controllers)
        finalized = _finalized_at(self.features, self.implied)
        if finalized is None:
            return kafka
        return evolve(kafka, generations=(finalized,), stated=finalized, only_controllers=(), hosts=())


def _is_of_node(visible: "VisibleRecord") -> bool:
    record = visible.record
    if isinstance(record, OpaqueRecord):
        return record.api_key == RecordType.REGISTER_CONTROLLER_RECORD
    return isinstance(record, (*_BROKER_RECORDS, FeatureLevelRecord, UnregisterControllerRecord))
