"""What changed from one image to a later one, by id."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acl_records import acl_of
from aclog.authorizer.acls_image import AclsImage


class ImageChanges(NamedTuple):
    """ACLs that are in one image only."""

    removed: Sequence[UUID]
    added: Sequence[StandardAclWithId]


def image_changes(old: AclsImage, new: AclsImage) -> ImageChanges:
    """Compare two images; quickly if they share their base, as an image and those made from it by changes do."""
    if old.index is new.index:
        return ImageChanges((), ())
    base = new.index.base
    before, after = old.index.overlay, new.index.overlay
    if old.index.base is not base or any(row not in after.removed for row in before.removed):
        return _compared(old, new)
    rows = [row for row in after.removed if row not in before.removed]
    removed = {UUID(bytes=bytes(base.ids.ids[16 * row : 16 * row + 16])) for row in rows}
    removed.update(UUID(int=number) for number in before.added if number not in after.added)
    came = [record for number, record in after.added.items() if number not in before.added]
    # an id that went and came back is in both images
    same = removed.intersection(record.id for record in came)
    return ImageChanges(
        list(removed - same),
        [StandardAclWithId(id=record.id, acl=acl_of(record)) for record in came if record.id not in same],
    )


def _compared(old: AclsImage, new: AclsImage) -> ImageChanges:
    before, after = set(old.ids()), set(new.ids())
    found = [(each, new.get(each)) for each in after - before]
    return ImageChanges(
        list(before - after), [StandardAclWithId(id=each, acl=acl) for each, acl in found if acl is not None]
    )
