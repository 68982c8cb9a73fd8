"""Proofs that a change leaves what must not change as it is (`review.untouched` in aclog.toml)."""

from collections.abc import Iterator, Sequence
from itertools import islice

from aclog.analysis.by_generation import marked
from aclog.analysis.comparison import Comparison
from aclog.analysis.difference import differences
from aclog.analysis.regions.query import Query
from aclog.analysis.review.outcomes import Proof
from aclog.analysis.rows.folding import rows
from aclog.analysis.rows.row_report import ReportRow, row_lines
from aclog.analysis.rule_tests.tested_resource import parse_resource, resource_text
from aclog.authorizer.acl import ResourcePattern
from aclog.cli.differing import Compared
from aclog.metalog.errors import ConfigError
from aclog.sources.repository.settings import RepositorySettings

_SHOWN = 5
"""Rows that refute a proof; the effective change has all."""


def untouched(settings: RepositorySettings) -> list[ResourcePattern]:
    """Return the resources on which nothing may change. Raises ConfigError: one is none, with file and line."""
    found = []
    for text in settings.review.untouched or ():
        try:
            found.append(parse_resource(text))
        except ConfigError as error:
            raise settings.error("review", "untouched", what=str(error)) from error
    return found


def prove(resources: Sequence[ResourcePattern], compared: Compared) -> list[Proof]:
    """Prove for each resource that every request on it is decided as before, by each Kafka that may decide."""
    return [_prove(each, compared) for each in resources]


def _prove(resource: ResourcePattern, compared: Compared) -> Proof:
    refuting = {generation: list(_refuting(resource, each)) for generation, each in compared.items()}
    by = [generation for generation, lines in refuting.items() if lines]
    return Proof(
        text=f"{resource_text(resource)} is decided as before",
        holds=not by,
        details=tuple(marked(refuting)),
        only=by[0] if len(by) == 1 else None,
    )


def _refuting(resource: ResourcePattern, comparison: Comparison) -> Iterator[str]:
    query = Query(resources=(resource,))
    changed = [change.acl for change in comparison.changes]
    found = list(differences(comparison.old, comparison.new, query=query, changed=changed))
    changes = ((change.added, change.acl) for change in comparison.changes)
    for row in islice(rows(found, comparison.old, comparison.new, changes), _SHOWN):
        yield from row_lines(ReportRow(row=row, origins=comparison.origins))
