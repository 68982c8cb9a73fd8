"""The columns of regions of requests, and of the rules that decide them: JSON in programs' formats, words in tables."""

from collections.abc import Mapping, Sequence, Sized
from typing import Any

from aclog.authorizer.acl import PatternType
from aclog.authorizer.name_notation import name_text
from aclog.terminal.columns import Column


def set_text(found: Mapping[str, Any] | None) -> str:
    """Return principals or hosts: those that are named, or anyone but them."""
    if not found:
        return ""
    left_out = ", ".join(found.get("except", ()))
    if "cidr" in found or "in" in found:
        named = ", ".join(found.get("cidr", found.get("in", ())))
        return f"{named} but {left_out}" if left_out else named
    return f"any but {left_out}" if left_out else "any"


def names_text(parts: Sequence[Mapping[str, Any]] | None) -> str:
    """Return names and prefixes (aclog.authorizer.name_notation), and what is left out of these."""
    return ", ".join(map(_part_text, parts or ()))


def rule_text(rule: Mapping[str, Any] | str | None) -> str:
    """Return a rule, or a reason that is none, on one line."""
    if rule is None or isinstance(rule, str):
        return rule or ""
    return (
        f"{rule['permissionType']} {rule['principal']} {rule['operation']} on {rule['resourceType']} "
        f"{rule['patternType']} {rule['resourceName']!r} from {rule['host']}"
    )


def rules_text(rules: Sequence[Mapping[str, Any] | str] | None) -> str:
    """Return rules on one line."""
    return "; ".join(map(rule_text, rules or ()))


def request_text(request: Mapping[str, Any] | None) -> str:
    """Return a request on one line."""
    if request is None:
        return ""
    asked = f"{request['principal']} {request['operation']} {request['resourceType']}"
    return f"{asked} {request['resourceName']!r} from {request['host']}"


def _part_text(part: Mapping[str, Any]) -> str:
    if "literal" in part:
        return name_text(str(part["literal"]))
    left_out = [name_text(prefix, PatternType.PREFIXED) for prefix in part["exceptPrefixes"]]
    left_out += map(name_text, part["exceptLiterals"])
    prefix = name_text(str(part["prefix"]), PatternType.PREFIXED)
    return prefix + (f" but {' and '.join(left_out)}" if left_out else "")


REGION_COLUMNS = (
    Column(key="principals", cut=True, text=set_text),
    Column(key="operations", text=lambda found: ", ".join(found or ())),
    Column(key="resourceType", title="TYPE"),
    Column(key="names", cut=True, text=names_text),
    Column(key="hosts", cut=True, text=set_text),
)
"""The five sets."""

GENERATION = Column(key="generation", title="ONLY ON KAFKA")


def with_generation(columns: Sequence[Column], answers: Sized) -> tuple[Column, ...]:
    """Return the columns, and the generation of Kafka that alone decides so, if there are answers for several."""
    return (*columns, GENERATION) if len(answers) > 1 else tuple(columns)


WITNESS_COLUMNS = (
    Column(key="witness", title="SUCH AS", cut=True, spare=True, text=request_text),
    Column(key="legal", spare=True),
)
"""An example of a region; whether a topic can have its name, if not."""

PERMISSION_COLUMNS = (
    *REGION_COLUMNS,
    Column(key="rules", title="BY", cut=True, text=rules_text),
    Column(key="denies", title="LESS", cut=True, spare=True, text=rules_text),
    *WITNESS_COLUMNS,
)
"""Who may do what, by which rules (aclog.analysis.answers.permission_report)."""

PERMISSIONS_OF_PREFIXES = (*REGION_COLUMNS, Column(key="covers"), *PERMISSION_COLUMNS[len(REGION_COLUMNS) :])
"""The same where a prefix is asked about: whether it is ALL of its names, or SOME."""

DIFFERENCE_COLUMNS = (
    Column(key="change"),
    *REGION_COLUMNS,
    Column(key="old", title="DECIDED BEFORE BY", cut=True, text=rule_text),
    Column(key="new", title="AFTER BY", cut=True, text=rule_text),
    *WITNESS_COLUMNS,
    Column(key="topics", spare=True),
    Column(key="accesses", spare=True),
)
"""What a change gives or takes (aclog.analysis.comparison)."""
