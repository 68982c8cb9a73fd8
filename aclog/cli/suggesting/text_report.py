"""The suggestion for people: by principal, the first rules, and how many more there are."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from aclog.authorizer.acl import AclPermissionType, PatternType, acl_text
from aclog.cli.suggesting.rows import shown_time
from aclog.usage.suggestion.suggestion import NOT_JUDGED, SuggestedRule, Suggestion

_SHOWN: Final = 40
"""Rules; and refused prefixes."""


def text_lines(suggestion: Suggestion, *, now: int, explain: bool) -> Iterator[str]:
    """Yield the lines; `now` is the number of present rules."""
    rules, staying = suggestion.rules, len(suggestion.staying)
    allows = [rule for rule in rules if rule.evidence.accesses]
    prefixes = sum(rule.acl.pattern_type == PatternType.PREFIXED for rule in allows)
    stays = f", beside {staying:,} of others that stay" if staying else ""
    yield f"{len(rules):,} rules{stays}; {now:,} now"
    unjudged = sum(rule.why.startswith(NOT_JUDGED) for rule in rules)
    others = f"; {unjudged:,} are not judged" if unjudged else ""
    yield (
        f"{len(allows):,} allow what was used, {prefixes:,} of them by prefix; "
        f"{len(rules) - len(allows) - unjudged:,} are kept for what they deny or close{others}"
    )
    for principal, group in groupby(rules[:_SHOWN], key=lambda rule: rule.acl.principal):
        yield ""
        yield f"{principal}:"
        for rule in group:
            yield from _lines(rule, explain=explain)
    if len(rules) > _SHOWN:
        yield ""
        yield f"... and {len(rules) - _SHOWN:,} more rules (--format table or jsonl, or --out FILE)"
    if explain and suggestion.refused:
        yield ""
        yield "not folded:"
        for text in suggestion.refused[:_SHOWN]:
            yield f"  {text}"
        if len(suggestion.refused) > _SHOWN:
            yield f"  ... and {len(suggestion.refused) - _SHOWN:,} more"


def _lines(rule: SuggestedRule, *, explain: bool) -> Iterator[str]:
    yield f"  {acl_text(rule.acl)}"
    evidence = rule.evidence
    if evidence.accesses:
        intents = f"{', '.join(rule.intents)}: " if rule.intents else ""
        names = f" on {rule.names:,} names" if rule.names > 1 else ""
        when = f", {shown_time(evidence.first)} to {shown_time(evidence.last)}" if evidence.first is not None else ""
        yield f"    {intents}{evidence.accesses:,} accesses{names}{when}; {_replaced(rule)}"
    if rule.why and (explain or rule.acl.permission_type != AclPermissionType.ALLOW or not evidence.accesses):
        yield f"    {rule.why}"


def _replaced(rule: SuggestedRule) -> str:
    if rule.replaces == (rule.acl,):
        return "as now"
    first, *others = (acl_text(acl) for acl in rule.replaces)
    return f"now by {first}" + (f" and {len(others):,} more" if others else "")
