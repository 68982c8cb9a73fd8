"""Random logs: batches of every kind of record over small pools of names, so that they meet each other often."""

import random
import struct

from attrs import evolve

from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import KRaftVersion, KRaftVoters, LeaderChange, LeaderChangeVoter, control_batch
from aclog.metalog.primitives import compact_string, unsigned_varint
from aclog.metalog.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from aclog.snapshots.applier import Applier
from tests.support.builders.ids import uuid_of


class RandomLog:
    """Makes the bytes of a log, batch by batch; `rnd` is a random.Random, `faults` how often something is wrong."""

    def __init__(self, rnd, *, faults=0.0, acls_only=False, transactions=True):
        self.rnd, self.faults, self.acls_only, self.transactions = rnd, faults, acls_only, transactions
        self.offset, self.epoch, self.open = 0, 1, False
        self.live, self.held_live = {}, None
        self.brokers, self.held_brokers = {}, {}
        self.names = 0

    def batches(self, count):
        return [self.batch() for _ in range(count)]

    def batch(self):
        if not self.acls_only and self.rnd.random() < 0.08:
            return self.control()
        values = [self.value() for _ in range(self.rnd.choice((1, 1, 1, 2, 3, 8)))]
        data = build_batch(values, base_offset=self.offset, leader_epoch=self.epoch, timestamp=self.time())
        return self.placed(data, len(values))

    def placed(self, data, count):
        self.offset += count
        if self.rnd.random() < self.faults / 4:
            return self.damaged(data)
        return data

    def damaged(self, data):
        at = self.rnd.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << self.rnd.randrange(8)]) + data[at + 1 :]

    def time(self):
        return 1_700_000_000_000 + self.offset * 10 + self.rnd.randrange(-30, 30)

    def control(self):
        self.epoch += self.rnd.choice((0, 1))
        voter = LeaderChangeVoter(voter_id=1)
        records = [LeaderChange(leader_id=1, voters=(voter,), granting_voters=(voter,))]
        if self.rnd.random() < 0.5:
            records += [KRaftVersion(kraft_version=1), KRaftVoters(voters=())]
        data = control_batch(*records, base_offset=self.offset, leader_epoch=self.epoch, timestamp=self.time())
        return self.placed(data, len(records))

    def value(self):
        roll = self.rnd.random()
        if self.transactions and roll < 0.08:
            return self.marker()
        if self.acls_only or roll < 0.55:
            return encode_record(self.acl())
        if roll < 0.75:
            return self.opaque()
        if roll < 0.83:
            return encode_record(self.broker())
        return encode_record(self.credential())

    def marker(self):
        wrong = self.rnd.random() < self.faults / 4
        if self.open == wrong:
            if not self.open:
                self.held_live = dict(self.live)
                self.held_brokers = dict(self.brokers)
            self.open = True
            return encode_record(BeginTransactionRecord(name=self.rnd.choice((None, "t"))))
        self.open = False
        if self.rnd.random() < 0.4 and self.held_live is not None:
            self.live, self.brokers = self.held_live, self.held_brokers
            return encode_record(AbortTransactionRecord(reason="why"))
        return encode_record(EndTransactionRecord())

    def acl(self):
        wrong = self.rnd.random() < self.faults
        if self.live and self.rnd.random() < 0.45:
            id_ = self.rnd.choice(list(self.live)) if not wrong else uuid_of(self.rnd.randrange(40))
            self.live.pop(id_, None)
            tags = ((7, b"x"),) if self.rnd.random() < 0.02 else ()
            return RemoveAccessControlEntryRecord(id=id_, tagged_fields=tags)
        id_ = uuid_of(self.rnd.randrange(200))
        while id_ in self.live and not wrong:
            id_ = uuid_of(self.rnd.randrange(200))
        record = AccessControlEntryRecord(
            id=id_,
            resource_type=self.rnd.choice((2, 2, 3, 99, -3)),
            resource_name=self.rnd.choice(("", "a", "*", "größe", "n" * 130)) + str(self.rnd.randrange(60)),
            pattern_type=self.rnd.choice((3, 4, 4, 9)),
            principal=self.rnd.choice(("User:a", "User:*", "colonless")),
            host=self.rnd.choice(("*", "10.0.0.1")),
            operation=self.rnd.choice((2, 3)),
            permission_type=self.rnd.choice((2, 3)),
            tagged_fields=((3, b"tag"),) if self.rnd.random() < 0.02 else (),
        )
        if self.rnd.random() < 0.9 or not wrong:
            stands = {evolve(r, id=id_, tagged_fields=()) for r in self.live.values()}
            if evolve(record, tagged_fields=()) in stands and not wrong:
                return NoOpRecord()
        self.live[id_] = record
        return record

    def credential(self):
        rnd = self.rnd
        name, token = rnd.choice("abc"), "token" + rnd.choice("xyz")
        return rnd.choice(
            (
                UserScramCredentialRecord(
                    name=name,
                    mechanism=rnd.choice((1, 2)),
                    salt=b"salt",
                    stored_key=rnd.randbytes(4),
                    server_key=b"server",
                    iterations=4096,
                ),
                RemoveUserScramCredentialRecord(name=name, mechanism=rnd.choice((1, 2))),
                DelegationTokenRecord(
                    owner="User:" + name,
                    requester="User:r",
                    renewers=("User:q",),
                    issue_timestamp=1,
                    max_timestamp=9,
                    expiration_timestamp=rnd.randrange(9),
                    token_id=token,
                ),
                RemoveDelegationTokenRecord(token_id=token),
                FeatureLevelRecord(name="metadata.version", feature_level=rnd.choice((0, 30))),
                FeatureLevelRecord(name=rnd.choice("fg"), feature_level=rnd.randrange(4)),
                NoOpRecord(),
                UnregisterControllerRecord(controller_id=rnd.randrange(4)),
            )
        )

    def broker(self):
        """A registration of one of three brokers, or a change of one that is registered."""
        rnd, number = self.rnd, self.rnd.randrange(3)
        epoch = self.brokers.get(number)
        if rnd.random() < self.faults:
            epoch = rnd.randrange(99)
        kind = rnd.choice((FenceBrokerRecord, UnfenceBrokerRecord, UnregisterBrokerRecord, *[None] * 3))
        if epoch is None or rnd.random() < 0.3:
            self.brokers[number] = epoch = rnd.randrange(9)
            return registration(rnd, number, epoch)
        if kind is UnregisterBrokerRecord:
            self.brokers.pop(number, None)
            return UnregisterBrokerRecord(broker_id=number, broker_epoch=epoch)
        if kind is not None:
            return kind(id=number, epoch=epoch)
        return registration_change(rnd, number, epoch)

    def opaque(self):
        rnd = self.rnd
        topic = uuid_of(1000 + rnd.randrange(4)).bytes
        name = "topic" + topic.hex()[:3]
        key, body = rnd.choice(
            (
                (2, compact_string(name) + topic + b"\0"),
                (3, struct.pack(">i", rnd.randrange(3)) + topic + rnd.randbytes(3)),
                (5, struct.pack(">i", rnd.randrange(3)) + topic + rnd.randbytes(3)),
                (9, topic + b"\0"),
                (28, compact_string(rnd.choice((name, "", "unheard"))) + b"\0"),
                (4, self.config(rnd.choice((2, 2, 4)), name)),
                (14, self.quota()),
                (15, rnd.randbytes(20) + b"\0"),
                (21, rnd.randbytes(1) + b"\0"),
                (27, struct.pack(">i", rnd.randrange(3)) + rnd.randbytes(5)),
            )
        )
        return bytes((1, key, rnd.choice((0, 0, 2)))) + body

    def config(self, kind, name):
        value = self.rnd.choice((b"\0", compact_string("v" + str(self.rnd.randrange(9)))))
        return bytes((kind,)) + compact_string(name) + compact_string(self.rnd.choice("kl")) + value + b"\0"

    def quota(self):
        user = self.rnd.choice((b"\0", compact_string("u")))
        parts = [compact_string("user") + user + b"\0", compact_string("client-id") + compact_string("c") + b"\0"]
        self.rnd.shuffle(parts)
        parts = parts[: self.rnd.choice((1, 2))]
        head = unsigned_varint(len(parts) + 1) + b"".join(parts) + compact_string(self.rnd.choice("mn"))
        return head + struct.pack(">d", self.rnd.random()) + bytes((self.rnd.choice((0, 0, 1)), 0))


