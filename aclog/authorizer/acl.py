"""ACLs, resource patterns and filters, with Kafka's names and codes, and their hosts.

Also their forms as records, JSON objects and command lines.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from shlex import quote
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar
from unicodedata import decimal
from uuid import UUID

from attrs import field

from aclog.authorizer.codes import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.symbols import is_symbol, symbol_of_json, symbolic_fields
from aclog.metalog.errors import SYMBOL_START, ConfigError, printable, without_marks
from aclog.metalog.json_object import json_string, text_field
from aclog.metalog.native import maker, regex
from aclog.metalog.primitives import parse_uuid, uuid_text
from aclog.metalog.records import AccessControlEntryRecord, acl_record
from aclog.metalog.values import frozen

# ACLs, resource patterns and filters, with Kafka's names and codes (org.apache.kafka.common.acl and .resource).


_Enum = TypeVar("_Enum", bound=IntEnum)


@lru_cache(1024)
def code_name(kind: type[IntEnum], code: int) -> str:
    """Return the enum name of a code; `UNKNOWN` for a code that Kafka 4.3.1 does not know, as its fromCode does."""
    try:
        return kind(code).name
    except ValueError:
        return "UNKNOWN"


def _code(kind: type[_Enum], code: int) -> _Enum:
    """Return the enum value of a code; UNKNOWN as `code_name`."""
    return kind[code_name(kind, code)]


def code_repr(kind: type[IntEnum], code: int) -> str:
    """Return such as `AclOperation.READ`; the number of a code that Kafka 4.3.1 does not know."""
    return f"{kind.__name__}.{kind(code).name}" if code in set(kind) else repr(code)


def parse_name(values: Iterable[_Enum], text: str) -> _Enum:
    """Return the value with this name in any spelling: ALTER_CONFIGS, alter-configs, AlterConfigs (as kafka-acls.sh).

    Raises:
        ConfigError: no value has this name, or the text is not ASCII; the message lists all values.

    """
    values = list(values)
    value = find_name(values, text)
    if value is not None:
        return value
    names, suggestion = ", ".join(each.name for each in values), _suggestion(values, text)
    odd = next((character for character in text if not character.isascii()), None)
    if odd is not None:
        raise ConfigError(f"{text[:40]!r} has {odd!r} (U+{ord(odd):04X}): expected ASCII, one of {names}{suggestion}")
    raise ConfigError(f"{text[:40]!r} is not one of {names}{suggestion}")


def find_name(values: Iterable[_Enum], text: str) -> _Enum | None:
    """Return the value with this name in any spelling, as `parse_name`; None if no value has it."""
    folded = folded_name(text)
    return next((value for value in values if folded_name(value.name) == folded), None)


def folded_name(text: str) -> str:
    """Return one form for all spellings of a name; a text that is not ASCII is returned unchanged, and matches no name.

    Some non-ASCII letters, such as a dotless i (U+0131) and a long s (U+017F), have ASCII capitals.
    """
    return text.strip().upper().replace("_", "").replace("-", "") if text.isascii() else text


def _suggestion(values: list[_Enum], text: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  # no command starts slower for it

    folded = folded_name(text[:40]) if text.isascii() else text[:40].upper()
    close = get_close_matches(folded, {folded_name(each.name): each for each in values}, n=1)
    return "".join(f": did you mean {each.name}?" for each in values if folded_name(each.name) in close)


@frozen(kw_only=True, repr=False)
class ResourcePattern:
    """A resource type, a name, and how the name is compared (ResourcePattern). Codes are raw, as in the log."""

    resource_type: int
    name: str
    pattern_type: int = PatternType.LITERAL

    def __repr__(self) -> str:
        return (
            f"ResourcePattern(resource_type={code_repr(ResourceType, self.resource_type)}, name={self.name!r}, "
            f"pattern_type={code_repr(PatternType, self.pattern_type)})"
        )

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={code_name(ResourceType, self.resource_type)}, name={self.name}, "
            f"patternType={code_name(PatternType, self.pattern_type)})"
        )


@frozen(kw_only=True, repr=False)
class StandardAcl:
    """An ACL without its id (org.apache.kafka.metadata.authorizer.StandardAcl). Codes are raw, as in the log."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __repr__(self) -> str:
        return (
            f"StandardAcl(resource_type={code_repr(ResourceType, self.resource_type)}, "
            f"resource_name={self.resource_name!r}, pattern_type={code_repr(PatternType, self.pattern_type)}, "
            f"principal={self.principal!r}, host={self.host!r}, operation={code_repr(AclOperation, self.operation)}, "
            f"permission_type={code_repr(AclPermissionType, self.permission_type)})"
        )

    def __str__(self) -> str:
        return (
            f"StandardAcl[resourceType={code_name(ResourceType, self.resource_type)}, "
            f"resourceName={self.resource_name}, patternType={code_name(PatternType, self.pattern_type)}, "
            f"principal={self.principal}, host={self.host}, operation={code_name(AclOperation, self.operation)}, "
            f"permissionType={code_name(AclPermissionType, self.permission_type)}]"
        )


