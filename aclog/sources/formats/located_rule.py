"""A rule, and the line that states it."""

from collections.abc import Iterable
from uuid import UUID

from attrs import define, field, frozen

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.origin import FileOrigin, Origin


@frozen(kw_only=True)
class LocatedRule:
    """A rule that a file states."""

    acl: StandardAcl
    origin: FileOrigin
    id: UUID | None = None


@define(eq=False)
class StatedRules:
    """The rules of some files, each once, and all places that state it (aclog.authorizer.origin.Origins)."""

    _origins: dict[StandardAcl, list[FileOrigin]] = field(factory=dict, init=False)
    _ids: dict[StandardAcl, UUID | None] = field(factory=dict, init=False)

    @staticmethod
    def of_rules(rules: Iterable[LocatedRule]) -> "StatedRules":
        """Collect rules."""
        made = StatedRules()
        for rule in rules:
            made._origins.setdefault(rule.acl, []).append(rule.origin)
            made._ids.setdefault(rule.acl, rule.id)
        return made

    def __len__(self) -> int:
        return len(self._origins)

    def rules(self) -> Iterable[StandardAclWithId]:
        """Return each rule once, in the order of reading."""
        return [StandardAclWithId(id=rule_id, acl=acl) for acl, rule_id in self._ids.items()]

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return every place that states a rule."""
        return tuple(self._origins.get(acl, ()))
