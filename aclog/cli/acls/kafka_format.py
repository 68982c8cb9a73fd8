"""ACLs in the output format of kafka-acls.sh: its bytes in a pipe, escaped on a terminal."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from aclog.authorizer.acl import ResourcePattern, StandardAcl, StandardAclWithId, resource_of
from aclog.cli.acls.flags import Entry
from aclog.terminal.output import shown


def entry_of(acl: StandardAcl) -> Entry:
    """Return the ACL without its resource."""
    return Entry(principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type)


def listed(rules: Iterable[StandardAclWithId]) -> Iterator[str]:
    """Yield a paragraph for each resource, without the last line end; the ACLs must be grouped by resource."""
    show = shown()
    for pattern, group in groupby((rule.acl for rule in rules), key=resource_of):
        entries = "\n".join(f"\t{show(entry_of(acl))}" for acl in group)
        yield f"Current ACLs for resource `{show(pattern)}`:\n{entries}\n"


def adding(pattern: ResourcePattern, entries: Iterable[Entry]) -> str:
    """Return the message for ACLs that are added."""
    return f"Adding ACLs for resource `{shown()(pattern)}`: \n {_indented(entries)}\n"


def already_there(pattern: ResourcePattern, entry: Entry) -> str:
    """Return the message for an ACL that exists."""
    return f"Acl (pattern={shown()(pattern)}, entry={shown()(entry)}) already exists."


def question(pattern: ResourcePattern, entries: list[Entry]) -> str:
    """Return the question before ACLs are removed."""
    name = shown()(pattern)
    if not entries:
        return f"Are you sure you want to delete all ACLs for resource filter `{name}`? (y/n)"
    return f"Are you sure you want to remove ACLs: \n {_indented(entries)}\n from resource filter `{name}`? (y/n)"


def _indented(entries: Iterable[Entry]) -> str:
    show = shown()
    return "\n".join(f"\t{show(entry)}" for entry in entries)
