"""What became of a cluster's rules between two polls: pure, from what stands in the log and what is told now."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from uuid import UUID

from attrs import frozen

from aclog.authorizer.acl import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
)
from aclog.authorizer.acl_records import record_of
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import DecodeError
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.nodes.wire.messages import MAX_STRING
from aclog.shell.rule_text import rule_fields

_LONG = MAX_STRING // 4
"""Characters of which a string may have more bytes than a record holds."""


@frozen(kw_only=True)
class RuleChanges:
    """Rules that are gone, with the ids that they had, and rules that are new, with ids of their own."""

    removed: tuple[StandardAclWithId, ...] = ()
    added: tuple[StandardAclWithId, ...] = ()

    def __len__(self) -> int:
        return len(self.removed) + len(self.added)

    def values(self) -> list[bytes]:
        """The records that make these changes, as the values that go into a log; removals first.

        Raises:
            EncodeError: a rule with a string that no record holds.

        """
        return list(self._values())

    def _values(self) -> Iterator[bytes]:
        for rule in self.removed:
            if rule.id is not None:
                yield encode_record(RemoveAccessControlEntryRecord(id=rule.id))
        for rule in self.added:
            if rule.id is not None:
                yield encode_record(record_of(rule.acl, rule.id))


def rule_changes(
    standing: Mapping[StandardAcl, UUID], told: Iterable[StandardAcl], new_id: Callable[[], UUID]
) -> RuleChanges:
    """What makes the rules that are told out of those that stand; a rule that stays keeps its id.

    Changes are in the order in which rules are listed (aclog.shell.rule_text.rule_fields), whatever that of the answer.
    """
    now = dict.fromkeys(told)
    gone = (StandardAclWithId(id=id_, acl=acl) for acl, id_ in standing.items() if acl not in now)
    new = sorted((StandardAclWithId(id=None, acl=acl) for acl in now if acl not in standing), key=rule_fields)
    return RuleChanges(
        removed=tuple(sorted(gone, key=rule_fields)),
        added=tuple(StandardAclWithId(id=new_id(), acl=rule.acl) for rule in new),
    )


def check_rules(told: Iterable[StandardAcl]) -> None:
    """Return if each is what a rule can be; an operation or a type that only a newer Kafka knows is.

    Raises:
        DecodeError: UNKNOWN, ANY or MATCH, which stand in filters only (Kafka's own DescribeAclsResponse throws, too);
            or a string that no record holds.

    """
    for acl in told:
        for text in (acl.resource_name, acl.principal, acl.host):
            if len(text) > _LONG and len(text.encode()) > MAX_STRING:
                raise DecodeError(f"a string of {len(text)} characters: expected {MAX_STRING} bytes at most")
        if (
            acl.resource_type <= ResourceType.ANY
            or acl.pattern_type <= PatternType.MATCH
            or acl.operation <= AclOperation.ANY
            or acl.permission_type <= AclPermissionType.ANY
        ):
            raise DecodeError(
                f"a rule of resource type {acl.resource_type}, pattern type {acl.pattern_type}, operation "
                f"{acl.operation} and permission type {acl.permission_type}: expected what a rule can have"
            )
