import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage, acl_of_content, content_of, contents_of, image_of
from tests.support.builders.acls import acl

CODES = st.sampled_from([2, 3, 4]) | st.integers(-128, 127)
NAMES = st.sampled_from(["a", "*", "é" * 70, "x" * 126, "x" * 127, "x" * 300]) | st.text(
    st.characters(exclude_categories=("Cs",)), max_size=4
)
ACLS = st.lists(
    st.builds(
        StandardAcl,
        resource_type=CODES,
        resource_name=NAMES,
        pattern_type=CODES,
        principal=NAMES,
        host=NAMES,
        operation=CODES,
        permission_type=CODES,
    ),
    unique=True,
    max_size=12,
)


@given(ACLS)
def test_an_image_of_contents_is_that_of_their_acls(acls):
    contents = {content_of(each) for each in acls}
    found = image_of(contents)
    expected = AclsImage.from_acls(StandardAclWithId(id=None, acl=each) for each in acls)
    assert {(rule.id, rule.acl) for rule in found} == {(None, each) for each in acls}
    assert found.digest() == expected.digest()
    assert contents_of(found) == contents
    assert {acl_of_content(each) for each in contents} == set(acls)


@pytest.mark.parametrize("damage", [lambda found: found[:-1], lambda found: found + b"\0", lambda _: b""])
def test_what_is_no_content_is_refused(damage):
    with pytest.raises(ValueError, match="not the content of an ACL"):
        image_of([content_of(acl("orders")), damage(content_of(acl("payments")))])