make_acl = maker(
    StandardAcl,
    *("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type"),
)
"""Makes an ACL of the values in this order."""


@frozen(kw_only=True)
class StandardAclWithId:
    """An ACL and its id (StandardAclWithId), also called a rule; `id` is None if the source has no ids.

    It prints as a line for people. Its codes by name are properties; `acl` has them as in the log.
    """

    id: UUID | None
    acl: StandardAcl

    def __str__(self) -> str:
        return printable(acl_text(self.acl))

    @property
    def resource_type(self) -> ResourceType:
        """The type of its resources; a code that Kafka 4.3.1 does not know is UNKNOWN, here and below."""
        return _code(ResourceType, self.acl.resource_type)

    @property
    def resource_name(self) -> str:
        """The name of its resource, or the prefix."""
        return self.acl.resource_name

    @property
    def pattern_type(self) -> PatternType:
        """LITERAL or PREFIXED."""
        return _code(PatternType, self.acl.pattern_type)

    @property
    def principal(self) -> str:
        """The principal: `User:alice`, or `User:*` for everyone."""
        return self.acl.principal

    @property
    def host(self) -> str:
        """The client address, or `*`."""
        return self.acl.host

    @property
    def operation(self) -> AclOperation:
        """The operation."""
        return _code(AclOperation, self.acl.operation)

    @property
    def permission_type(self) -> AclPermissionType:
        """ALLOW or DENY."""
        return _code(AclPermissionType, self.acl.permission_type)

    def to_dict(self) -> dict[str, str | None]:
        """Return the object of `aclog acls list --format jsonl`: names in upper case, the id in 22 characters.

        A rule with symbols has the key `symbolic` with the names of these fields, separated by commas.
        """
        acl = self.acl
        row: dict[str, str | None] = {
            "resourceType": code_name(ResourceType, acl.resource_type),
            "resourceName": acl.resource_name,
            "patternType": code_name(PatternType, acl.pattern_type),
            "principal": acl.principal,
            "host": acl.host,
            "operation": code_name(AclOperation, acl.operation),
            "permissionType": code_name(AclPermissionType, acl.permission_type),
            "id": None if self.id is None else uuid_text(self.id),
        }
        return {**row, **_symbols_as_texts(acl)} if is_symbolic(acl) else row


make_rule = maker(StandardAclWithId, "id", "acl")
"""Makes a rule of its id and its ACL."""


@frozen(kw_only=True)
class AclBindingFilter:
    """A filter for ACLs (AclBindingFilter): None and the ANY codes match everything.

    `pattern_type` MATCH matches LITERAL patterns with that name or `*`, and PREFIXED ones that the name begins with.
    """

    resource_type: int = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = AclOperation.ANY
    permission_type: int = AclPermissionType.ANY

    @classmethod
    def of(cls, acl: StandardAcl) -> "AclBindingFilter":
        """Return the filter with the fields of an ACL (AccessControlEntry.toFilter).

        It also matches others if a field is ANY, MATCH or unknown: aclog.targets.cluster refuses those.
        """
        return cls(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )


def is_symbolic(acl: StandardAcl) -> bool:
    """Return whether a field of a rule is a symbol."""
    return SYMBOL_START in acl.principal or SYMBOL_START in acl.resource_name or SYMBOL_START in acl.host


def deciding_filter(resource_type: int, name: str | None, pattern_type: int) -> AclBindingFilter:
    """Return a filter that matches all ACLs which may decide on a name (LITERAL), a prefix, or any name (None)."""
    if name is not None and pattern_type == PatternType.LITERAL:
        return AclBindingFilter(resource_type=resource_type, resource_name=name, pattern_type=PatternType.MATCH)
    return AclBindingFilter(resource_type=resource_type)


def resource_of(acl: StandardAcl) -> ResourcePattern:
    """Return the resource of an ACL."""
    return ResourcePattern(resource_type=acl.resource_type, name=acl.resource_name, pattern_type=acl.pattern_type)


def acl_text(acl: StandardAcl) -> str:
    """Return an ACL as one line of text."""
    return (
        f"{code_name(AclPermissionType, acl.permission_type)} {principal_text(acl.principal)} "
        f"{code_name(AclOperation, acl.operation)} on {code_name(ResourceType, acl.resource_type)} "
        f"{code_name(PatternType, acl.pattern_type)} {without_marks(acl.resource_name)!r} from {acl.host}"
    )


