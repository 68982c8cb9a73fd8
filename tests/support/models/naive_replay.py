"""A replayer that anybody can read: dicts, lists and loops, written apart from the engine, to check it against.

It shares the decoding of batches and records with the engine (that has its own tests), and nothing else.
"""

import struct
from dataclasses import dataclass, field

from attrs import evolve

from aclog.metalog.batches import decode_batch
from aclog.metalog.codec import decode_record, encode_record
from aclog.metalog.control_records import KRaftVersion, KRaftVoters, decode_control
from aclog.metalog.records import OpaqueRecord


class RefusedError(Exception):
    """The log cannot be replayed beyond this offset."""

    def __init__(self, offset):
        super().__init__(offset)
        self.offset = offset


@dataclass
class State:
    acls: dict = field(default_factory=dict)
    scram: dict = field(default_factory=dict)
    tokens: dict = field(default_factory=dict)
    features: dict = field(default_factory=dict)
    brokers: dict = field(default_factory=dict)
    opaque: list = field(default_factory=list)

    def copy(self):
        maps = (dict(each) for each in (self.acls, self.scram, self.tokens, self.features, self.brokers))
        return State(*maps, list(self.opaque))


@dataclass
class Moment:
    """The state at the end of a batch, and where that is."""

    end_offset: int
    epoch: int
    timestamp: int
    kraft_version: int
    voters: object
    state: State


def naive_replay(data):
    """Every visible moment of a log's bytes, oldest first. Raises RefusedError where a record cannot be replayed."""
    state, pending, open_since = State(), [], None
    kraft_version, voters = 0, None
    position = 0
    while position < len(data):
        batch = decode_batch(data, position)
        header = batch.header
        position += header.size
        for record in batch.records:
            offset = header.base_offset + record.offset_delta
            if header.is_control:
                control = decode_control(record.key, record.value)
                if isinstance(control, KRaftVersion):
                    kraft_version = control.kraft_version
                if isinstance(control, KRaftVoters):
                    voters = control
                continue
            decoded = decode_record(record.value)
            kind = type(decoded).__name__
            if kind == "BeginTransactionRecord":
                if open_since is not None:
                    raise RefusedError(offset)
                open_since = len(pending)
            elif kind == "EndTransactionRecord":
                if open_since is None:
                    raise RefusedError(offset)
                open_since = None
            elif kind == "AbortTransactionRecord":
                if open_since is None:
                    raise RefusedError(offset)
                pending = pending[:open_since]
                open_since = None
            else:
                pending.append((offset, kind, decoded))
        if open_since is None:
            state = state.copy()
            for offset, kind, decoded in pending:
                step(state, offset, kind, decoded)
            pending = []
            yield Moment(header.end_offset, header.leader_epoch, header.max_timestamp, kraft_version, voters, state)


