"""Suggesting rules from an access log, and proving that they suffice and give nothing new."""

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen

from aclog.analysis.difference import differences
from aclog.analysis.policy import Policy
from aclog.analysis.regions.region import Direction
from aclog.authorizer.acl import AclOperation, ResourceType, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.vectors import Bools
from aclog.usage.decisions.accesses import REQUEST_COLUMNS
from aclog.usage.decisions.bulk_authorizer import BulkAuthorizer
from aclog.usage.decisions.decision_codes import DecisionCode
from aclog.usage.decisions.necessary_acls import NecessaryAcls
from aclog.usage.decisions.rules import Rules
from aclog.usage.simulation import simulate
from aclog.usage.suggestion.cells import CellGatherer
from aclog.usage.suggestion.present_rules import PresentRules
from aclog.usage.suggestion.suggested_rule import SuggestedRule
from aclog.usage.suggestion.suggestion import FOLD, ExistingTopics, Suggesting
from aclog.usage.suggestion.used_access import used_accesses


@frozen(kw_only=True)
class Wanted:
    """What is to be suggested."""

    principals: frozenset[str] = frozenset()
    """The principals to suggest rules for; none for all."""
    least: int | None = FOLD
    """How many used names become their prefix; None for never."""
    topics: Collection[str] = ()
    """Topics that exist besides those that were used."""


@frozen(eq=False, kw_only=True)
class Suggestion:
    """Rules that keep every allowed access, and give nothing beyond the present set; both were proved."""

    rules: Sequence[SuggestedRule]
    accesses: int
    """The allowed accesses that they keep, repeated ones included."""
    denied: int
    """Those that the present set does not allow; no rule is suggested for them."""


class UnprovedError(MetadataError):
    """The suggested rules lose an access, or give something new: a fault, and they are not shown."""


def suggest(counted: pa.Table, present: Policy, wanted: Wanted) -> Suggestion:
    """Suggest rules for the accesses of a table (COUNTED) by a set of ACLs.

    Raises:
        ConfigError: the settings allow everyone where there is no ACL: to remove a rule may then open its resource.
        UnprovedError: the suggestion is wrong.

    """
    settings = present.settings
    if settings.allow_everyone:
        raise ConfigError(
            "with allow.everyone.if.no.acl.found a resource without rules is open to all, so fewer may give more: "
            "expected it to be false"
        )
    rules = Rules.of_image(present.acls)
    codes = BulkAuthorizer.of(rules.intervals, settings).decide([counted.column(name) for name in REQUEST_COLUMNS])
    allowing = np.asarray(rules.texts.table.column("decision")) == "ALLOWED"
    by_rules = allowing[codes - int(min(DecisionCode))] & (codes >= 0)
    allowed = counted.filter(pa.array(by_rules))
    kept, rows = _gathered(allowed, rules, settings, wanted)
    _prove([each.rule for each in kept], allowed.filter(pa.array(rows)), present)
    counts = np.asarray(counted.column("count"))
    return Suggestion(
        rules=kept,
        accesses=int(counts[by_rules][rows].sum()),
        denied=int(counts[~by_rules & (codes >= DecisionCode.DEFAULT_DENY)].sum()),
    )


def _gathered(allowed: pa.Table, rules: Rules, settings: Settings, wanted: Wanted) -> tuple[list[SuggestedRule], Bools]:
    """Return the suggested rules, and which of the accesses they are for."""
    present = PresentRules.of(rules)
    gatherer, writers, existing = CellGatherer(rules=present), dict[str, set[str]](), set(wanted.topics)
    chosen = np.ones(len(allowed), np.bool_)
    for at, access in enumerate(used_accesses(allowed, NecessaryAcls.of(rules.intervals, settings))):
        if access.resource_type is ResourceType.TOPIC:
            existing.add(access.resource_name)
            if access.operation is AclOperation.WRITE:
                writers.setdefault(access.resource_name, set()).add(access.principal)
        chosen[at] = not wanted.principals or access.principal in wanted.principals
        if chosen[at]:
            gatherer.add(access)
    # rules for everybody are for those only who ask for everybody's rules
    cells = gatherer.cells(present.principals(), everybody=not wanted.principals)
    making = Suggesting(rules=present, topics=ExistingTopics.of(existing, writers), least=wanted.least)
    return making.suggest(cells), chosen


def _prove(rules: Sequence[StandardAcl], accesses: pa.Table, present: Policy) -> None:
    """Raise UnprovedError if the rules lose one of these accesses, or allow what the present set does not."""
    suggested = Policy(_image_of(rules, present.acls), present.settings)
    sides = [(Rules.of_image(policy.acls), policy.settings) for policy in (present, suggested)]
    flips = simulate(accesses, *sides).flips
    if len(flips):
        raise UnprovedError(
            f"the suggestion would deny {len(flips):,} accesses that are allowed now: please report this"
        )
    gained = (each for each in differences(present, suggested) if each.direction is Direction.GAINED)
    new = next(gained, None)
    if new is not None:
        raise UnprovedError(f"the suggested rules allow what is denied now ({new.region}): please report this")


def _image_of(rules: Sequence[StandardAcl], like: AclsImage) -> AclsImage:
    acls = (StandardAclWithId(id=None, acl=rule) for rule in rules)
    return AclsImage.from_acls(acls).with_options(documented=like.documented, cidr=like.cidr)