def principal_text(principal: str) -> str:
    """Return a principal, quoted if its end is not certain in a line (aclog.sources.rule_line)."""
    is_odd = principal != principal.strip() or principal.startswith(("'", '"')) or _ON.search(principal) is not None
    return repr(principal) if is_odd and SYMBOL_START not in principal else principal


_ON = re.compile(r"\s(?ai:on)\s")


# Texts as words of a POSIX shell's command line, safe to paste.


_PLAIN_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", "'": "\\'"}


def shell_word(text: str) -> str | None:
    r"""Return the text quoted as one word, all of it visible; None if no argument of a process can hold it.

    Unprintable characters are octal bytes in `$'...'` (bash, zsh, ksh, POSIX 2024): hexadecimal escapes differ between
    shells in how many digits they take. A NUL ends an argument, and a lone surrogate has no bytes.
    """
    if text.isprintable():
        return quote(text)
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        return None
    return f"$'{''.join(map(_escaped, text))}'"


def _escaped(character: str) -> str:
    if character in _PLAIN_ESCAPES:
        return _PLAIN_ESCAPES[character]
    # An interactive bash also expands `!` inside of $'...'.
    if character.isprintable() and character != "!":
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode())


# The target where the ACLs of a state can be changed, for the commands in an explanation.


ANY_CLUSTER = "kafka-acls.sh --bootstrap-server HOST:PORT"
"""The command for a cluster of unknown address."""


@frozen(kw_only=True)
class ChangePlace:
    """The directory of a log, or the servers of a cluster; without any, a cluster of unknown address."""

    log: str | None = None
    """A directory that `aclog acls` may change."""
    bootstrap_server: str | None = None
    bootstrap_controller: str | None = None
    """As for the flags: HOST:PORT, or several with commas."""
    command_config: str | None = None
    """The file of client properties with which the cluster was read."""

    def command(self, what: str) -> str | None:
        """Return the beginning of a command line that adds or removes (`what`) ACLs; None if no shell can name it."""
        if self.log is not None:
            directory = shell_word(self.log)
            return None if directory is None else f"aclog acls {what} --log {directory}"
        config = "" if self.command_config is None else shell_word(self.command_config)
        if config is None:
            return None
        login = f" --command-config {config}" if config else ""
        return f"{self._cluster()}{login} --{what}"

    def _cluster(self) -> str:
        # Addresses were checked when they were parsed: they need no quotes.
        if self.bootstrap_server is not None:
            return f"kafka-acls.sh --bootstrap-server {self.bootstrap_server}"
        if self.bootstrap_controller is not None:
            return f"kafka-acls.sh --bootstrap-controller {self.bootstrap_controller}"
        return ANY_CLUSTER


# ACLs as JSON objects: a line of `acls list --format jsonl`, a rule in a plan, in a journal, in a change.


def rule_of_object(value: dict[str, object]) -> StandardAclWithId:
    """Return the ACL in a JSON object; `id` may be missing or null.

    Raises:
        ConfigError: a key is missing, an enum name is unknown, or the id is not a UUID in Kafka's base64 form.

    """
    return make_rule(_id(value), _plain_acl(value) or _checked_acl(value))


def object_of_rule(acl: StandardAcl) -> dict[str, str]:
    """Return the JSON object of an ACL without an id, with the keys of `acls list --format jsonl`."""
    row = {
        "resourceType": code_name(ResourceType, acl.resource_type),
        "resourceName": acl.resource_name,
        "patternType": code_name(PatternType, acl.pattern_type),
        "principal": acl.principal,
        "host": acl.host,
        "operation": code_name(AclOperation, acl.operation),
        "permissionType": code_name(AclPermissionType, acl.permission_type),
    }
    return {**row, **_symbols_as_texts(acl)} if is_symbolic(acl) else row


_SYMBOLIC = "symbolic"
"""The key with the names of the fields that are symbols."""


def _symbols_as_texts(acl: StandardAcl) -> dict[str, str]:
    """Return the fields of a rule that may be symbols as text, and the key that names those that are."""
    return {
        "resourceName": without_marks(acl.resource_name),
        "principal": without_marks(acl.principal),
        "host": without_marks(acl.host),
        _SYMBOLIC: ",".join(symbolic_fields(acl)),
    }


def _plain_acl(value: Mapping[str, Any]) -> StandardAcl | None:
    """Return the ACL in an object of the usual form, with ASCII texts and known names; None for any other."""
    try:
        name, principal, host = value["resourceName"], value["principal"], value["host"]
        if not (name.isascii() and principal.isascii() and host.isascii()) or _SYMBOLIC in value:
            return None
        return make_acl(
            _RESOURCE_TYPES[value["resourceType"]],
            name,
            _PATTERN_TYPES[value["patternType"]],
            principal,
            host,
            _OPERATIONS[value["operation"]],
            _PERMISSION_TYPES[value["permissionType"]],
        )
    except (KeyError, AttributeError, TypeError):  # a missing key, an unknown name, a number, a list
        return None


