"""The suggestion: the least rules that keep what was used, each with what stands for it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
from attrs import field, frozen

from aclog.analysis.answers.intents import Intent
from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL, AclOperation, PatternType, ResourceType, StandardAcl
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.settings import Settings
from aclog.usage.decisions.accesses import ParsedAccess
from aclog.usage.suggestion.folding import Folding
from aclog.usage.suggestion.grant import Grant, literal_grants, without_covered
from aclog.usage.suggestion.intents import Intents
from aclog.usage.suggestion.need import Evidence, Needs
from aclog.usage.suggestion.rule_index import RuleIndex, allows, host_covers, is_allow
from aclog.usage.unread import UnreadAccesses

FOLD: Final = 5
"""So many used names become a prefix, by default."""

NOT_JUDGED: Final = "not judged"
"""How the reason begins for which a rule stays that unread accesses may have needed."""

_NOTHING: Final = Evidence(accesses=0, first=None, last=None)
_IMPLIED: Final = frozenset({AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS})


@frozen(kw_only=True)
class SuggestedRule:
    """A rule of the suggestion, and what stands for it."""

    acl: StandardAcl
    evidence: Evidence
    """Of the accesses that it is for; none for a rule that is kept for another reason."""
    names: int
    """The number of names that were used by it."""
    replaces: tuple[StandardAcl, ...]
    """The present rules that allowed these accesses; itself, if it is one of them."""
    intents: tuple[Intent, ...]
    why: str


@frozen(kw_only=True)
class Question:
    """What is to be suggested."""

    settings: Settings
    fold: int | None = FOLD
    principals: frozenset[str] = frozenset()
    """Whose rules are to be replaced; all, if empty. The rules of all others stay, those of `User:*` too."""
    topics: frozenset[str] = frozenset()
    """Topics that exist, besides those that were used."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """Accesses that could not be read or decided: the rules that they may need stay."""
    ranges_allow: bool = True
    """Whether ALLOWs with ranges are known to allow; not, where the Kafka that decides is unknown: then `settings` are
    those of one that knows ranges, as DENYs may deny."""


@frozen(eq=False, kw_only=True)
class Suggestion:
    """The least rules."""

    rules: tuple[SuggestedRule, ...]
    """Ordered by principal, resource and operation."""
    staying: tuple[StandardAcl, ...]
    """The rules of principals who were not asked about."""
    refused: tuple[str, ...]
    """Prefixes that many names could have become, and why they did not."""

    @property
    def acls(self) -> list[StandardAcl]:
        """All rules that are wanted."""
        return [*(rule.acl for rule in self.rules), *self.staying]


def suggest(needs: Needs, present: Collection[StandardAcl], question: Question) -> Suggestion:
    """Return the least rules that allow all needs and nothing that the present rules deny."""
    settings = question.settings
    staying = [rule for rule in present if question.principals and rule.principal not in question.principals]
    unjudged = _unjudged(present, question)
    sure = present if question.ranges_allow else [rule for rule in present if not is_cidr(rule.host)]
    allowing = RuleIndex.of(filter(is_allow, sure), settings)
    denies = [rule for rule in present if not is_allow(rule)]
    folding = Folding(
        least=question.fold,
        allowing=allowing,
        denying=RuleIndex.of(denies, settings),
        names=_names(needs, question.topics),
    )
    grants, refused = _grants(needs, folding, [*staying, *(rule.acl for rule in unjudged)], settings)
    intents = Intents.of(needs.by_access)
    found = [*unjudged, *(_granted(grant, intents) for grant in grants)]
    kept = [*(rule.acl for rule in found), *staying]
    stays = {rule.acl for rule in unjudged}
    found += (rule for rule in _denies(denies, kept, settings) if rule.acl not in stays)
    if settings.allow_everyone:
        closing = list(_closed(present, [*(rule.acl for rule in found), *staying], settings))
        found += closing
        known = {rule.acl for rule in found}
        overruling = _denies(denies, [rule.acl for rule in closing], settings)
        found += [rule for rule in overruling if rule.acl not in known]
    known = set(staying)
    rules = sorted((rule for rule in found if rule.acl not in known), key=lambda rule: _order(rule.acl))
    return Suggestion(rules=tuple(rules), staying=tuple(staying), refused=refused)


def _unjudged(present: Collection[StandardAcl], question: Question) -> list[SuggestedRule]:
    """Return the present rules that unread accesses may have needed, each as it is."""
    rules = list(dict.fromkeys(present))
    if not question.unread or not rules:
        return []
    who, denies = [rule.principal for rule in rules], np.array([not is_allow(rule) for rule in rules])
    by_presence = question.settings.allow_everyone
    concerned = question.unread.concerned(who, denies, by_presence=by_presence)
    counts = question.unread.counts(who, denies, by_presence=by_presence)
    return [
        _unused(rule, f"{NOT_JUDGED}: {count:,} accesses that may need it could not be read or decided")
        for rule, stays, count in zip(rules, concerned.tolist(), counts.tolist(), strict=True)
        if stays
    ]


def _names(needs: Needs, topics: Iterable[str]) -> Mapping[int, Mapping[str, Collection[str]]]:
    unowned: Collection[str] = ()
    known = {kind: dict[str, Collection[str]](names) for kind, names in needs.names.items()}
    of_topics = known.setdefault(ResourceType.TOPIC, {})
    for topic in topics:
        of_topics.setdefault(topic, unowned)
    return known


def _grants(
    needs: Needs, folding: Folding, staying: Iterable[StandardAcl], settings: Settings
) -> tuple[list[Grant], tuple[str, ...]]:
    given = RuleIndex.of(filter(is_allow, staying), settings)
    left = {need: evidence for need, evidence in needs.by_access.items() if not _is_given(need, given)}
    own = {need: evidence for need, evidence in left.items() if need.operation not in _IMPLIED}
    first = folding.fold(literal_grants(own, folding.allowing))
    # only now is it known which DESCRIBEs another operation implies
    known = RuleIndex.of((grant.acl for grant in first.grants), settings)
    implied = {need: evidence for need, evidence in left.items() if need.operation in _IMPLIED}
    alone = {need: evidence for need, evidence in implied.items() if not _is_given(need, known)}
    second = folding.fold(literal_grants(alone, folding.allowing))
    return without_covered([*first.grants, *second.grants], settings), (*first.refused, *second.refused)


def _is_given(need: ParsedAccess, given: RuleIndex) -> bool:
    return any(
        allows(rule, need.operation) and host_covers(rule.host, need.host, given.settings)
        for rule in given.on_name(need.resource_type, need.resource_name, need.principal)
    )


def _granted(grant: Grant, intents: Intents) -> SuggestedRule:
    return SuggestedRule(
        acl=grant.acl,
        evidence=grant.evidence,
        names=len(grant.names),
        replaces=tuple(sorted(grant.replaces, key=_order)),
        intents=intents.behind(grant.acl),
        why=grant.why,
    )


def _denies(denies: Iterable[StandardAcl], kept: Iterable[StandardAcl], settings: Settings) -> Iterator[SuggestedRule]:
    """Yield the present DENYs that overrule some of what is kept."""
    index = RuleIndex.of(denies, settings)
    over: dict[StandardAcl, StandardAcl] = {}
    for rule in kept:
        if is_allow(rule):
            for deny in index.touching(rule):
                over.setdefault(deny, rule)
    for deny in over:
        yield _unused(deny, "it overrules some of what the other rules allow")


def _closed(present: Iterable[StandardAcl], kept: Iterable[StandardAcl], settings: Settings) -> Iterator[SuggestedRule]:
    """Yield a present rule for each pattern that would have none: with allow.everyone it would be open to all."""
    index = RuleIndex.of(kept, settings)
    by_pattern: dict[tuple[int, int, str], list[StandardAcl]] = {}
    for rule in present:
        by_pattern.setdefault((rule.resource_type, rule.pattern_type, rule.resource_name), []).append(rule)
    for (kind, pattern_type, name), rules in sorted(by_pattern.items(), key=_from_wide):
        if not _covered(kind, pattern_type, name, index):
            least = min(rules, key=_reach)
            index.add(least)
            yield _unused(least, "with allow.everyone.if.no.acl.found its resources would be open without any rule")


def _from_wide(item: tuple[tuple[int, int, str], object]) -> tuple[object, ...]:
    kind, pattern_type, name = item[0]
    is_literal = pattern_type != PatternType.PREFIXED
    return (is_literal and name != WILDCARD, not is_literal, len(name), name, kind)


def _covered(kind: int, pattern_type: int, name: str, index: RuleIndex) -> bool:
    """Return whether all names that a pattern covers have a rule."""
    if pattern_type == PatternType.PREFIXED:
        found = index.on_all(kind, name, None)
    else:
        found = index.on_name(kind, name, None)
        if name == WILDCARD:  # covers all names, where PREFIXED `*` covers few
            found = (rule for rule in found if rule.pattern_type == pattern_type)
    return next(found, None) is not None


def _unused(acl: StandardAcl, why: str) -> SuggestedRule:
    return SuggestedRule(acl=acl, evidence=_NOTHING, names=0, replaces=(acl,), intents=(), why=why)


def _reach(rule: StandardAcl) -> tuple[object, ...]:
    """Return what orders rules from those that give nothing to those that give most."""
    allowing = is_allow(rule)
    wide = (rule.principal == WILDCARD_PRINCIPAL, rule.host == WILDCARD, rule.operation == AclOperation.ALL)
    return (allowing, *(wide if allowing else ()), _order(rule))


def _order(rule: StandardAcl) -> tuple[object, ...]:
    what = (rule.resource_type, rule.resource_name, rule.pattern_type, rule.operation)
    return (rule.principal, *what, rule.permission_type, rule.host)
