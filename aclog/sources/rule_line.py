"""A rule in one line, as plans and explanations print it (aclog.authorizer.acl.acl_text), and as people write it."""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from aclog.authorizer.acl import StandardAcl, folded_name
from aclog.authorizer.codes import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import check_unicode
from aclog.metalog.values import frozen

EXPECTED: Final = "expected such as + ALLOW User:shop READ on TOPIC PREFIXED 'ord' from *"
_MARKS = {
    "+": True, "add": True, "adding": True, "-": False, "\u2212": False, "remove": False, "removing": False,
    "delete": False,
}  # fmt: skip
_MARK = re.compile(r"(?:[0-9][0-9,]*:\s+)?(?:([+\-\u2212])\s*|((?ai:add|adding|remove|removing|delete)):?\s+)")
"""The mark of a plan's step, perhaps after the number of its batch, and of a change that an explanation suggests."""
_PERMISSION = re.compile(r"((?ai:ALLOW|DENY))\s")
_MIDDLE = re.compile(r"(?<!\s)\s+([A-Za-z_-]+)\s+(?ai:on)\s+([A-Za-z_-]+)(?=\s|$)")
_EDGE = re.compile(r"\A\s|\s\s\Z|[^\S \t]\Z")
"""White space beside a principal, except one blank after it: a part of it may be the principal's."""
_PATTERN = re.compile(r"\s+((?ai:LITERAL|PREFIXED))(?=\s)")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_BARE = re.compile(r"[^\s'\"]\S*")
_END = re.compile(r"(?:\s+from\s+(?P<host>[^\s(]\S*))?(?:\s+\(.*\))?\s*", re.IGNORECASE)
"""A location in a file may follow, as reports print it."""
_ESCAPE = re.compile(r"\\(?:([\\'\"nrt])|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.?))", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t"}


def _codes(kind: type[IntEnum]) -> Mapping[str, int]:
    """Return the codes of an enum that a rule may have, by name: neither UNKNOWN nor ANY."""
    return {folded_name(member.name): int(member) for member in kind if member > 1}


_OPERATIONS, _TYPES = _codes(AclOperation), _codes(ResourceType)


@frozen(kw_only=True)
class RuleLine:
    """The rule in a line, and its change."""

    added: bool
    acl: StandardAcl


def parse_rule_line(line: str) -> RuleLine:
    """Return the rule in a line (aclog.authorizer.acl.acl_text), and whether it is added: unless `-` or such is before.

    Principals and bare names are as they are; a name with blanks or quotes, or one that ends in `*`, is quoted as
    Python does it, and so may a principal be. A principal that begins or ends with a blank must be quoted. Without a
    pattern type a name is LITERAL, and without a host the rule is for all hosts.

    Raises:
        ConfigError: the line has no rule, or more than one.

    """
    mark = _MARK.match(line)
    added = True if mark is None else _MARKS[(mark[1] or mark[2]).lower()]
    rest = line if mark is None else line[mark.end() :]
    permission = _PERMISSION.match(rest)
    if permission is None:
        raise ConfigError(f"{_excerpt(rest)} begins with neither ALLOW nor DENY: {EXPECTED}")
    return RuleLine(added=added, acl=_acl(rest[permission.end() :], AclPermissionType[permission[1].upper()]))


def _acl(text: str, permission: AclPermissionType) -> StandardAcl:
    """Parse the text after the permission; text that looks like the middle of a rule is taken for it."""
    wrong: re.Match[str] | None = None
    quoted = _QUOTED.match(text)
    after = None if quoted is None else _MIDDLE.match(text, quoted.end())
    for middle in _MIDDLE.finditer(text) if after is None else [after]:
        operation, kind = _OPERATIONS.get(folded_name(middle[1])), _TYPES.get(folded_name(middle[2]))
        if operation is None or kind is None:  # a part of the principal, unless nothing else is found
            wrong = wrong or middle
            continue
        pattern_type, name, host = _resource(text, middle.end(), kind)
        if _EDGE.search(text[: middle.start(1)]) is not None:
            raise ConfigError(f"{_excerpt(text)}: more than one blank beside the principal: quote the principal")
        return StandardAcl(
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern_type,
            principal=_principal(text[: middle.start()]),
            host=host,
            operation=operation,
            permission_type=int(permission),
        )
    if wrong is None:
        raise ConfigError(f"no operation `on` a resource: {EXPECTED}")
    is_operation = folded_name(wrong[1]) not in _OPERATIONS
    text, names = (wrong[1], AclOperation) if is_operation else (wrong[2], ResourceType)
    raise ConfigError(f"{_excerpt(text)}: expected one of {', '.join(each.name for each in names if each > 1)}")


def _resource(text: str, start: int, kind: int) -> tuple[int, str, str]:
    """Return the pattern type, the name and the host of a rule. Raises ConfigError: one is missing."""
    pattern = _PATTERN.match(text, start)
    place = start if pattern is None else pattern.end()
    while place < len(text) and text[place].isspace():
        place += 1
    alone = _END.fullmatch(text, start)
    if kind == ResourceType.CLUSTER and alone is not None:
        return int(PatternType.LITERAL), CLUSTER_NAME, alone["host"] or WILDCARD
    quoted = _QUOTED.match(text, place)
    name = quoted or _BARE.match(text, place)
    end = None if name is None else _END.fullmatch(text, name.end())
    if name is None or end is None:
        raise ConfigError(f"{_excerpt(text[place:])}: not NAME from HOST; a name with blanks is quoted: {EXPECTED}")
    written = name[0]
    if quoted is None and pattern is None and len(written) > 1 and written.endswith("*"):
        raise ConfigError(f"{written[:80]}: expected PREFIXED {written[:-1][:80]!r}, or LITERAL {written[:80]!r}")
    code = PatternType.LITERAL if pattern is None else PatternType[pattern[1].upper()]
    return int(code), written if quoted is None else _unquoted(written), end["host"] or WILDCARD


def _principal(text: str) -> str:
    principal = _unquoted(text) if _QUOTED.fullmatch(text) else text
    check_unicode("the principal", principal)
    return principal


def _unquoted(text: str) -> str:
    name = _ESCAPE.sub(_unescaped, text[1:-1])
    check_unicode("the name", name)
    return name


def _unescaped(escape: re.Match[str]) -> str:
    plain, *numbers, other = escape.groups()
    if plain is not None:
        return _PLAIN.get(plain, plain)
    if other is not None:
        raise ConfigError(f"\\{other}: no such escape in a quoted name")
    code = int(next(each for each in numbers if each is not None), 16)
    if code > 0x10FFFF:
        raise ConfigError(f"{escape[0]}: no such character")
    return chr(code)


def _excerpt(text: str) -> str:
    return repr(text[:40]) + ("..." if len(text) > 40 else "")