def _checked_acl(value: dict[str, object]) -> StandardAcl:
    return StandardAcl(
        resource_type=enum_field(value, "resourceType", ResourceType),
        resource_name=_name_field(value, "resourceName"),
        pattern_type=enum_field(value, "patternType", PatternType),
        principal=_name_field(value, "principal"),
        host=_name_field(value, "host"),
        operation=enum_field(value, "operation", AclOperation),
        permission_type=enum_field(value, "permissionType", AclPermissionType),
    )


def _name_field(value: dict[str, object], key: str) -> str:
    """Return a text field, which is a symbol if the key `symbolic` lists it. Raises ConfigError: it has a mark."""
    text = text_field(value, key)
    if is_symbol(text):
        raise ConfigError(f"{key} has U+FDD0 before ${{, which no name has")
    return symbol_of_json(key, text) if key in str(value.get(_SYMBOLIC) or "").split(",") else text


def enum_field(value: dict[str, object], key: str, kind: type[IntEnum]) -> int:
    """Return the code of a field that holds an upper-case enum name.

    Raises:
        ConfigError: the key is missing, or its value is not one of the names.

    """
    name = text_field(value, key)
    code = kind.__members__.get(name)
    if code is None:
        raise ConfigError(f"{key} {name[:40]!r} is not one of {', '.join(kind.__members__)}")
    return int(code)


def _id(value: dict[str, object]) -> UUID | None:
    return None if value.get("id") is None else parse_uuid(text_field(value, "id"))


def _codes(kind: type[IntEnum]) -> Mapping[str, int]:
    """Return the codes by name: plain numbers, as a million lines look up four each."""
    return MappingProxyType({name: int(member) for name, member in kind.__members__.items()})


_RESOURCE_TYPES, _PATTERN_TYPES = _codes(ResourceType), _codes(PatternType)
_OPERATIONS, _PERMISSION_TYPES = _codes(AclOperation), _codes(AclPermissionType)
CODES = (_RESOURCE_TYPES, _PATTERN_TYPES, _OPERATIONS, _PERMISSION_TYPES)
"""The codes by name of resource types, pattern types, operations and permission types."""


# Conversions between ACLs and their records (StandardAcl.fromRecord, StandardAclWithId.toRecord).


def acl_of(record: AccessControlEntryRecord) -> StandardAcl:
    """Return the ACL of a record."""
    return make_acl(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def rule_of(record: AccessControlEntryRecord) -> StandardAclWithId:
    """Return the ACL of a record with its id."""
    return StandardAclWithId(id=record.id, acl=acl_of(record))


def record_of(acl: StandardAcl, id: UUID) -> AccessControlEntryRecord:  # noqa: A002  # the record's own name for it
    """Return the record that adds an ACL under an id."""
    return acl_record(
        id,
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
        (),
    )


# Command lines that add or remove one ACL: kafka-acls.sh for a cluster, `aclog acls` for a log.


_RESOURCE_FLAGS: dict[int, str] = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}


def acl_command(acl: StandardAcl, *, add: bool, place: ChangePlace) -> str | None:
    """Return the command that adds or removes the ACL, quoted for a shell.

    None if no flags can express the ACL. Both commands ask for confirmation before a removal: `--force` is left
    out, because aclog would then also write to a log that belongs to a Kafka node.
    """
    flags, command = acl_flags(acl), place.command("add" if add else "remove")
    return None if flags is None or command is None else f"{command} {flags}"


def acl_flags(acl: StandardAcl) -> str | None:
    """Return the flags, quoted for a shell; None if no flags can express the ACL, such as one with a blank name."""
    who = _WHO.get(acl.permission_type)
    principal, host, resource = _word(acl.principal), _word(acl.host), _resource_flags(acl)
    if who is None or principal is None or host is None or resource is None or is_symbolic(acl):
        return None
    if ":" not in acl.principal or not _accepts(acl.resource_type, acl.operation):
        return None
    return (
        f"--{who}-principal {principal} --{who}-host {host} --operation {_COMMAND_OPERATIONS[acl.operation]} {resource}"
    )


def _accepts(resource_type: int, operation: int) -> bool:
    """Return whether the commands accept the operation: servers store others, which no request needs."""
    supported = SUPPORTED_OPERATIONS.get(ResourceType(resource_type), ())
    return operation == AclOperation.ALL or operation in supported


