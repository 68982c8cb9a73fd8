"""The listing of `kafka-acls.sh --list`, of Kafka 1.0 up to 4.3.1, and that of `aclog acls list --format kafka`.

Names are in it unquoted. Ambiguous lines are refused.
"""

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import pairwise

from attrs import field

from aclog.authorizer.acl import FileOrigin, ResourcePattern, StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.rule import LocatedRule, ReadContext, SourceFile, find_name

_RESOURCE = re.compile(r"Current ACLs for resource `(.*)`: ?")
_PATTERN = re.compile(r"ResourcePattern\(resourceType=(\w+), name=(.*), patternType=(\w+)\)", re.DOTALL)
_OLD_PATTERN = re.compile(r"(\w+):(?:(LITERAL|PREFIXED):)?(.*)", re.DOTALL)
"""`Topic:orders` up to Kafka 1.1, `Topic:LITERAL:orders` of the authorizers of 2.x."""
_ENTRY = re.compile(r"\(principal=(.*), host=(.*), operation=(\w+), permissionType=(\w+)\)", re.DOTALL)
_OLD_ENTRY = re.compile(r"(.*) has (\w+) permission for operations: (\w+) from hosts: (.*)", re.DOTALL)
_SEPARATORS = (", host=", ", operation=", ", permissionType=", " has ", " permission for operations: ", " from hosts: ")
_MOST_SEPARATORS = 100

_TAB = re.compile(r" ?\t")

_PRINCIPAL = re.compile(r"ACLs for principal `.*` ?")
"""Above the ACLs of each principal of `--principal`."""
_NOISE = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d+\] (TRACE|DEBUG|INFO|WARN) .*"
    r"|(SLF4J|log4j)[:(].*"
    r"|Picked up _?JAVA_(TOOL_)?OPTIONS: .*"
    r"|(OpenJDK|Java HotSpot\(TM\)) .* VM warning: .*"
)
"""Output of Java and the tool's loggers; an error is not among them, as the listing may lack its ACLs."""


_ANYWHERE = re.compile(
    rb"^(?:\xef\xbb\xbf)?\s*(?:Current ACLs for resource `|ACLs for principal `.*` ?\r?$)", re.MULTILINE
)
_TEXTS = (".txt", ".log", ".out", ".acl", ".acls", ".list", ".lst")


def claims(file: SourceFile) -> bool:
    """Return whether the first line of content is one of a listing; in a plain text, whether any line is.

    Text before it is refused then: in a page of documentation it may be an example.
    """
    if b"ACLs for " not in file.content:
        return False
    if "." not in file.base_name or file.has_suffix(*_TEXTS):
        return _ANYWHERE.search(file.content) is not None
    lines = (line.rstrip("\r") for line in file.text.split("\n"))
    first = next((line for line in lines if line.strip() and not _NOISE.fullmatch(line)), "")
    return first.startswith("Current ACLs for resource `") or _PRINCIPAL.fullmatch(first) is not None


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:  # noqa: ARG001
    """Yield the rules of listings.

    Raises:
        ConfigError: a line that does not belong to a listing, or is ambiguous; with its file and line.
        OSError: a file cannot be read.

    """
    for file in files:
        yield from _Listing(file).rules()


@frozen
class _Line:
    number: int
    text: str


_END = _Line(0, "")
"""The text after the last line."""


