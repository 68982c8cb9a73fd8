"""Writes Jikkou's KafkaPrincipalAuthorization resources: one for each principal."""

import re
from collections.abc import Iterator, Sequence

from aclog.authorizer.acl import StandardAcl
from aclog.sources.formats.writers.grouping import by_principal, grants
from aclog.sources.formats.writers.yaml_text import quoted

_TEMPLATE = re.compile(r"\{[{%#]")


def unfit(rule: StandardAcl) -> str | None:
    """Return why a resource cannot hold a rule; None if it can."""
    if any(_TEMPLATE.search(text) for text in (rule.resource_name, rule.principal, rule.host)):
        return "Jikkou takes its name for a template"
    return None


def lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield the documents."""
    for principal, found in by_principal(rules):
        yield "---"
        yield "apiVersion: kafka.jikkou.io/v1"
        yield "kind: KafkaPrincipalAuthorization"
        yield "metadata:"
        yield f"  name: {quoted(principal)}"
        yield "spec:"
        yield "  acls:"
        for grant in grants(found):
            yield "    - resource:"
            yield f"        type: {grant.resource_type.name}"
            yield f"        pattern: {quoted(grant.resource_name)}"
            yield f"        patternType: {grant.pattern_type.name}"
            yield f"      type: {grant.permission_type.name}"
            yield f"      operations: [{', '.join(operation.name for operation in grant.operations)}]"
            yield f"      host: {quoted(grant.host)}"
