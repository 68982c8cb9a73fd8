"""Brokers with a ZooKeeper learn of changes each in an order of its own: they get one stage of a plan at a time."""

from attrs import define, field

from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import PatternType
from aclog.planning.plan import Batching
from aclog.planning.planner import ordered
from aclog.protocol.api_keys import DESCRIBE_QUORUM
from aclog.protocol.responses import BROKER_APIS
from aclog.targets import zookeeper
from aclog.targets.zookeeper import ZooKeeperPlace
from tests.support.builders.acls import acl
from tests.support.fakes.broker import FakeBroker
from tests.support.planning.estate import Estate

WITHOUT_QUORUM = tuple(api for api in BROKER_APIS if api.api_key != DESCRIBE_QUORUM)
OLD, NEW = acl("orders", pattern_type=PatternType.PREFIXED), acl("orders")
LAG = 4
"""Answers of the other broker that are older than the change."""


def replaced(*more):
    """The steps in a ZooKeeper that give a rule another pattern."""
    changes = [RuleChange(added=True, acl=NEW), RuleChange(added=False, acl=OLD), *more]
    return ordered(changes, Batching.RESOURCE)


def test_a_stage_is_there_on_every_broker_before_the_next_one_is_made(tmp_path):
    with FakeBroker([OLD], apis=WITHOUT_QUORUM) as one, FakeBroker([OLD], apis=WITHOUT_QUORUM) as other:
        one.others = [other.address]
        estate = Estate(tmp_path, ("--bootstrap-server", one.address))
        estate.wants(OLD)
        estate.plan("--adopt")
        estate.apply().ok()
        left = [LAG]

        def lagging():
            left[0] -= NEW in one.rules
            return [OLD] if left[0] >= 0 else list(one.rules)

        other.next_rules = lagging
        estate.wants(NEW)
        estate.plan("--no-allow-everyone-if-no-acl-found")
        estate.apply().ok()
        assert one.rules == [NEW]
        assert left[0] < 0
        assert {OLD, NEW} in other.told  # the new rule was there before the old one went


@define
class Store:
    """Counts what is written, and when, by a clock that only a sleep moves."""

    now: float = 100.0
    written: list = field(factory=list)

    def create_paths(self):
        pass

    def update(self, path, _change):
        self.written.append((path.rpartition("/kafka-acl")[2], self.now))

    def sleep(self, seconds):
        self.now += seconds


def written(monkeypatch, steps):
    store = Store()
    monkeypatch.setattr(zookeeper.clock, "sleep", store.sleep)
    monkeypatch.setattr(zookeeper, "elapsed_seconds", lambda: store.now)
    place = ZooKeeperPlace(store=store, notify=str, takes_prefixed=True)
    for piece in place.pieces(steps):
        place.write(piece)
    return store.written


def test_in_zookeeper_a_stage_gets_time_to_be_seen(monkeypatch):
    begin, second = 100.0, zookeeper._SETTLE_S
    deny = acl("orders.eu", permission_type=2)
    steps = replaced(RuleChange(added=True, acl=deny), RuleChange(added=True, acl=acl("orders.us")))
    assert written(monkeypatch, steps) == [
        ("/Topic/orders.eu", begin),
        ("/Topic/orders", begin + second),
        ("/Topic/orders.us", begin + second),
        ("-extended/prefixed/Topic/orders", begin + 2 * second),
    ]


def test_in_zookeeper_what_overlaps_nothing_waits_for_nothing(monkeypatch):
    changes = [RuleChange(added=False, acl=OLD), *(RuleChange(added=True, acl=acl(name)) for name in ("a", "b"))]
    changes.append(RuleChange(added=False, acl=acl("b", "User:other")))
    moments = {at for _, at in written(monkeypatch, ordered(changes, Batching.RESOURCE))}
    assert moments == {100.0}
