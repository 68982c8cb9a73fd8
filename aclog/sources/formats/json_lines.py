"""JSON lines, the output of `acls list --format jsonl`, in a directory of files."""

import codecs
import json
from collections.abc import Iterator, Sequence

from aclog.authorizer.origin import FileOrigin
from aclog.sources.acl_lines import numbered_lines, parse_acls
from aclog.sources.formats.files import SourceFile
from aclog.sources.formats.rule import LocatedRule, ReadContext

_HEAD = 1 << 18
"""Bytes of a file that hold its first rule."""


def claims(file: SourceFile) -> bool:
    """Return whether the name or the first line matches this format."""
    return file.has_suffix(".jsonl", ".ndjson") or _has_acl(file)


def _has_acl(file: SourceFile) -> bool:
    start = file.content[:_HEAD].removeprefix(codecs.BOM_UTF8).lstrip()
    if start[:1] not in (b"{", b"[") or b'"resourceType"' not in start:
        return False
    try:
        value, _ = json.JSONDecoder().raw_decode(start.lstrip(b"[ \r\n\t").decode(errors="replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.keys() >= {"resourceType", "principal", "operation"}


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:  # noqa: ARG001
    """Yield the rules of the files.

    Raises:
        ConfigError: a line that is not an ACL; OSError: a file cannot be read.

    """
    for file in files:
        for line, rule in parse_acls(numbered_lines([file.content.split(b"\n")]), file.name):
            yield LocatedRule(acl=rule.acl, id=rule.id, origin=FileOrigin(file=file.name, line=line))
