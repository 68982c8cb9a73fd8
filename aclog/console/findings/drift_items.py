"""Rules that are not as their source wants them, as findings."""

from collections.abc import Sequence

from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report.lint_report import plural
from aclog.analysis.lint_report.located_finding import LocatedRule
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.origin import Origins
from aclog.authorizer.rule_change import RuleChange
from aclog.authorizer.rule_content import acl_of_content
from aclog.console.findings.item import Item, Kind
from aclog.console.findings.looked import Looked
from aclog.planning.drift import Drift, DriftKind

_TEXTS = {
    (DriftKind.MISSING, True): "wanted, applied, and no longer there: somebody else deleted it",
    (DriftKind.MISSING, False): "wanted, and never applied",
    (DriftKind.LEFTOVER, True): "owned, no longer wanted, and still there",
    (DriftKind.LEFTOVER, False): "no longer wanted, and still there",
}


def drift_looked(drift: Sequence[Drift], foreign: int, wanted: Origins) -> Looked:
    """Return what drifts; `foreign`: how many rules are neither wanted nor owned; `wanted`: where wanted ones stand."""
    others = f"; neither wanted nor owned: {plural(foreign, 'rule')}" if foreign else ""
    return Looked(
        items=tuple(_item(each, wanted) for each in drift),
        summary=f"{plural(len(drift), 'drift')}{others}" if drift else f"no drift{others}",
    )


def drifted_then(then: AclsImage, found: Looked) -> frozenset[str]:
    """Return the keys of what drifted in an earlier state as well, by what is wanted and owned now."""
    return frozenset(
        each.key
        for each in found.items
        if (then.find(each.rules[0].acl) is None) is (each.name == DriftKind.MISSING.value.lower())
    )


def _item(drift: Drift, wanted: Origins) -> Item:
    acl, is_missing = acl_of_content(drift.content), drift.kind is DriftKind.MISSING
    return Item(
        kind=Kind.DRIFT,
        key=f"drift {drift.kind} {drift.content.hex()}",
        severity=Severity.ERROR,
        name=drift.kind.value.lower(),
        text=_TEXTS[drift.kind, drift.owned],
        rules=(LocatedRule(acl=acl, origins=wanted.of(acl) if is_missing else ()),),
        changes=(RuleChange(added=is_missing, acl=acl),),
        advice="aclog plan and apply mend all of it",
    )
