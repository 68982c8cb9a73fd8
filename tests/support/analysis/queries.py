"""Random queries about random policies."""

from random import Random

from aclog.analysis.regions import EVERYONE, RESOURCE_TYPES, Query, everyone_but, only
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import PatternType
from tests.support.analysis.model import EVERY_OPERATION
from tests.support.analysis.policies import ADDRESSES, NAMES, PRINCIPALS


def random_query(random: Random) -> Query:
    """A query that leaves out most requests."""
    resources = tuple(
        ResourcePattern(
            resource_type=random.choice(RESOURCE_TYPES),
            name=random.choice([*NAMES, "", "abq"]),
            pattern_type=random.choice([PatternType.LITERAL, PatternType.PREFIXED]),
        )
        for _ in range(random.randint(1, 3))
    )
    named = [name for name in random.sample(PRINCIPALS, 2) if name != "User:*"]
    return Query(
        resources=tuple(each for each in resources if each.name or each.pattern_type == PatternType.PREFIXED),
        operations=random.choice([EVERY_OPERATION, random.getrandbits(16) & EVERY_OPERATION]),
        principals=random.choice([EVERYONE, only("User:a", *named), everyone_but(*named)]),
        host=random.choice([None, *ADDRESSES]),
    )