def _resource_flags(acl: StandardAcl) -> str | None:
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return None
    pattern = "" if acl.pattern_type == PatternType.LITERAL else " --resource-pattern-type prefixed"
    if acl.resource_type == ResourceType.CLUSTER:
        return None if pattern or acl.resource_name != CLUSTER_NAME else "--cluster"
    flag, name = _RESOURCE_FLAGS.get(acl.resource_type), _word(acl.resource_name)
    return None if flag is None or name is None else f"{flag} {name}{pattern}"


def _word(text: str) -> str | None:
    """Return a value as a word; None if it is empty, or if the commands would trim it."""
    # kafka-acls.sh trims as Java's String.trim, which takes all of C0; aclog takes blanks of all of Unicode.
    cut = not text or text != text.strip() or text[0] <= " " or text[-1] <= " "
    return None if cut else shell_word(text)


_WHO: dict[int, str] = {AclPermissionType.ALLOW: "allow", AclPermissionType.DENY: "deny"}

_COMMAND_OPERATIONS: dict[int, str] = {
    operation: "".join(word.capitalize() for word in operation.name.split("_"))
    for operation in AclOperation
    if operation > AclOperation.ANY
}
"""READ as Read, ALTER_CONFIGS as AlterConfigs: the only spelling that kafka-acls.sh accepts."""


# Client addresses in the text form that the hosts of ACLs are compared with (InetAddress.getHostAddress).


_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = regex(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
"""What the class below accepts as an IPv4 address, without the ten calls that it takes."""
_SCOPE = regex(r"[0-9A-Za-z._@-]{1,32}")
_WITH_PORT = regex(r"(?:(\d{1,3}(?:\.\d{1,3}){3})|\[([^\[\]]+)\]):\d{1,5}", re.ASCII)
_MAX_EXCERPT = 80
"""Errors quote no more of an invalid text than this."""


def host_address(text: str) -> str:
    """Return an address in the form of Java's getHostAddress, which the host of an ACL must equal.

    IPv4 is unchanged; IPv6 becomes eight lower-case groups without leading zeros and without `::`; an IPv4-mapped
    address becomes the IPv4 address; a scope (`%1`, `%eth0`) is kept; brackets around IPv6 are removed.

    Raises:
        ConfigError: the text is not an address but a name, a range, a wildcard, an IPv4 address with missing parts, ...

    """
    if _IPV4.fullmatch(text):
        return text
    bracketed = text.startswith("[") and text.endswith("]")
    try:
        address = IPv6Address(text[1:-1]) if bracketed else ip_address(text)
    except ValueError as e:
        raise _no_address(text) from e
    if isinstance(address, IPv4Address):
        return str(address)
    mapped, scope = address.ipv4_mapped, address.scope_id
    if scope is not None and not _SCOPE.fullmatch(scope):
        raise _no_address(text)
    return _long_form(address) if mapped is None else str(mapped)


def logged_address(text: str) -> str:
    """Return the address in a client's host as logs write it: as Java prints addresses, with a name or a port.

    `/10.0.0.1`, `app/10.0.0.1`, `10.0.0.1:54321` and `app/[2001:db8::1]:54321` have one meaning. A text with none, such
    as a name or a range, is returned as it is.
    """
    if _is_address(text):
        return text
    name, slash, rest = text.rpartition("/")
    with_port = _WITH_PORT.fullmatch(rest)
    address = rest if with_port is None else with_port[1] or with_port[2]
    # what is between addresses is no name: 10.0.0.0/255.0.0.0 is a range
    is_named = not slash or name == address or not (_is_address(name) or "/" in name)
    return address if is_named and _is_address(address) else text


def _is_address(text: str) -> bool:
    try:
        host_address(text)
    except ConfigError:
        return False
    return True


def _no_address(text: str) -> ConfigError:
    return ConfigError(f"{text[:_MAX_EXCERPT]!r} is not an IPv4 or IPv6 address, such as 10.0.0.1 or 2001:db8::1")


def _long_form(address: IPv6Address) -> str:
    packed = address.packed
    groups = ":".join(f"{packed[i] << 8 | packed[i + 1]:x}" for i in range(0, 16, 2))
    scope = address.scope_id
    if scope is None:
        return groups
    return f"{groups}%{int(scope) if scope.isdigit() and len(scope) < 10 else scope}"


# CIDR ranges as hosts of ACLs (KIP-1276). Off unless enabled, since Kafka 4.3.1 compares hosts as texts.
#
# The semantics are those of CidrUtils in Kafka's trunk: host bits may be set and are ignored; `/0` is every address
# of its family; an IPv4 range contains no IPv6 address and vice versa; an IPv4-mapped base is rejected, since such
# clients show up as IPv4. An IPv6 base is read as Java's InetAddress reads it, a prefix length as its
# Integer.parseInt. A base's numeric scope is ignored. A named one is rejected: in Java it depends on the interfaces
# of the machine that decides.


_IPV4_RANGE = regex(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})/([0-9]{1,2})")
_IPV6_RANGE = regex(
    r"(?P<open>\[)?(?P<base>[0-9A-Fa-f:.]+)(%(?P<scope>[0-9]+))?(?(open)\])/(?P<sign>[+-]?)(?P<bits>\d+)"
)
_LIKE_A_RANGE = regex(r"(?=[^/]*[.:])\[?[0-9A-Fa-f.:]+(%[0-9A-Za-z]+)?\]?/[+-]?\d+")
_BMP = "\uffff"
_LONGEST_IPV4 = 15
_BITS = {4: 32, 6: 128}
_MAX_SCOPE = (1 << 31) - 1