@define
class _Listing:
    file: SourceFile
    _resource: ResourcePattern | None = field(default=None, init=False)
    """The resource of the paragraph; None between paragraphs."""
    _header: int = field(default=0, init=False)
    """The line of a paragraph's resource that nothing has followed yet; 0 otherwise."""

    def rules(self) -> Iterator[LocatedRule]:
        """Yield the rules."""
        for line, after in pairwise([*self._lines(), _END]):
            text = line.text
            if text.startswith("Current ACLs for resource `"):
                self._check_complete()
                self._resource, self._header = self._parsed_resource(line), line.number
            elif text[:1] in ("\t", " ") and text.strip():
                yield self._rule(line, last=not after.text.strip())
                self._header = 0
            elif text.strip():
                self._check_complete()
                if not _PRINCIPAL.fullmatch(text):
                    raise self._error(line, f"{text[:60]!r} is not a line of kafka-acls.sh's listing")
            else:
                self._resource, self._header = None, 0
        self._check_complete()

    def _lines(self) -> list[_Line]:
        # Split at line feeds only: names may have other characters that Python takes for line ends.
        numbered = enumerate(self.file.text.split("\n"), 1)
        lines = [
            _Line(number, text.rstrip("\r")) for number, text in numbered if not _NOISE.fullmatch(text.rstrip("\r"))
        ]
        if lines and not lines[-1].text:
            lines.pop()  # the text after the last line feed
        return lines

    def _check_complete(self) -> None:
        if self._header:
            raise self.file.error(self._header, "no ACL follows this resource: the listing is cut short")

    def _parsed_resource(self, line: _Line) -> ResourcePattern:
        match = _RESOURCE.fullmatch(line.text)
        if match is None:
            raise self._error(line, "expected Current ACLs for resource `...`:, on one line")
        new, old = _PATTERN.fullmatch(match[1]), _OLD_PATTERN.fullmatch(match[1])
        if new is not None:
            kind, name, pattern = new.groups()
        elif old is not None:
            kind, pattern, name = old[1], old[2] or PatternType.LITERAL.name, old[3]
        else:
            raise self._error(line, f"{match[1][:80]!r} is not a resource: expected ResourcePattern(...) or Topic:...")
        return ResourcePattern(
            resource_type=self._code(line, ResourceType, kind),
            name=name,
            pattern_type=self._code(line, PatternType, pattern),
        )

    def _rule(self, line: _Line, *, last: bool) -> LocatedRule:
        if self._resource is None:
            raise self._error(line, f"{line.text.strip()[:60]!r} is below no resource")
        # Older tools join the entries of a resource by line ends and add a space before the first and after the last.
        tab = _TAB.match(line.text)
        text = line.text.lstrip() if tab is None else line.text[tab.end() :]  # without a tab: indented by hand
        principal, host, operation, permission = self._entry(line, text.removesuffix(" ") if last else text)
        acl = StandardAcl(
            resource_type=self._resource.resource_type,
            resource_name=self._resource.name,
            pattern_type=self._resource.pattern_type,
            principal=principal,
            host=host,
            operation=self._code(line, AclOperation, operation),
            permission_type=self._code(line, AclPermissionType, permission),
        )
        return LocatedRule(acl=acl, origin=FileOrigin(file=self.file.name, line=line.number))

    def _entry(self, line: _Line, text: str) -> tuple[str, str, str, str]:
        """Return principal, host, operation and permission type."""
        # Counted first: to match a line with very many of them would take time in the square of its length.
        for separator in _SEPARATORS:
            if text.count(separator) > _MOST_SEPARATORS:
                raise self._error(line, f"{separator!r} occurs more than {_MOST_SEPARATORS} times in a line")
        new, old = _ENTRY.fullmatch(text.removesuffix(" ")), _OLD_ENTRY.fullmatch(text)
        if new is not None:
            principal, host, operation, permission = new.groups()
            separator = ", host="
        elif old is not None:
            principal, permission, operation, host = old.groups()
            separator = " permission for operations: "
        else:
            raise self._error(line, f"{text.strip()[:60]!r} is not an ACL: expected (principal=..., host=..., ...)")
        if text.count(separator) > 1:
            raise self._error(line, f"{separator!r} occurs twice: it is ambiguous which of them ends the principal")
        return principal, host, operation, permission

    def _code(self, line: _Line, kind: type[IntEnum], name: str) -> int:
        member = find_name(kind, name)
        if member is None:
            raise self._error(line, f"{name[:40]!r} is not one of {', '.join(kind.__members__)}")
        return int(member)

    def _error(self, line: _Line, what: str) -> ConfigError:
        return self.file.error(line.number, what)
