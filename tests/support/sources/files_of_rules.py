"""Reads files of rules as `--acls PATH` does, into what tests compare."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from attrs import frozen

from aclog.authorizer.acl import FileOrigin, StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.reading import read_tree
from aclog.sources.formats.rule import DirectoryTree, ReadContext, StatedRules
from aclog.sources.formats.unread import Unread


@frozen(kw_only=True)
class RulesRead:
    """What was read."""

    rules: dict[str, list[int]]
    """The lines that state each rule, by its text."""
    ignored: dict[str, int]
    """How many things of each kind were left out, files of no known format among them."""
    unread: list[Unread]
    """What may hold rules and was not read."""


def write_files(directory: Path, files: Mapping[str, str]) -> Path:
    """Write files by their paths; return the directory."""
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    return directory


def read_rules(
    path: Path, form: AclsFormat = AclsFormat.AUTO, topics: Sequence[str] | None = None, *, strict: bool = False
) -> RulesRead:
    """Read a file or a directory. Raises as read_tree."""
    names = None if topics is None else lambda: topics
    context = ReadContext(tree=DirectoryTree(str(path)), topics=names, strict=strict)
    tree = read_tree(context, form)
    return RulesRead(rules=_lines(tree.stated), ignored=dict(context.ignored), unread=list(tree.unread))


def _lines(stated: StatedRules) -> dict[str, list[int]]:
    lines: dict[str, list[int]] = {}
    for rule in stated.rules():
        places = stated.of(rule.acl)
        assert all(isinstance(each, FileOrigin) for each in places)
        lines[rule_text(rule.acl)] = [each.line for each in places if isinstance(each, FileOrigin)]
    return lines


def refused(path: Path, topics: Sequence[str] | None = None, *, strict: bool = False) -> str:
    """Return the message with which reading a path fails."""
    with pytest.raises(ConfigError) as caught:
        read_rules(path, topics=topics, strict=strict)
    return str(caught.value)


def unread(directory: Path, files: Mapping[str, str]) -> list[str]:
    """Return `FILE:LINE LABEL` of what is not read of some files, which are written beside one file of one rule."""
    stated = write_files(directory, {"zz.jsonl": ONE_RULE, **files})
    found = read_rules(stated)
    assert "ALLOW READ TOPIC one to User:one" in found.rules
    return [f"{Path(each.file).relative_to(directory)}:{each.line} {each.label}" for each in found.unread]


ONE_RULE = (
    '{"resourceType":"TOPIC","resourceName":"one","patternType":"LITERAL","principal":"User:one","host":"*",'
    '"operation":"READ","permissionType":"ALLOW"}\n'
)


def rule_text(acl: StandardAcl) -> str:
    """Return such as `ALLOW READ TOPIC orders.* to User:a from 10.0.0.1`; `*` after a prefix, no host for any."""
    prefix = "*" if acl.pattern_type == PatternType.PREFIXED else ""
    host = "" if acl.host == "*" else f" from {acl.host}"
    return (
        f"{AclPermissionType(acl.permission_type).name} {AclOperation(acl.operation).name} "
        f"{ResourceType(acl.resource_type).name} {acl.resource_name}{prefix} to {acl.principal}{host}"
    )
