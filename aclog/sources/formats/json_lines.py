"""JSON lines, the output of `acls list --format jsonl`, in a directory of files."""

from collections.abc import Iterator, Sequence

from aclog.authorizer.origin import FileOrigin
from aclog.sources.acl_lines import parse_acls
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.text_lines import numbered_lines


def claims(file: SourceFile) -> bool:
    """Return whether the name says so."""
    return file.has_suffix(".jsonl", ".ndjson")


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:  # noqa: ARG001
    """Yield the rules of the files.

    Raises:
        ConfigError: a line that is not an ACL; OSError: a file cannot be read.

    """
    for file in files:
        for line, rule in parse_acls(numbered_lines([file.content.split(b"\n")]), file.name):
            yield LocatedRule(acl=rule.acl, id=rule.id, origin=FileOrigin(file=file.name, line=line))
