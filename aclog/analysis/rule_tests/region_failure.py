"""Failures that are regions: requests that are allowed, or denied, and should not be."""

from collections.abc import Iterable

from aclog.analysis.deciding import deciding
from aclog.analysis.policy import Policy
from aclog.analysis.regions.region import Region
from aclog.analysis.regions.region_text import hosts_text, who_text
from aclog.analysis.regions.witness import has_legal_name, witness
from aclog.analysis.rows.row import Clause
from aclog.analysis.rows.row_text import what_text
from aclog.analysis.rule_tests.outcome import Failure


def region_failures(policy: Policy, regions: Iterable[Region], *, verb: str) -> tuple[Failure, ...]:
    """Return a failure for each region; `verb` says what is so there: `is allowed`, `is denied`."""
    return tuple(_failure(policy, region, verb) for region in regions)


def _failure(policy: Policy, region: Region, verb: str) -> Failure:
    example = witness(region)
    clause = Clause(resource_type=region.resource_type, operations=region.operations, names=region.names)
    legal = "" if has_legal_name(region) else " (no topic can have such a name)"
    what = f"{who_text(region.principals)}: {what_text([clause])}"
    return Failure(
        found=f"{what} {verb}, from {hosts_text(region.hosts)}{legal}",
        request=example,
        decided_by=deciding(policy, example),
        region=region,
    )
