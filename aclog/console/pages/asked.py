"""What is asked of a page: the parameters of its URL, read with care."""

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TypeVar
from urllib.parse import parse_qsl, quote, unquote

from attrs import field, frozen

from aclog.authorizer.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    code_name,
    parse_name,
)
from aclog.authorizer.hosts import host_address
from aclog.authorizer.name_notation import asked_pattern
from aclog.metalog.errors import ConfigError
from aclog.metalog.printable import printable

_Enum = TypeVar("_Enum", bound=IntEnum)

MOST_CHARACTERS = 8192
"""Of one parameter."""
_MOST_PARAMETERS = 100
_EXACT = ".exact"
OPERATIONS = tuple(each for each in AclOperation if each > AclOperation.ALL)
"""What can be asked for."""
RULE_OPERATIONS = tuple(each for each in AclOperation if each > AclOperation.ANY)
"""What a rule may have."""
TYPES = tuple(each for each in ResourceType if each > ResourceType.ANY)
PATTERNS = PatternType.LITERAL, PatternType.PREFIXED
PERMISSIONS = AclPermissionType.ALLOW, AclPermissionType.DENY


class BadAskedError(ConfigError):
    """What a URL asks makes no sense; the text says what is expected."""


@frozen
class Asked:
    """The parameters of a URL. A lone surrogate is written as the three bytes that UTF-8 would have for it."""

    given: Mapping[str, str] = field(factory=dict)

    @classmethod
    def of(cls, query: bytes | str) -> "Asked":
        """Read the query of a URL; the last of several values counts. Raises BadAskedError: too long, or no text."""
        text = query.decode("ascii", "replace") if isinstance(query, bytes) else query
        try:
            pairs = parse_qsl(text, keep_blank_values=True, errors="surrogatepass", max_num_fields=_MOST_PARAMETERS)
        except ValueError as error:  # as UnicodeDecodeError is
            raise BadAskedError(f"the address cannot be read: {error}") from error
        for name, value in pairs:
            if len(value) > MOST_CHARACTERS:
                raise BadAskedError(f"{name[:40]}: more than {MOST_CHARACTERS:,} characters")
        return cls(_exact(dict(pairs)))

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter as it is."""
        return self.given.get(name, default)

    def word(self, name: str) -> str:
        """Return a parameter without blanks around it."""
        return self.text(name).strip()

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """Return a whole number, brought within its limits. Raises BadAskedError: it is none."""
        text = self.word(name)
        if not text:
            return default
        if not (text.isascii() and text.lstrip("-").isdigit() and len(text) < 20):
            raise BadAskedError(f"{name} {text[:40]!r}: expected a number")
        return min(max(int(text), least), most)

    def flag(self, name: str) -> bool:
        """Return whether a box is ticked."""
        return self.word(name) in ("1", "on", "true", "yes")

    def operation(self, name: str = "operation") -> AclOperation | None:
        """Return an operation, None for any. Raises BadAskedError: there is no such one."""
        return self._named(RULE_OPERATIONS, name)

    def resource_type(self, name: str = "type") -> ResourceType | None:
        """Return a resource type, None for any. Raises BadAskedError: there is no such one."""
        return self._named(TYPES, name)

    def pattern_type(self, name: str = "pattern") -> PatternType | None:
        """Return a pattern type, None for any. Raises BadAskedError: there is no such one."""
        return self._named(PATTERNS, name)

    def permission(self, name: str = "permission") -> AclPermissionType | None:
        """Return a permission, None for any. Raises BadAskedError: there is no such one."""
        return self._named(PERMISSIONS, name)

    def host(self, name: str = "host") -> str | None:
        """Return an address in the form that rules have, None for any. Raises BadAskedError: it is none."""
        text = self.word(name)
        if not text:
            return None
        try:
            return host_address(text)
        except (ConfigError, ValueError) as error:
            raise BadAskedError(str(error)) from error

    def resource(self, kind: ResourceType, name: str = "name") -> ResourcePattern:
        """Return the resource that a name, and maybe a pattern type, stand for (aclog.authorizer.name_notation).

        Raises:
            BadAskedError: there is no such pattern type, or a star is where none can be.

        """
        if kind is ResourceType.CLUSTER:
            return ResourcePattern(resource_type=kind, name=CLUSTER_NAME)
        try:
            return asked_pattern(kind, self.text(name), self.pattern_type())
        except ConfigError as error:
            raise BadAskedError(str(error)) from error

    def _named(self, values: Iterable[_Enum], name: str) -> _Enum | None:
        text = self.word(name)
        if not text:
            return None
        try:
            return parse_name(values, text)
        except (ConfigError, ValueError) as error:
            raise BadAskedError(f"{name}: {error}") from error


def name_parameters(pattern: ResourcePattern) -> dict[str, object]:
    """Return the parameters that `Asked.resource` reads as this resource: the type, the name, and its pattern type.

    The pattern type of a name is stated only if it has a star.
    """
    kind, name = code_name(ResourceType, pattern.resource_type), pattern.name
    as_it_is = pattern.pattern_type != PatternType.LITERAL or WILDCARD in name
    return {"type": kind, "name": name, "pattern": code_name(PatternType, pattern.pattern_type) if as_it_is else None}


def exact_field(name: str, value: str) -> tuple[str, str] | None:
    """Return the hidden field, and its value, that a field needs whose value cannot be shown as it is; None: none.

    A form shows such a value by escapes, and would send these. If they come back unchanged, what they stand for is
    meant, and `Asked.of` puts it in their place.
    """
    return None if printable(value) == value else (f"{name}{_EXACT}", quote(value, safe="", errors="surrogatepass"))


def _exact(given: dict[str, str]) -> dict[str, str]:
    found = {name: value for name, value in given.items() if not name.endswith(_EXACT)}
    for name, value in given.items():
        if name.endswith(_EXACT) and (shown := found.get(name.removesuffix(_EXACT))) is not None:
            meant = unquote(value, errors="surrogatepass")
            if printable(meant) == shown:
                found[name.removesuffix(_EXACT)] = meant
    return found


def url(path: str, /, **parameters: object) -> str:
    """Return an address; parameters that are None, empty or False are left out."""
    parts = [
        f"{name}={_quoted('1' if value is True else str(value))}"
        for name, value in parameters.items()
        if value is not None and value is not False and value != ""
    ]
    return f"{path}?{'&'.join(parts)}" if parts else path


_UNRESERVED = re.compile("[A-Za-z0-9_.~-]*")


def _quoted(text: str) -> str:
    # A page has hundreds of addresses, and most texts in them are what they are.
    return text if _UNRESERVED.fullmatch(text) else quote(text, safe="", errors="surrogatepass")
