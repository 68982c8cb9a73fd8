"""Which Kafka each node of a running cluster runs, brokers and controllers, and whether that makes decisions differ."""

from collections.abc import Mapping

from attrs import evolve, field, frozen

from aclog.authorizer.generation import generation_of_level
from aclog.metalog.errors import MetadataError
from aclog.snapshots.deciding_kafka import (
    DecidingKafka,
    NodeKafkas,
    deciding_kafka,
    ranges_text,
    registered_controllers,
    registered_levels,
)
from aclog.snapshots.image import Image
from aclog.sources.admin import AdminSource
from aclog.sources.event_loop import run
from aclog.sources.live_kafka import LiveLevels, live_controller_levels, live_levels
from aclog.sources.quorum import QuorumSource


@frozen(kw_only=True)
class ClusterKafka:
    """The software of a cluster's nodes. Levels are those by which a node decides (`deciding_level`), by its id."""

    brokers: Mapping[int, int | None] = field(factory=dict)
    """None for one that did not answer."""
    controllers: Mapping[int, int | None] = field(factory=dict)
    problem: str = ""
    """Why nodes are missing, as a clause; empty if all are there."""
    deciding: DecidingKafka | None = None
    """What decides on the ACLs of now; None if they could not be read."""

    @property
    def nodes(self) -> NodeKafkas:
        """The nodes by what they run."""
        return NodeKafkas.of_levels(self.brokers, self.controllers)

    @property
    def decides_alike(self) -> bool | None:
        """Whether all nodes decide every request alike; None if that is not known."""
        if self.deciding is None:
            is_one = self.nodes.only is not None and self.brokers and self.controllers and not self.problem
            return True if is_one else None
        if self.deciding.is_known:
            return True
        return False if self.deciding.nodes.difference() else None

    def text(self) -> str:
        """Return what the nodes run, in a line; empty if nothing is known of any."""
        nodes = self.nodes
        if nodes.only is not None:
            what = "nodes" if self.brokers and self.controllers else "brokers" if self.brokers else "controllers"
            known = f"all {what} run {nodes.only}"
        else:
            runs = (f"{ids} {ids.verb('runs', 'run')} {each}" for each, ids in nodes.of_generation.items())
            known = nodes.difference() or "".join(runs)
        text = "; ".join(filter(None, (known, nodes.gap(), self.problem)))
        if self.decides_alike and nodes.only is None:
            return f"{text}; all decide alike: no ACL that matters has a range of addresses as host"
        return text

    def warning(self) -> str | None:
        """Return as a sentence that nodes decide requests differently, or may; None if they do not."""
        if self.decides_alike:
            return None
        if self.deciding is None:
            found = self.nodes.difference()
            return f"{found}; whether they decide alike is unknown, as the ACLs were not read" if found else None
        what = "decide the same request differently" if self.decides_alike is False else "may decide differently"
        return f"{self.deciding.reason()}, and {ranges_text(self.deciding.hosts)}: nodes {what}"


def cluster_kafka(source: AdminSource | QuorumSource, image: Image | None = None) -> ClusterKafka:
    """Return which Kafka the nodes of a cluster run.

    Brokers are asked, and with --bootstrap-server the controllers that they name, too. With --bootstrap-controller the
    controllers are asked; what brokers run is what they registered. `image`: the state of the source, if it was read
    already.

    Raises:
        MetadataError: no server responds.

    """
    if isinstance(source, AdminSource):
        return _over_brokers(source, image)
    return _over_controllers(source, image)


def of_registrations(image: Image) -> ClusterKafka:
    """Return which Kafka the nodes of a log run, as they registered."""
    return ClusterKafka(
        brokers=registered_levels(image.cluster),
        controllers=registered_controllers(image),
        deciding=deciding_kafka(image, None),
    )


def _over_brokers(source: AdminSource, image: Image | None) -> ClusterKafka:
    levels = run(live_levels(source.servers, source.security, controllers=True))
    problem = "the brokers do not list the controllers" if levels.controllers is None else ""
    found = ClusterKafka(brokers=levels.brokers, controllers=levels.controllers or {}, problem=problem)
    if found.decides_alike:
        return found  # whatever the ACLs are
    try:
        image = source.image() if image is None else image
    except MetadataError as error:
        return evolve(found, problem=_and(problem, f"the ACLs cannot be read: {error}"))
    return evolve(found, deciding=_deciding(image, levels))


def _over_controllers(source: QuorumSource, image: Image | None) -> ClusterKafka:
    controllers = run(live_controller_levels(source.controllers, source.security))
    problem = "the controllers do not list each other" if controllers is None else ""
    try:
        image = source.image() if image is None else image
    except MetadataError as error:
        what = f"what the brokers run is unknown, since their registrations cannot be read: {error}"
        return ClusterKafka(controllers=controllers or {}, problem=_and(problem, what))
    levels = LiveLevels(brokers=registered_levels(image.cluster), controllers=controllers)
    return ClusterKafka(
        brokers=levels.brokers, controllers=controllers or {}, problem=problem, deciding=_deciding(image, levels)
    )


def _deciding(image: Image, levels: LiveLevels) -> DecidingKafka:
    live = evolve(image, live_levels=levels.brokers, live_controllers=levels.controllers)
    return deciding_kafka(live, None)


def _and(first: str, second: str) -> str:
    return f"{first}; {second}" if first else second


def level_text(level: int | None) -> str:
    """Return what a node runs by its level, such as `Kafka 4.4`."""
    return "which Kafka it runs is unknown" if level is None else str(generation_of_level(level))