@frozen(kw_only=True)
class CidrRange:
    """The addresses from `first` to `last` as integers, both included; `version` is 4 or 6."""

    version: int
    first: int
    last: int

    def contains(self, host: str) -> bool:
        """Return whether the range contains an address in any textual form; False for a text that is not an address."""
        return self.contains_number(address_number(host))

    def contains_number(self, address: "AddressNumber | None") -> bool:
        """Return whether the range contains an address (`address_number`); False for None."""
        if address is None:
            return False
        version, number = address
        # No IPv4 range contains 0.0.0.0 in the library that Kafka uses; no client has that address anyway.
        return version == self.version and self.first <= number <= self.last and (version == 6 or number != 0)


class AddressNumber(NamedTuple):
    """An address as an integer; `version` is 4 or 6."""

    version: int
    number: int


def address_number(host: str) -> AddressNumber | None:
    """Return an address in any textual form as a number, without its scope; None for a text that is not an address."""
    try:
        address = ip_address(host_address(host))
    except ConfigError:
        return None
    return AddressNumber(address.version, int(address))


def parse_cidr(text: str) -> CidrRange:
    """Parse a range such as `10.0.0.0/8` or `2001:db8::/32`.

    Raises:
        ConfigError: the text is not a range in CIDR notation.

    """
    base, bits = _parse_ipv6(text) if ":" in text else _parse_ipv4(text)
    version = 6 if ":" in text else 4
    if bits > _BITS[version]:
        raise ConfigError(
            f"{text[:_MAX_EXCERPT]!r} is not a CIDR range: expected a prefix length of 0 to {_BITS[version]}"
        )
    below = (1 << (_BITS[version] - bits)) - 1
    return CidrRange(version=version, first=base & ~below, last=base | below)


def cidr_range(text: str) -> CidrRange | None:
    """Return a range such as `10.0.0.0/8`; None for any other text."""
    if "/" not in text:  # most are not, and an error takes longer
        return None
    try:
        return parse_cidr(text)
    except ConfigError:
        return None


def is_cidr(text: str) -> bool:
    """Return whether a text is a CIDR range."""
    return cidr_range(text) is not None


def in_cidr(text: str, host: str) -> bool:
    """Return whether `text` is a CIDR range that contains the address `host`."""
    cidr = cidr_range(text)
    return cidr is not None and cidr.contains(host)


def _parse_ipv4(text: str) -> tuple[int, int]:
    match = _IPV4_RANGE.fullmatch(text)
    numbers = [int(n) for n in match.groups()] if match else [256]
    if max(numbers[:4]) > 255:
        raise _no_range(text)
    a, b, c, d, bits = numbers
    return a << 24 | b << 16 | c << 8 | d, bits


def _parse_ipv6(text: str) -> tuple[int, int]:
    match = _IPV6_RANGE.fullmatch(text)
    if not match or max(match["bits"]) > _BMP:  # parseInt reads UTF-16 units
        raise _no_range(text)
    bits, scope = _number(match["bits"]), _number(match["scope"] or "0")
    try:
        address = IPv6Address(_without_zeros(match["base"]))
    except ValueError as e:
        raise _no_range(text) from e
    if address.ipv4_mapped is not None or scope > _MAX_SCOPE or (match["sign"] == "-" and bits):
        raise _no_range(text)
    return int(address), bits


def _number(digits: str) -> int:
    """Return a number in any decimal digits, as Java's parseInt reads it; one too large for every use if it is long."""
    plain = "".join(str(decimal(digit)) for digit in digits).lstrip("0")
    return int(plain or "0") if len(plain) <= len(str(_MAX_SCOPE)) else _MAX_SCOPE + 1


def _without_zeros(base: str) -> str:
    """Return an IPv6 address without the leading zeros that Java allows and `ipaddress` does not."""
    *groups, last = base.split(":")
    if "." in last and len(last) <= _LONGEST_IPV4:
        last = ".".join(_strip(part) for part in last.split("."))
    return ":".join([*map(_strip, groups), last if "." in last else _strip(last)])


