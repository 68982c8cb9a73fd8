"""What is kept with a base keeps nothing alive, and grows with nothing that a stranger chooses."""

import gc
import weakref
from uuid import UUID

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import BaseReadings, Policy
from aclog.authorizer.acl import record_of
from aclog.authorizer.acls_image import AclsImage, RuleChange, changed_acls
from aclog.authorizer.codes import PatternType
from aclog.authorizer.index.base import LONGEST_REMEMBERED
from tests.support.builders.acls import acl

RULES = AclsImage.empty().apply([record_of(acl(f"t{number}"), UUID(int=number)) for number in range(1, 300)]).merged()


def compared(pattern: PatternType, name: str, more: int = 0) -> AclsImage:
    """Compare the rules with those and some more; the later ones."""
    added = [
        RuleChange(added=True, acl=acl(f"{name}{number}", "User:b", pattern_type=pattern)) for number in range(more + 1)
    ]
    later = changed_acls(RULES, added)
    assert Comparison.of(Policy(RULES), Policy(later), changes=added).rows()
    return later


def test_a_base_goes_with_the_last_that_holds_it() -> None:
    gc.disable()  # as good as off in the commands: images have no cycles
    try:
        for pattern in (PatternType.LITERAL, PatternType.PREFIXED):
            later = compared(pattern, "new-", more=200)
            base = weakref.ref(later.index.base)
            assert base() is not RULES.index.base
            del later
            assert base() is None
    finally:
        gc.enable()


def test_long_names_are_not_kept() -> None:
    readings = BaseReadings.of(compared(PatternType.PREFIXED, "u", more=200).index.base)
    assert readings._bounds.young
    assert readings._under.young
    readings = BaseReadings.of(compared(PatternType.PREFIXED, "x" * LONGEST_REMEMBERED, more=200).index.base)
    assert not readings._bounds.young
    assert not readings._under.young
