"""A change of one rule, and what it makes of a set of rules."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from uuid import UUID

from attrs import field, frozen

from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.acl_records import acl_of, record_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.origin import FileOrigin, Origin, Origins
from aclog.authorizer.rule_content import content_of, contents_of, image_of
from aclog.metalog.codec import decode_record
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord

_ID, _REST = 3, 19
"""Where the id begins in the record of an ACL, and the rest after it: the frame's header has three bytes."""

_MANY = 100
"""Changes; with more, folding them into a new base costs less than to read past them."""


class Action(StrEnum):
    """What a change does with a rule."""

    ADD = "ADD"
    REMOVE = "REMOVE"


@frozen(kw_only=True)
class RuleChange:
    """An ACL that is added or removed; `where` is the flag, file and line that it comes from, for errors."""

    added: bool
    acl: StandardAcl
    where: str = field(default="", eq=False)
    origin: FileOrigin | None = field(default=None, eq=False)
    """The file and line of the change."""


def existing_rule(change: RuleChange) -> ConfigError:
    """Return the error of adding an ACL that exists."""
    return ConfigError(f"{change.where}: the ACL exists already: {acl_text(change.acl)}")


def missing_rule(change: RuleChange) -> ConfigError:
    """Return the error of removing an ACL that does not exist."""
    return ConfigError(f"{change.where}: no such ACL: {acl_text(change.acl)}")


def changed_acls(acls: AclsImage, changes: Sequence[RuleChange]) -> AclsImage:
    """Return the ACLs after these changes, applied in order; a new ACL gets an id made of its content.

    Raises:
        ConfigError: an ACL to add exists already, or one to remove does not exist.

    """
    return _changed_records(acls, changes) if acls.index.base.has_ids else _changed_contents(acls, changes)


@frozen
class ChangedOrigins:
    """Where the rules of a state and of changes of it stand (aclog.authorizer.origin.Origins).

    A rule that the state's source does not locate stands where a change adds or removes it.
    """

    _before: Origins
    _changed: Mapping[StandardAcl, FileOrigin]

    @staticmethod
    def of_changes(before: Origins, changes: Iterable[RuleChange]) -> "ChangedOrigins":
        """Return those of the state before the changes, and after them."""
        return ChangedOrigins(before, {each.acl: each.origin for each in changes if each.origin is not None})

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return every place that states a rule."""
        found = self._before.of(acl)
        return found or ((self._changed[acl],) if acl in self._changed else ())


def net_changes(changes: Iterable[RuleChange]) -> list[RuleChange]:
    """Return the changes that are left of some that were applied in order: none of an ACL that came and went."""
    found: dict[StandardAcl, RuleChange] = {}
    for change in changes:
        if found.pop(change.acl, None) is None:
            found[change.acl] = change
    return list(found.values())


def changes_between(old: AclsImage, new: AclsImage) -> list[RuleChange]:
    """Return the changes that make the contents of one image those of another; ids do not count."""
    # Bytes are compared, as objects for a million ACLs would take far longer to make.
    only_old = {record[:_ID] + record[_REST:]: record for record in old.records()}
    only_new: dict[bytes, bytes] = {}
    for record in new.records():
        content = record[:_ID] + record[_REST:]
        if only_old.pop(content, None) is None:
            only_new[content] = record
    removed, added = _acls(only_old.values()), _acls(only_new.values())
    return [
        *(RuleChange(added=False, acl=acl) for acl in removed if acl not in added),
        *(RuleChange(added=True, acl=acl) for acl in added if acl not in removed),
    ]


def _acls(records: Iterable[bytes]) -> dict[StandardAcl, None]:
    decoded = map(decode_record, records)
    return dict.fromkeys(acl_of(record) for record in decoded if isinstance(record, AccessControlEntryRecord))


def _changed_records(acls: AclsImage, changes: Sequence[RuleChange]) -> AclsImage:
    for change in changes:
        known = acls.find(change.acl)
        if change.added and known is not None:
            raise existing_rule(change)
        if change.added:
            acls = acls.apply((record_of(change.acl, _content_id(change.acl)),))
        elif known is None:
            raise missing_rule(change)
        else:
            acls = acls.apply((RemoveAccessControlEntryRecord(id=known),))
    # Who compares states below many patterns looks through all that the overlay touched, for each.
    return acls.merged() if len(changes) > _MANY else acls


def _changed_contents(acls: AclsImage, changes: Sequence[RuleChange]) -> AclsImage:
    contents = contents_of(acls)
    for change in changes:
        content = content_of(change.acl)
        if change.added is (content in contents):
            raise existing_rule(change) if change.added else missing_rule(change)
        if change.added:
            contents.add(content)
        else:
            contents.remove(content)
    return image_of(contents).with_options(documented=acls.documented, cidr=acls.cidr)


def _content_id(acl: StandardAcl) -> UUID:
    return UUID(bytes=blake2b(repr(acl).encode("utf-8", "surrogatepass"), digest_size=16).digest())