def _strip(digits: str) -> str:
    return digits.lstrip("0") or digits[:1]


def _no_range(text: str) -> ConfigError:
    return ConfigError(f"{text[:_MAX_EXCERPT]!r} is not a CIDR range: expected one such as 10.0.0.0/8 or 2001:db8::/32")


def looks_like_cidr(text: str) -> bool:
    """Return whether a host looks like a range, well-formed or not; Kafka 4.3.1 stores it and never matches it."""
    return _LIKE_A_RANGE.fullmatch(text) is not None


# ACLs that never match: valid for Kafka, but probably a mistake. A DENY among them has no effect.


_COMMA = regex(r"(?<!\\),")
"""An unescaped comma; the value of a distinguished name may have escaped ones (RFC 2253)."""
_TYPE = regex(r"\s*\w+:")


def reasons_unmatched(acl: StandardAcl, *, cidr: bool) -> Iterator[str]:
    """Yield the reasons why no request can match the ACL, one per field; nothing for an ACL that may match.

    `cidr`: hosts may be ranges (KIP-1276). A principal that looks like a list is only probably a mistake.
    """
    if acl.resource_type == ResourceType.USER and is_no_principal(acl):
        name = repr(acl.resource_name)
        yield f"never matches: the USER resource {name} is not a principal: expected TYPE:NAME, as in User:NAME"
    if acl.host != WILDCARD:
        problem = host_problem(acl.host, cidr=cidr)
        if problem is not None:
            yield problem if is_cidr(acl.host) else f"never matches: {problem}"
    if listed_principals(acl.principal):
        one = f"{acl.principal} is one principal whose name has a comma, not a list"
        yield f"probably never matches: {one}: add an ACL for each"


def is_no_principal(acl: StandardAcl) -> bool:
    """Return whether the ACL is on a literal name without a colon, which is not a USER resource."""
    return acl.pattern_type == PatternType.LITERAL and ":" not in acl.resource_name and acl.resource_name != WILDCARD


@lru_cache(1 << 16)
def host_problem(host: str, *, cidr: bool) -> str | None:
    """Return why the host of an ACL matches no client's address; None for `*`, and for an address as Java formats it.

    With `cidr`, a range is also valid.
    """
    if host == WILDCARD:
        return None
    if is_cidr(host):
        return None if cidr else f"the host {host} is a CIDR range, which matches clients from Kafka 4.4 on only"
    try:
        address = host_address(host)
    except ConfigError:
        return f"the host {host!r} is neither * nor an address"
    return None if address == host else f"the host {host} is compared as text: only {address} matches that address"


def listed_principals(principal: str) -> tuple[str, ...]:
    """Return the principals that the text lists with commas; nothing for a single one, a distinguished name included.

    `User:bob,User:eve` and `User:bob,eve` list User:bob and User:eve; `User:CN=bob,O=acme` is not a list.
    """
    if "," not in principal:
        return ()
    kind, _, names = principal.partition(":")
    parts = _COMMA.split(names)
    if len(parts) == 1 or (all("=" in part for part in parts) and not any(map(_TYPE.match, parts))):
        return ()
    return tuple(part.strip() if _TYPE.match(part) else f"{kind}:{part.strip()}" for part in parts)


# An ACL as the line of JSON that listings print, and the texts by which they are sorted.


_UNKNOWN_NAME = "UNKNOWN"
# Plain dicts: a listing of a million ACLs looks up four names for each.
_TYPE_NAMES = {int(each): each.name for each in ResourceType}
_PATTERN_NAMES = {int(each): each.name for each in PatternType}
_OPERATION_NAMES = {int(each): each.name for each in AclOperation}
_PERMISSION_NAMES = {int(each): each.name for each in AclPermissionType}


def rule_fields(rule: StandardAclWithId) -> tuple[str, str, str, str, str, str, str]:
    """Return the fields of an ACL as text, in the order of its JSON without the id; also the sort key of listings.

    A code that Kafka 4.3.1 does not define is UNKNOWN.
    """
    acl = rule.acl
    return (
        _TYPE_NAMES.get(acl.resource_type, _UNKNOWN_NAME),
        acl.resource_name,
        _PATTERN_NAMES.get(acl.pattern_type, _UNKNOWN_NAME),
        acl.principal,
        acl.host,
        _OPERATION_NAMES.get(acl.operation, _UNKNOWN_NAME),
        _PERMISSION_NAMES.get(acl.permission_type, _UNKNOWN_NAME),
    )


