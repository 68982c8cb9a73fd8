"""The cells of one principal, which are looked up, beside those of all patterns; after changes of a base."""

from itertools import product
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from aclog.analysis.policy import Estate
from aclog.analysis.regions import Root
from aclog.authorizer.acl import AclBindingFilter, StandardAcl, record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclPermissionType, PatternType, ResourceType
from aclog.metalog.records import RemoveAccessControlEntryRecord
from tests.support.builders.acls import acl

NAMES = ("", "*", "a", "a.b", "a.bc", "b", "*a")
PRINCIPALS = ("User:x", "User:*", "Group:x", "x")
RULES = st.builds(
    acl,
    st.sampled_from(NAMES),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(["*", "10.0.0.1"]),
    resource_type=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    permission_type=st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
)
RULE_SETS = st.lists(RULES, max_size=12, unique=True)


@given(RULE_SETS, RULE_SETS, st.data())
def test_the_cells_of_a_principal(before: list[StandardAcl], after: list[StandardAcl], data: st.DataObject) -> None:
    ids = {rule: UUID(int=number) for number, rule in enumerate(before, 1)}
    acls = AclsImage.empty().apply([record_of(rule, id_) for rule, id_ in ids.items()]).merged()
    removed = data.draw(st.sets(st.sampled_from(before))) if before else set()
    acls = acls.apply([RemoveAccessControlEntryRecord(id=ids.pop(rule)) for rule in removed])
    come = {rule: UUID(int=number) for number, rule in enumerate(set(after) - ids.keys(), 100)}
    acls = acls.apply([record_of(rule, id_) for rule, id_ in come.items()])
    gone = data.draw(st.sets(st.sampled_from(sorted(come, key=str)))) if come else set()
    acls = acls.apply([RemoveAccessControlEntryRecord(id=come.pop(rule)) for rule in gone])
    estate, rules = Estate(acls.index), ids.keys() | come.keys()
    for principal in PRINCIPALS:
        matching = {rule.acl for rule in acls.matching(AclBindingFilter(principal=principal))}
        assert matching == {rule for rule in rules if rule.principal == principal}
        for kind, name in product((ResourceType.TOPIC, ResourceType.GROUP), ("", "a", "a.", "*")):
            root = Root(kind, name, literal=False)
            looked_up = sorted(
                cell for each in estate.under_of(root, principal) for cell in estate.cells_of(each, principal)
            )
            assert looked_up == sorted(
                cell for each in estate.under(root) for who, cell in estate.cells(each) if who == principal
            )