def content(record):
    return (
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def step(state, offset, kind, record):
    if kind == "AccessControlEntryRecord":
        if record.id in state.acls or content(record) in map(content, state.acls.values()):
            raise RefusedError(offset)
        state.acls[record.id] = record
    elif kind == "RemoveAccessControlEntryRecord":
        if record.id not in state.acls:
            raise RefusedError(offset)
        del state.acls[record.id]
    elif kind == "UserScramCredentialRecord":
        state.scram[record.name, record.mechanism] = record
    elif kind == "RemoveUserScramCredentialRecord":
        state.scram.pop((record.name, record.mechanism), None)
    elif kind == "DelegationTokenRecord":
        state.tokens[record.token_id] = record
    elif kind == "RemoveDelegationTokenRecord":
        state.tokens.pop(record.token_id, None)
    elif kind == "FeatureLevelRecord":
        state.features[record.name] = record
        if record.feature_level == 0:
            del state.features[record.name]
    elif kind == "RegisterBrokerRecord":
        state.brokers[record.broker_id] = record
    elif "Broker" in kind:
        broker_step(state.brokers, offset, kind, record)
    elif kind == "UnregisterControllerRecord":
        controller_id = bytes((record.controller_id >> shift) & 0xFF for shift in (24, 16, 8, 0))
        state.opaque = [value for value in state.opaque if not (value[1] == 27 and value[3:7] == controller_id)]
    elif isinstance(record, OpaqueRecord):
        state.opaque = opaque_step(state.opaque, record.value)


def broker_step(brokers, offset, kind, record):
    """A change of a registration: what of it changes."""
    short = kind in ("FenceBrokerRecord", "UnfenceBrokerRecord")
    number, epoch = (record.id, record.epoch) if short else (record.broker_id, record.broker_epoch)
    broker = brokers.get(number)
    if broker is None or broker.broker_epoch != epoch:
        raise RefusedError(offset)
    if kind == "UnregisterBrokerRecord":
        del brokers[number]
        return
    changed = {name: getattr(broker, name) for name in ("fenced", "in_controlled_shutdown", "log_dirs")}
    changed["cordoned_log_dirs"] = broker.cordoned_log_dirs
    if short:
        changed["fenced"] = kind == "FenceBrokerRecord"
    else:
        if record.fenced:
            changed["fenced"] = record.fenced == 1
        if record.in_controlled_shutdown:
            changed["in_controlled_shutdown"] = True
        if record.log_dirs:
            changed["log_dirs"] = record.log_dirs
        if record.cordoned_log_dirs is not None:
            changed["cordoned_log_dirs"] = record.cordoned_log_dirs
    brokers[number] = evolve(broker, **changed)


def opaque_step(values, value):
    """The opaque values after one more."""
    kind = value[1]
    if kind == 9:  # RemoveTopic
        topic = value[3:19]
        names = {topic_name(v) for v in values if v[1] == 2 and topic_id(v) == topic}
        values = [v for v in values if not (v[1] in (2, 3, 5) and topic_id(v) == topic)]
        values = [v for v in values if not (v[1] == 4 and v[3] == 2 and text(v, 4)[0] in names)]
        return [v for v in values if not (v[1] == 28 and text(v, 3)[0] in names)]
    if kind == 4:  # Config
        key, at = config_key(value)
        values = [v for v in values if not (v[1] == 4 and config_key(v)[0] == key)]
        return values if value[at] == 0 else [*values, value]
    if kind == 14:  # ClientQuota
        key, removes = quota_key(value)
        values = [v for v in values if not (v[1] == 14 and quota_key(v)[0] == key)]
        return values if removes else [*values, value]
    if kind == 15:  # ProducerIds
        return [*(v for v in values if v[1] != 15), value]
    return [*values, value]


def text(value, at):
    length = value[at] - 1
    return value[at + 1 : at + 1 + length].decode(), at + 1 + length


def topic_name(value):
    return text(value, 3)[0]


def topic_id(value):
    at = text(value, 3)[1] if value[1] == 2 else 7
    return value[at : at + 16]


def config_key(value):
    name, at = text(value, 4)
    key, at = text(value, at)
    return (value[3], name, key), at


def quota_key(value):
    count, at, entity = value[3] - 1, 4, set()
    for _ in range(count):
        kind, at = text(value, at)
        if value[at] == 0:
            name, at = None, at + 1
        else:
            name, at = text(value, at)
        at += 1  # no tagged fields
        entity.add((kind, name))
    key, at = text(value, at)
    (_,) = struct.unpack_from(">d", value, at)
    return (frozenset(entity), key), value[at + 8]


def state_of(image):
    """What an image of the engine holds, in the form of the states here."""
    return State(
        acls={rule.id: rule.acl for rule in image.acls},
        scram={(r.name, r.mechanism): r for r in image.scram.records()},
        tokens={r.token_id: r for r in image.tokens.records()},
        features={r.name: r for r in image.features.records()},
        brokers={r.broker_id: r for r in image.cluster.brokers()},
        opaque=list(image.opaque.values()),
    )


def assert_shows(image, moment):
    """Check that an image of the engine is this moment."""
    state = state_of(image)
    assert {id_: content(acl) for id_, acl in state.acls.items()} == {
        id_: content(record) for id_, record in moment.state.acls.items()
    }
    assert sorted(image.acls.records()) == sorted(map(encode_record, moment.state.acls.values()))
    assert state.scram == moment.state.scram
    assert state.tokens == moment.state.tokens
    assert state.features == moment.state.features
    assert state.brokers == moment.state.brokers
    assert state.opaque == moment.state.opaque
    where = image.provenance
    assert (where.end_offset, where.epoch, where.timestamp) == (moment.end_offset, moment.epoch, moment.timestamp)
    assert (where.kraft_version, where.voters) == (moment.kraft_version, moment.voters)
