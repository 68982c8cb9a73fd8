"""Differences between access states, and their records, which replay to the wanted state."""

from itertools import count
from uuid import UUID

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.codes import AclPermissionType
from aclog.metalog.batches import build_batch
from aclog.ops.migration_targets import AclIds
from aclog.snapshots.applier import Applier
from aclog.zookeeper.migration import AccessState, difference, record_values, state_of_image
from tests.zkstore.migration.entries import ACL, CREDENTIAL, TOKEN

names = st.sampled_from("abcd")
permissions = st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY])
states = st.builds(
    lambda acls, credentials, tokens: AccessState(
        acls=frozenset(evolve(ACL, resource_name=name, permission_type=permission) for name, permission in acls),
        credentials={
            (n, m): evolve(CREDENTIAL, name=n, mechanism=m, iterations=i) for (n, m), i in credentials.items()
        },
        tokens={name: evolve(TOKEN, token_id=name, expiration_timestamp=end) for name, end in tokens.items()},
    ),
    st.sets(st.tuples(names, permissions)),
    st.dictionaries(st.tuples(names, st.sampled_from([1, 2])), st.integers(4096, 4098)),
    st.dictionaries(names, st.integers(1, 3)),
)


@given(st.lists(states, min_size=1, max_size=4))
def test_records_of_a_difference_replay_to_the_wanted_state(wanted):
    applier, ids, current, offset = (
        Applier(),
        AclIds({}, (UUID(int=each) for each in count(2)).__next__),
        AccessState(),
        0,
    )
    for state in wanted:
        change = difference(current, state)
        values = list(record_values(change, ids.of(change)))
        assert len(values) == len(change)
        if values:
            applier.apply(build_batch(values, base_offset=offset, leader_epoch=1, timestamp=1))
            offset += len(values)
        assert state_of_image(applier.image) == state
        current = state


@given(states, states)
def test_removals_count_entries_of_the_first_state_only(first, second):
    gone = (
        len(first.acls - second.acls)
        + len(first.credentials.keys() - second.credentials.keys())
        + len(first.tokens.keys() - second.tokens.keys())
    )
    assert difference(first, second).removals == gone
    assert len(difference(first, first)) == 0


def test_secrets_are_not_in_the_repr():
    state = AccessState(credentials={("ann", 1): evolve(CREDENTIAL, salt=b"hush")})
    assert "hush" not in repr(state)
    assert "hush" not in repr(difference(AccessState(), state))