def rule_json(rule: StandardAclWithId) -> str:
    """Return the ACL as one line of JSON (KIP-801), as `aclog acls list --format jsonl` prints it."""
    kind, name, pattern, principal, host, operation, permission = rule_fields(rule)
    text_id = "null" if rule.id is None else f'"{uuid_text(rule.id)}"'
    symbols = f',"{_SYMBOLIC}":"{",".join(symbolic_fields(rule.acl))}"' if is_symbolic(rule.acl) else ""
    return (
        f'{{"resourceType":"{kind}","resourceName":{json_string(name)},"patternType":"{pattern}",'
        f'"principal":{json_string(principal)},"host":{json_string(host)},"operation":"{operation}",'
        f'"permissionType":"{permission}","id":{text_id}{symbols}}}'
    )


# The location of an ACL: a line of a file, or a record of a log.


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen(kw_only=True)
class ModuleCall:
    """The line of a file on which a call of a Terraform module begins."""

    file: str
    """As in FileOrigin."""
    line: int
    name: str
    """Such as `module.billing`."""


@frozen(kw_only=True)
class StatedCluster:
    """What a file states of the cluster that a rule is for."""

    basis: str
    """Where it states so, such as `label strimzi.io/cluster`."""
    name: str
    """Equal for rules of one cluster."""
    root: str = ""
    """The directory of the root module, of Terraform; from the root of the tree."""


@frozen(kw_only=True)
class FileOrigin:
    """The line of a file on which the statement of an ACL begins."""

    file: str
    """For display: the path as it was given, or `GITREF:path`."""
    line: int
    """From 1."""
    address: str | None = None
    """In Terraform's state, such as `module.team.kafka_acl.read[0]`; None for other files."""
    calls: tuple[ModuleCall, ...] = ()
    """The calls of Terraform modules that lead to the line, the outermost first."""
    form: str | None = field(default=None, eq=False, repr=False)
    """The format of the file, such as `strimzi`; None if it is unknown."""
    cluster: StatedCluster | None = field(default=None, eq=False, repr=False)
    """What the file states of the cluster; None: nothing."""

    @property
    def steps(self) -> "tuple[ModuleCall | FileOrigin, ...]":
        """The calls that lead to the line, the outermost first, and the line itself."""
        return (*self.calls, self)


@frozen(kw_only=True)
class LogOrigin:
    """The record of a log that added an ACL."""

    offset: int
    timestamp: int
    """Of its batch, in ms since 1970."""


Origin: TypeAlias = FileOrigin | LogOrigin


def origin_text(origin: Origin) -> str:
    """Return such as `kafka/orders.yaml:12`, or `offset 120, 2026-11-20T10:00:00.000Z`.

    A line that calls of modules lead to has these first: `prod/team.tf:1 (module.billing) -> modules/app/main.tf:3`.
    """
    if isinstance(origin, FileOrigin):
        calls = (f"{each.file}:{each.line} ({each.name}) -> " for each in origin.calls)
        return f"{''.join(calls)}{origin.file}:{origin.line}"
    time = _EPOCH + timedelta(milliseconds=origin.timestamp)
    return f"offset {origin.offset}, {time.isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"


def origin_object(origin: Origin) -> dict[str, object]:
    """Return the JSON keys after those of an ACL: file and line, or offset and timestamp."""
    if isinstance(origin, FileOrigin):
        calls = [{"file": each.file, "line": each.line, "module": each.name} for each in origin.calls]
        return {"file": origin.file, "line": origin.line, **({"calls": calls} if calls else {})}
    return {"offset": origin.offset, "timestamp": origin.timestamp}


class Origins(Protocol):
    """Returns the locations of ACLs."""

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return every location of an ACL, in the order of reading; empty if unknown."""
        ...


@frozen
class NoOrigins:
    """The origins of a source without locations."""

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:  # noqa: ARG002
        """Return no locations."""
        return ()


NO_ORIGINS: Origins = NoOrigins()

_MAX_PLACES = 2
"""How many locations of one ACL are shown."""


def places_text(acl: StandardAcl, origins: Origins) -> str:
    """Return the locations of an ACL, such as ` (kafka/a.yaml:12)`, to append to its text; empty if unknown."""
    places = origins.of(acl)
    if not places:
        return ""
    more = f" and {len(places) - _MAX_PLACES} more" if len(places) > _MAX_PLACES else ""
    return f" ({', '.join(map(origin_text, places[:_MAX_PLACES]))}{more})"


def place_object(acl: StandardAcl, origins: Origins) -> dict[str, object]:
    """Return the JSON keys after those of an ACL, for its first location; empty if unknown."""
    places = origins.of(acl)
    return origin_object(places[0]) if places else {}


@frozen(kw_only=True)
class TwoOrigins:
    """The locations of the ACLs of two compared states."""

    old: Origins = NO_ORIGINS
    new: Origins = NO_ORIGINS
