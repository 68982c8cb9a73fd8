"""Rules as JSON lines, as a stream."""

from collections.abc import Callable, Iterable

from attrs import frozen

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.origin import Origins
from aclog.sources.acl_lines import parse_acls
from aclog.sources.line_table import LineTable
from aclog.sources.text_lines import numbered_lines


@frozen(kw_only=True)
class FoundRules:
    """Rules, to be read once; then `origins` tells where they stand."""

    rules: Iterable[StandardAclWithId]
    origins: Origins
    notes: tuple[str, ...] = ()


def line_rules(name: str, lines: Iterable[list[bytes]], check: Callable[[StandardAcl], None]) -> FoundRules:
    """Return the rules of one file, whose lines arrive in blocks; to read them raises ConfigError, as parse_acls."""
    table = LineTable(name)
    return FoundRules(rules=table.filled_by(parse_acls(numbered_lines(lines), name, check)), origins=table)
