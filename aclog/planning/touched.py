"""The touched region of a change: the ACLs of a place whose effect it may meet."""

from collections.abc import Iterable
from hashlib import sha256

from attrs import frozen

from aclog.authorizer.acl import WILDCARD_PRINCIPAL, StandardAcl, resource_of
from aclog.authorizer.rule_content import pattern_of_content
from aclog.planning.overlap import PatternSet


@frozen(kw_only=True)
class Touched:
    """How many ACLs are in a touched region, and a digest of them."""

    rules: int
    digest: str
    """SHA-256 of their sorted contents, in hexadecimal."""


@frozen(kw_only=True)
class TouchedRegion:
    """What a change may meet: names that its ACLs cover, of its principals or of all."""

    _patterns: PatternSet
    _principals: frozenset[str] | None
    """None: of all."""

    @classmethod
    def of(cls, acls: Iterable[StandardAcl], *, allow_everyone: bool) -> "TouchedRegion":
        """Return the region that these ACLs touch.

        With `allow_everyone` any ACL on a name matters to all: it closes what no ACL covers. So does an ACL whose
        principal has no colon: Kafka's authorizer throws when it meets it.
        """
        changed = list(acls)
        principals = frozenset(acl.principal for acl in changed)
        for_all = allow_everyone or any(map(_is_for_all, principals))
        return cls(patterns=PatternSet.of(map(resource_of, changed)), principals=None if for_all else principals)

    def among(self, contents: Iterable[bytes]) -> set[bytes]:
        """Return those of the ACLs that are in the region."""
        return {content for content in contents if self._holds(*pattern_of_content(content))}

    def _holds(self, resource_type: int, name: str, pattern_type: int, principal: str) -> bool:
        asked = self._principals
        if asked is not None and principal not in asked and not _is_for_all(principal):
            return False
        return self._patterns.meets(resource_type, name, pattern_type)


def _is_for_all(principal: str) -> bool:
    return principal == WILDCARD_PRINCIPAL or ":" not in principal


def touched(contents: Iterable[bytes]) -> Touched:
    """Return what is kept of the ACLs of a region."""
    found = sorted(contents)
    return Touched(rules=len(found), digest=sha256(b"".join(found)).hexdigest())
