"""Generated records: hypothesis strategies for every record type and control record, and mutations of bytes."""

import random
from collections.abc import Iterator

from hypothesis import strategies as st

from aclog.metalog import records as r
from aclog.metalog.control_records import (
    Endpoint,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    LeaderChangeVoter,
    SnapshotFooter,
    SnapshotHeader,
    SupportedVersions,
    Voter,
)
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import compact_string

INT8, INT16, INT32, INT64 = (st.integers(-(1 << bits), (1 << bits) - 1) for bits in (7, 15, 31, 63))
TEXT = st.text(max_size=12) | st.sampled_from(["", "*", "User:*", "é" * 70, "x" * 126, "x" * 127, "x" * 128, "y" * 300])
BYTES = st.binary(max_size=40) | st.just(b"k" * 200)
UUIDS = st.uuids()


def tagged(first: int = 0) -> st.SearchStrategy:
    """Unknown tagged fields, tags from `first` on; mostly none."""
    tags = st.dictionaries(st.integers(first, 300) | st.just(0xFFFFFFFF), st.binary(max_size=6), max_size=3)
    return st.just(()) | tags.map(lambda fields: tuple(sorted(fields.items())))


ACL_ADDS = st.builds(
    r.AccessControlEntryRecord,
    id=UUIDS,
    resource_type=INT8,
    resource_name=TEXT,
    pattern_type=INT8,
    principal=TEXT,
    host=TEXT,
    operation=INT8,
    permission_type=INT8,
    tagged_fields=tagged(),
)
ACL_REMOVES = st.builds(r.RemoveAccessControlEntryRecord, id=UUIDS, tagged_fields=tagged())
SCRAM = st.builds(
    r.UserScramCredentialRecord,
    name=TEXT,
    mechanism=INT8,
    salt=BYTES,
    stored_key=BYTES,
    server_key=BYTES,
    iterations=INT32,
    tagged_fields=tagged(),
)
TOKENS = st.builds(
    r.DelegationTokenRecord,
    owner=TEXT,
    requester=TEXT,
    renewers=st.lists(TEXT, max_size=3).map(tuple),
    issue_timestamp=INT64,
    max_timestamp=INT64,
    expiration_timestamp=INT64,
    token_id=TEXT,
    tagged_fields=tagged(),
)
TRANSACTION_MARKS = st.one_of(
    st.builds(r.BeginTransactionRecord, name=st.none() | TEXT, tagged_fields=tagged(1)),
    st.builds(r.EndTransactionRecord, tagged_fields=tagged()),
    st.builds(r.AbortTransactionRecord, reason=st.none() | TEXT, tagged_fields=tagged(1)),
)
ENDPOINTS = st.builds(
    r.BrokerEndpoint, name=TEXT, host=TEXT, port=st.integers(0, 65535), security_protocol=INT16, tagged_fields=tagged()
)
BROKER_FEATURES = st.builds(
    r.BrokerFeature, name=TEXT, min_supported_version=INT16, max_supported_version=INT16, tagged_fields=tagged()
)
UUID_LISTS = st.lists(UUIDS, max_size=3).map(tuple)


def registrations(version: int) -> st.SearchStrategy:
    """RegisterBrokerRecords of one version."""
    return st.builds(
        r.RegisterBrokerRecord,
        version=st.just(version),
        broker_id=INT32,
        is_migrating_zk_broker=st.booleans() if version >= 2 else st.just(value=False),
        incarnation_id=UUIDS,
        broker_epoch=INT64,
        end_points=st.lists(ENDPOINTS, max_size=2).map(tuple),
        features=st.lists(BROKER_FEATURES, max_size=2).map(tuple),
        rack=st.none() | TEXT,
        fenced=st.booleans(),
        in_controlled_shutdown=st.booleans() if version >= 1 else st.just(value=False),
        log_dirs=UUID_LISTS if version >= 3 else st.just(()),
        cordoned_log_dirs=st.none() | UUID_LISTS if version >= 4 else st.none(),
        tagged_fields=tagged(2),
    )


def registration_changes(version: int) -> st.SearchStrategy:
    """BrokerRegistrationChangeRecords of one version."""
    return st.builds(
        r.BrokerRegistrationChangeRecord,
        version=st.just(version),
        broker_id=INT32,
        broker_epoch=INT64,
        fenced=INT8,
        in_controlled_shutdown=INT8 if version >= 1 else st.just(0),
        log_dirs=UUID_LISTS if version >= 2 else st.just(()),
        cordoned_log_dirs=st.none() | UUID_LISTS if version >= 3 else st.none(),
        tagged_fields=tagged(4),
    )


