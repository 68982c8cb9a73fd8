"""A finding with the places of its rules."""

from collections.abc import Iterator

from attrs import frozen

from aclog.analysis.lint.catalogue import BY_ID, Lint
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint_report.suppression import Suppression
from aclog.analysis.regions.region_json import JsonObject
from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.origin import FileOrigin, Origin, Origins, origin_object, origin_text


@frozen(kw_only=True)
class LocatedRule:
    """A rule, and every place that states it; none if that is not known."""

    acl: StandardAcl
    origins: tuple[Origin, ...]

    def files(self) -> Iterator[FileOrigin]:
        """Yield those of the places that are lines of files."""
        return (each for each in self.origins if isinstance(each, FileOrigin))

    def places_text(self) -> str:
        """Return such as `kafka/a.yaml:12, kafka/b.yaml:3`; empty if no place is known."""
        return ", ".join(map(_place_text, self.origins))


@frozen(kw_only=True)
class LocatedFinding:
    """A finding, where its rules stand, and the suppression that accepts it, if one does."""

    finding: Finding
    rules: tuple[LocatedRule, ...]
    suppressed_by: Suppression | None = None

    @staticmethod
    def of(finding: Finding, origins: Origins) -> "LocatedFinding":
        """Look up the places of a finding's rules."""
        return LocatedFinding(
            finding=finding, rules=tuple(LocatedRule(acl=acl, origins=origins.of(acl)) for acl in finding.rules)
        )

    @property
    def lint(self) -> Lint:
        """The lint that found it."""
        return BY_ID[self.finding.lint]


def _place_text(origin: Origin) -> str:
    """Return a place; with the address in Terraform's state, since one line may state many rules (`for_each`)."""
    address = origin.address if isinstance(origin, FileOrigin) else None
    return origin_text(origin) if address is None else f"{origin_text(origin)} ({address})"


def rule_object(acl: StandardAcl) -> JsonObject:
    """Return the seven keys of a rule (`acls list --format jsonl`)."""
    row: JsonObject = {**StandardAclWithId(id=None, acl=acl).to_dict()}
    del row["id"]
    return row


def located_object(rule: LocatedRule) -> JsonObject:
    """Return a rule with the keys of its first place, and under `also` those of the others."""
    row = rule_object(rule.acl)
    if rule.origins:
        row |= origin_object(rule.origins[0])
    if rule.origins[1:]:
        row["also"] = [origin_object(each) for each in rule.origins[1:]]
    return row