def registration(rnd, number, epoch):
    """A RegisterBrokerRecord in any version."""
    version = rnd.randrange(5)
    return RegisterBrokerRecord(
        version=version,
        broker_id=number,
        is_migrating_zk_broker=version >= 2 and rnd.random() < 0.1,
        incarnation_id=uuid_of(rnd.randrange(9)),
        broker_epoch=epoch,
        end_points=(
            BrokerEndpoint(name="PLAINTEXT", host="host", port=rnd.choice((9092, 65535)), security_protocol=0),
        ),
        features=(BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),),
        rack=rnd.choice((None, "", "rack")),
        fenced=rnd.random() < 0.5,
        in_controlled_shutdown=version >= 1 and rnd.random() < 0.2,
        log_dirs=(uuid_of(5),) if version >= 3 and rnd.random() < 0.8 else (),
        cordoned_log_dirs=rnd.choice((None, (), (uuid_of(5),))) if version >= 4 else None,
        tagged_fields=((9, b"tag"),) if rnd.random() < 0.1 else (),
    )


def registration_change(rnd, number, epoch):
    """A BrokerRegistrationChangeRecord in any version."""
    version = rnd.randrange(4)
    return BrokerRegistrationChangeRecord(
        version=version,
        broker_id=number,
        broker_epoch=epoch,
        fenced=rnd.choice((-1, 0, 1)),
        in_controlled_shutdown=rnd.choice((0, 1)) if version >= 1 else 0,
        log_dirs=(uuid_of(6),) if version >= 2 and rnd.random() < 0.5 else (),
        cordoned_log_dirs=rnd.choice((None, (), (uuid_of(6),))) if version >= 3 else None,
    )


def random_image(seed, count=30):
    """The image that `count` random batches of a seed add up to."""
    applier = Applier()
    for batch in RandomLog(random.Random(seed)).batches(count):
        applier.apply(batch)
    return applier.image