BROKERS = st.one_of(
    *map(registrations, range(5)),
    *map(registration_changes, range(4)),
    st.builds(r.UnregisterBrokerRecord, broker_id=INT32, broker_epoch=INT64, tagged_fields=tagged()),
    st.builds(r.FenceBrokerRecord, id=INT32, epoch=INT64, tagged_fields=tagged()),
    st.builds(r.UnfenceBrokerRecord, id=INT32, epoch=INT64, tagged_fields=tagged()),
)
OPAQUE = st.builds(
    lambda key, version, body: r.OpaqueRecord(api_key=key, version=version, value=bytes((1, key, version)) + body),
    st.sampled_from([2, 3, 4, 6, 27, 30, 127]),
    st.integers(0, 127),
    st.binary(max_size=20),
)
RECORDS = st.one_of(
    ACL_ADDS,
    ACL_REMOVES,
    SCRAM,
    TOKENS,
    TRANSACTION_MARKS,
    st.builds(r.RemoveUserScramCredentialRecord, name=TEXT, mechanism=INT8, tagged_fields=tagged()),
    st.builds(r.RemoveDelegationTokenRecord, token_id=TEXT, tagged_fields=tagged()),
    st.builds(r.FeatureLevelRecord, name=TEXT, feature_level=INT16, tagged_fields=tagged()),
    st.builds(r.NoOpRecord, tagged_fields=tagged()),
    BROKERS,
    st.builds(r.UnregisterControllerRecord, controller_id=INT32, tagged_fields=tagged()),
    OPAQUE,
)
_LEADER_VOTERS = st.lists(st.builds(LeaderChangeVoter, voter_id=INT32, tagged_fields=tagged()), max_size=3).map(tuple)
_VOTERS = st.builds(
    Voter,
    voter_id=INT32,
    voter_directory_id=UUIDS,
    endpoints=st.lists(
        st.builds(Endpoint, name=TEXT, host=TEXT, port=st.integers(0, 65535), tagged_fields=tagged()), max_size=2
    ).map(tuple),
    kraft_version_feature=st.builds(
        SupportedVersions, min_supported_version=INT16, max_supported_version=INT16, tagged_fields=tagged()
    ),
    tagged_fields=tagged(),
)
CONTROL_RECORDS = st.one_of(
    st.builds(
        LeaderChange,
        leader_id=INT32,
        voters=_LEADER_VOTERS,
        granting_voters=_LEADER_VOTERS,
        tagged_fields=tagged(),
    ),
    st.builds(SnapshotHeader, last_contained_log_timestamp=INT64, tagged_fields=tagged()),
    st.builds(SnapshotFooter, tagged_fields=tagged()),
    st.builds(KRaftVersion, kraft_version=INT16, tagged_fields=tagged()),
    st.builds(KRaftVoters, voters=st.lists(_VOTERS, max_size=3).map(tuple), tagged_fields=tagged()),
)

HOSTILE = (
    b"\xff\xff\xff\xff\x07",  # 2^31 - 1 as an unsigned varint
    b"\xfe\xff\xff\xff\x0f",  # 2^31 - 1 as a zigzag varint
    b"\xff\xff\xff\xff\x0f",  # 2^32 - 1; as zigzag, -2^31
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # -2^63 as a zigzag varlong
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",  # never ends
    b"\x80\x00",  # longer than needed
    b"\x7f\xff\xff\xff",  # 2^31 - 1 as an int32
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\x00",
    b"\x01",
)


def mutations(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Damaged forms of some bytes: flipped, overwritten with hostile numbers, cut, stretched, spliced."""
    chance = random.Random(seed)
    for _ in range(count):
        mutant = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            at, patch = chance.randrange(len(mutant) + 1), chance.choice(HOSTILE)
            match chance.randrange(6):
                case 0:
                    mutant[at : at + 1] = bytes((chance.randrange(256),))
                case 1:
                    mutant[at : at + len(patch)] = patch
                case 2:
                    mutant[at:at] = patch
                case 3:
                    del mutant[at:]
                case 4:
                    del mutant[at : at + chance.randrange(1, 9)]
                case 5:
                    other = chance.randrange(len(mutant) + 1)
                    mutant[at:at] = mutant[other : other + chance.randrange(1, 40)]
        yield bytes(mutant)


def check_error(error: DecodeError) -> None:
    """One line that says where."""
    assert "\n" not in str(error)
    assert error.position is not None


def controller_registration(controller_id: int, level: int, **others: int) -> bytes:
    """The value of a RegisterControllerRecord: a listener, and the newest levels of metadata.version and of others."""
    listener = compact_string("CONTROLLER") + compact_string("here") + (9093).to_bytes(2) + (0).to_bytes(2) + b"\0"
    levels = {
        "group.version": 1,
        "metadata.version": level,
        **{name.replace("_", "."): n for name, n in others.items()},
    }
    features = b"".join(
        compact_string(name) + (0).to_bytes(2) + newest.to_bytes(2) + b"\0" for name, newest in levels.items()
    )
    head = bytes([1, r.RecordType.REGISTER_CONTROLLER_RECORD, 0]) + controller_id.to_bytes(4) + bytes(16) + b"\0"
    return head + bytes([2]) + listener + bytes([len(levels) + 1]) + features + b"\0"
