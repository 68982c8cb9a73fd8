"""Many changes of a state at once end as the same changes one after the other."""

import pytest

from aclog.authorizer.acls_image import AclsImage, RuleChange, changed_acls
from aclog.metalog.errors import ConfigError
from tests.support.analysis.policies import image_of
from tests.support.builders.acls import acl

OLD, NEW = ([acl(f"{word}{number}") for number in range(150)] for word in ("old", "new"))


def test_many_changes_are_folded_into_one_base():
    before = image_of(OLD)
    changes = [RuleChange(added=False, acl=OLD[0]), *(RuleChange(added=True, acl=each) for each in NEW)]
    together, one_by_one = changed_acls(before, changes), before
    for change in changes:
        one_by_one = changed_acls(one_by_one, [change])
    assert (together.overlay_size, one_by_one.overlay_size) == (0, len(changes))
    assert together.digest() == one_by_one.digest()
    assert {rule.acl for rule in together} == {*OLD[1:], *NEW}


def test_the_options_of_the_image_stay():
    before = AclsImage.empty().with_options(documented=True, cidr=True)
    after = changed_acls(before.apply(()), [RuleChange(added=True, acl=each) for each in NEW])
    assert (after.documented, after.cidr) == (True, True)


def test_a_change_that_cannot_be_made_is_refused_among_many():
    with pytest.raises(ConfigError, match="no such ACL"):
        changed_acls(image_of(OLD), [RuleChange(added=False, acl=each) for each in (*OLD, NEW[0])])
