"""Plans of a reverse migration: intermediate states, and entries that ZooKeeper cannot hold."""

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from aclog.credentials.scram import ScramMechanism
from aclog.zookeeper.migration import AccessState, difference, storable, store_plan
from aclog.zookeeper.znodes import entry_of
from tests.zkstore.migration.entries import ACL, CREDENTIAL, TOKEN

acls = st.frozensets(
    st.builds(
        lambda name, principal, permission: evolve(
            ACL, resource_name=name, principal=principal, permission_type=permission
        ),
        st.sampled_from("abc"),
        st.sampled_from(["User:x", "User:y"]),
        st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
    )
)


def after(rules, changes):
    """Return the ACLs of a store after changes, resource by resource."""
    found = set(rules)
    for pattern, change in changes.items():
        mine = {rule for rule in found if rule.resource_name == pattern.name}
        entries = change.apply(frozenset(map(entry_of, mine)))
        found = found - mine | {entry.on(pattern) for entry in entries}
    return frozenset(found)


@given(acls, acls)
def test_the_middle_of_a_plan_allows_only_what_both_ends_allow(before, wanted):
    plan = store_plan(AccessState(acls=wanted), difference(AccessState(acls=before), AccessState(acls=wanted)))
    middle = after(before, plan.first)
    assert after(middle, plan.second) == wanted
    allows = {rule for rule in middle if rule.permission_type == AclPermissionType.ALLOW}
    denies = {rule for rule in before | wanted if rule.permission_type == AclPermissionType.DENY}
    assert allows <= before & wanted
    assert denies <= middle


def test_a_changed_user_is_written_with_all_credentials():
    other = evolve(CREDENTIAL, mechanism=ScramMechanism.SCRAM_SHA_512)
    before = AccessState(credentials={("ann", 1): CREDENTIAL, ("bob", 1): evolve(CREDENTIAL, name="bob")})
    wanted = AccessState(credentials={("ann", 1): CREDENTIAL, ("ann", 2): other})
    plan = store_plan(wanted, difference(before, wanted))
    assert plan.users == {"ann": (CREDENTIAL, other), "bob": ()}


def test_tokens_are_added_changed_and_removed():
    before = AccessState(tokens={"t": TOKEN, "gone": evolve(TOKEN, token_id="gone")})
    renewed = evolve(TOKEN, expiration_timestamp=3)
    wanted = AccessState(tokens={"t": renewed, "u": evolve(TOKEN, token_id="u")})
    plan = store_plan(wanted, difference(before, wanted))
    assert set(plan.tokens) == set(wanted.tokens.values())
    assert plan.removed_tokens == ("gone",)


def test_entries_that_a_store_cannot_hold_are_reported():
    bad = {
        evolve(ACL, resource_name="a/b"): "expected no /",
        evolve(ACL, resource_name=""): "non-empty",
        evolve(ACL, resource_name="🔑"): "expected no U+1F511",
        evolve(ACL, resource_type=99): "resource type",
        evolve(ACL, pattern_type=PatternType.MATCH): "pattern type",
        evolve(ACL, operation=AclOperation.TWO_PHASE_COMMIT): "not supported by Kafka 3.9",
        evolve(ACL, permission_type=0): "expected ALLOW or DENY",
        evolve(ACL, principal="ann"): "no colon",
    }
    state = AccessState(
        acls=frozenset({ACL, *bad}),
        credentials={
            ("ann", 1): CREDENTIAL,
            (".", 1): evolve(CREDENTIAL, name="."),
            ("x", 9): evolve(CREDENTIAL, mechanism=9),
        },
        tokens={"t": TOKEN, "a/b": evolve(TOKEN, token_id="a/b")},
    )  # fmt: skip
    kept, left_out = storable(state)
    assert kept == AccessState(acls=frozenset({ACL}), credentials={("ann", 1): CREDENTIAL}, tokens={"t": TOKEN})
    assert len(left_out) == len(bad) + 3
    for acl, reason in bad.items():
        [omission] = [each for each in left_out if each.path == str(acl)]
        assert reason in omission.reason


def test_a_resource_with_too_many_acls_for_a_node_is_reported():
    crowd = frozenset(evolve(ACL, principal=f"User:{number:0100}") for number in range(6000))
    kept, [left] = storable(AccessState(acls=crowd | {evolve(ACL, resource_name="other")}))
    assert {acl.resource_name for acl in kept.acls} == {"other"}
    assert "6000 ACLs" in left.reason
