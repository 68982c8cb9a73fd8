"""A plan: the steps of one change of one place, and what it was made for."""

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from aclog.analysis.regions.region_json import JsonObject
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.generation import Generation
from aclog.authorizer.settings import Settings
from aclog.planning.batching import Batching
from aclog.planning.step import Step
from aclog.planning.touched import Touched


class PlaceKind(StrEnum):
    """What a place is, as the flag that names it."""

    LOG = "log"
    BOOTSTRAP_SERVER = "bootstrap-server"
    BOOTSTRAP_CONTROLLER = "bootstrap-controller"
    ZOOKEEPER = "zookeeper"


@frozen(kw_only=True)
class PlaceAddress:
    """How a place is found; whoever applies a plan elsewhere may give another address of the same place."""

    kind: PlaceKind
    value: str
    """The absolute path of a log's directory, servers as for the flag, or the ZooKeeper's servers."""
    command_config: str | None = None
    """The absolute path of the client properties; what is in them stays there."""
    properties: Mapping[str, str] = field(factory=dict, repr=False)
    """Properties of the ZooKeeper's authorizer; a PLAN file has those that are no passwords."""


@frozen(kw_only=True)
class PlanPlace:
    """The place that a plan is for."""

    address: PlaceAddress
    identity: str | None
    """As Place.identity; None if there was no such place yet, or a log without one."""
    batching: Batching
    fingerprint: str | None = None
    """As Place.fingerprint at the end offset of the plan's base; of a place without an identity."""


@frozen(kw_only=True)
class Base:
    """What a plan was made from: how much there was, and exactly which ACLs its steps may meet."""

    rules: int
    end_offset: int | None
    exists: bool
    touched: Touched


@frozen(kw_only=True)
class JournalMark:
    """The journal that a plan was made with, and how far it was read."""

    path: str
    id: str
    entries: int
    """How many BEGIN and DONE."""
    checksum: int
    """Of all its lines; 0 of one that is yet to be made."""


@frozen(kw_only=True)
class Origin:
    """Who made a plan, when (ISO 8601, UTC), and from which commit, if that is known."""

    at: str
    who: str
    git: str | None = None


@frozen(kw_only=True)
class Plan:
    """The steps of one change."""

    place: PlanPlace
    base: Base
    settings: Settings
    """Where several generations of Kafka may decide, those of the oldest one."""
    settings_known: bool
    """Whether both were told; unknown ones count as no super user, and allow.everyone.if.no.acl.found."""
    settings_by_place: bool
    """Whether the place itself told allow.everyone.if.no.acl.found, and not who made the plan."""
    origin: Origin
    steps: tuple[Step, ...]
    journal: JournalMark | None = None
    """None: nobody owns what it adds."""
    others: tuple[JournalMark, ...] = ()
    """The journals of other sources, whose rules it does not remove."""
    adopt: tuple[StandardAcl, ...] = ()
    """ACLs that are there already, and are owned from now on."""
    release: tuple[StandardAcl, ...] = ()
    """ACLs that are no longer owned, and stay as they are: gone already, or somebody else's."""
    unowned: tuple[StandardAcl, ...] = ()
    """ACLs that steps remove though the journal does not own them: asked for one by one."""
    transient: tuple[JsonObject, ...] = ()
    """Regions of requests that both ends allow, and a state on the way denies."""

    generations: tuple[Generation, ...] | None = None
    """Those of Kafka that may decide, as the place states; None: who made the plan named one, or no host of what it
    touches is a range, so that all decide alike."""

    @property
    def each_settings(self) -> dict[Generation | None, Settings]:
        """What decides for each generation of Kafka that may; under None, if that is one."""
        return self.settings.by_generation(self.generations or ())

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do, in the place or in the journal."""
        return not (self.steps or self.adopt or self.release)
