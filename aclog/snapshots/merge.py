"""A merge under way: the folded ACLs, and the changes that they still lack."""

from attrs import define, field

from aclog.authorizer.acls_image import AclsImage
from aclog.snapshots.delta import AclChange

_AHEAD = 2
"""For each change of its own, how many journaled ones an update applies; and one in addition. More would end a merge
sooner, and make each of these updates cost more."""


@define(eq=False)
class Merge:
    """Owned by the publisher that began it, whose lock guards it.

    The journal holds every ACL change since then, in order; readers see those changes in the old form meanwhile. Once
    the folded ACLs are here, every update applies more journaled changes to them than it adds: so the merge ends
    under any load, after half as many updates as came while the ACLs were folded, and no update has to do more than
    a bounded multiple of its own work.
    """

    begun: AclsImage | None
    """The ACLs to fold; None once they are."""
    journal: list[AclChange] = field(factory=list)
    folded: AclsImage | None = None
    """The same ACLs in a new base, and those of the journaled changes that were applied to it."""
    replaced: AclsImage | None = None
    """What the folded ACLs replaced, once they did."""
    ended: bool = False
    """Whether it is done: the ACLs were replaced, or it is void."""
    failure: Exception | None = None
    """Why the changes could not be applied to the folded ACLs, which were wrong then."""
    _applied: int = 0
    _seen: int = 0

    def offer(self, folded: AclsImage) -> None:
        """Go on with the folded ACLs."""
        self.begun, self.folded, self._seen = None, folded, len(self.journal)

    @property
    def share(self) -> int:
        """How many journaled changes the update that was just journaled must apply."""
        own, self._seen = len(self.journal) - self._seen, len(self.journal)
        return _AHEAD * own + 1

    def step(self, most: int) -> AclsImage | None:
        """Apply up to `most` journaled changes; return the ACLs that have all of them, None if some are left.

        Raises:
            ReplayError: the folded ACLs are not what the changes were made to.

        """
        if self.folded is None:
            return None
        changes = self.journal[self._applied : self._applied + most]
        if changes:
            self.folded = self.folded.apply(changes)
            self._applied += len(changes)
        return self.folded if self._applied == len(self.journal) else None

    def end(self, replaced: AclsImage | None = None, failure: Exception | None = None) -> None:
        """Keep nothing but what was replaced, or why nothing was."""
        self.begun, self.folded, self.journal = None, None, []
        self.replaced, self.failure, self.ended = replaced, failure, True
