"""Rules as kafka-acls.sh prints them."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from aclog.authorizer.acl import ResourcePattern, StandardAcl, StandardAclWithId
from aclog.cli.acls.flags import Entry


def pattern_of(acl: StandardAcl) -> ResourcePattern:
    """The resource that a rule is about."""
    return ResourcePattern(resource_type=acl.resource_type, name=acl.resource_name, pattern_type=acl.pattern_type)


def entry_of(acl: StandardAcl) -> Entry:
    """The rest of the rule."""
    return Entry(principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type)


def listed(rules: Iterable[StandardAclWithId]) -> Iterator[str]:
    """A paragraph for each resource, without its last line end; rules of one resource must stand together."""
    for pattern, group in groupby((rule.acl for rule in rules), key=pattern_of):
        entries = "\n".join(f"\t{entry_of(acl)}" for acl in group)
        yield f"Current ACLs for resource `{pattern}`:\n{entries}\n"


def adding(pattern: ResourcePattern, entries: Iterable[Entry]) -> str:
    """What is said before rules are added."""
    return f"Adding ACLs for resource `{pattern}`: \n {_indented(entries)}\n"


def already_there(pattern: ResourcePattern, entry: Entry) -> str:
    """What is said of a rule that exists."""
    return f"Acl (pattern={pattern}, entry={entry}) already exists."


def question(pattern: ResourcePattern, entries: list[Entry]) -> str:
    """What is asked before rules are removed."""
    if not entries:
        return f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)"
    return f"Are you sure you want to remove ACLs: \n {_indented(entries)}\n from resource filter `{pattern}`? (y/n)"


def _indented(entries: Iterable[Entry]) -> str:
    return "\n".join(f"\t{entry}" for entry in entries)
