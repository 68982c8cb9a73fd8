"""Which ACLs of a table concern a question: a condition that Spark evaluates."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from aclog.analysis.regions.query import Query
from aclog.analysis.regions.root import Root
from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL, PatternType, ResourceType
from aclog.authorizer.settings import Settings


def concerned(queries: Iterable[Query], settings: Settings) -> Column:
    """Return whether an ACL (columns of `aclog acls list`) concerns a query: true where `questions.concerns` is."""
    each = (_principal(query, settings) & _any(map(_covers, query.roots)) for query in queries)
    return _any(each)


def _principal(query: Query, settings: Settings) -> Column:
    if settings.allow_everyone:
        return F.lit(True)
    principal, named = F.col("principal"), query.principals.named
    asked = principal.isin(*named)
    everyone = (principal == WILDCARD_PRINCIPAL) | ~principal.contains(":")
    return everyone | (~asked if query.principals.complement else asked)


def _covers(root: Root) -> Column:
    """Return whether an ACL's pattern covers some of the names of a root."""
    name = F.col("resourceName")
    literal = (name == root.name) if root.literal else name.startswith(root.name)
    prefix = F.lit(root.name).startswith(name)
    covered = F.when(F.col("patternType") == PatternType.LITERAL.name, literal | (name == WILDCARD)).otherwise(
        prefix if root.literal else prefix | literal
    )
    return (F.col("resourceType") == ResourceType(root.kind).name) & covered


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions, F.lit(False))
