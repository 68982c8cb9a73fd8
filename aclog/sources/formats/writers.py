"""Writers of ACLs in the formats of other tools."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import groupby
from types import MappingProxyType

from attrs import astuple

from aclog.authorizer.acl import StandardAcl, code_name, resource_of
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.control import refusal
from aclog.metalog.errors import ConfigError, printable
from aclog.metalog.values import frozen
from aclog.sources.formats.format import AclsFormat

# Rules of each principal, and of each of its resources, in a stable order.


@frozen(kw_only=True)
class Grant:
    """Rules of one principal that differ in their operation only."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    host: str
    permission_type: AclPermissionType
    operations: tuple[AclOperation, ...]


def sort_key(rule: StandardAcl) -> tuple[str, str, str, str, str, str, str]:
    """Return a key that sorts rules as `acls list` does."""
    return (
        ResourceType(rule.resource_type).name,
        rule.resource_name,
        PatternType(rule.pattern_type).name,
        rule.principal,
        rule.host,
        AclOperation(rule.operation).name,
        AclPermissionType(rule.permission_type).name,
    )


def by_principal(rules: Iterable[StandardAcl]) -> Iterator[tuple[str, list[StandardAcl]]]:
    """Yield each principal and its rules, sorted."""
    for principal, group in groupby(sorted(rules, key=lambda rule: (rule.principal, sort_key(rule))), _principal):
        yield principal, list(group)


def grants(rules: Iterable[StandardAcl]) -> Iterator[Grant]:
    """Yield the rules of one principal, those put together that differ in their operation only."""
    groups: dict[tuple[int, str, int, str, int], list[AclOperation]] = {}
    for rule in sorted(rules, key=sort_key):
        key = (rule.resource_type, rule.resource_name, rule.pattern_type, rule.host, rule.permission_type)
        groups.setdefault(key, []).append(AclOperation(rule.operation))
    for (resource_type, name, pattern_type, host, permission), operations in groups.items():
        yield Grant(
            resource_type=ResourceType(resource_type),
            resource_name=name,
            pattern_type=PatternType(pattern_type),
            host=host,
            permission_type=AclPermissionType(permission),
            operations=tuple(operations),
        )


def digest(rule: StandardAcl) -> str:
    """Return 16 hexadecimal digits that identify a rule among all others."""
    return hashlib.sha256("\0".join(map(str, astuple(rule))).encode()).hexdigest()[:16]


def _principal(rule: StandardAcl) -> str:
    return rule.principal


# Whether a format can hold rules.


_NAMED = 3
"""How many of the rules that do not fit are named."""


class UnfitError(ConfigError):
    """Rules that a format cannot hold; the text names the first ones."""

    def __init__(self, text: str, unfit: Sequence[tuple[StandardAcl, str]]) -> None:
        """`unfit` has each of the rules, with the reason."""
        super().__init__(text)
        self.unfit = tuple(unfit)


def check_holds(form: AclsFormat, rules: Sequence[StandardAcl], unfit: Callable[[StandardAcl], str | None]) -> None:
    """Refuse rules that a format would lose or change; `unfit` returns why it cannot hold one, None if it can.

    Raises:
        UnfitError: it cannot hold them all.

    """
    refusals = [(rule, why) for rule in rules if (why := _unfit_anywhere(rule) or unfit(rule)) is not None]
    if refusals:
        raise refused(form, len(rules), refusals)


def refused(form: AclsFormat, total: int, refusals: Sequence[tuple[StandardAcl, str]]) -> UnfitError:
    """Return the error about rules that a format cannot hold, each with the reason."""
    listed = "; ".join(f"{printable(str(rule))[:300]}: {why}" for rule, why in refusals[:_NAMED])
    more = f"; and {len(refusals) - _NAMED:,} more" if len(refusals) > _NAMED else ""
    return UnfitError(f"{form} cannot hold {len(refusals):,} of {total:,} rules: {listed}{more}", refusals)


def _unfit_anywhere(rule: StandardAcl) -> str | None:
    why = refusal(rule)
    if why is not None:
        return f"CreateAcls refuses it ({why})"
    return None if _is_utf8(rule.resource_name, rule.principal, rule.host) else "it has a name that is not UTF-8"


def _is_utf8(*texts: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in _wide(texts))


def _wide(texts: Iterable[str]) -> str:
    return "".join(text for text in texts if not text.isascii())


# Writes the listing of `kafka-acls.sh --list`. Names are in it unquoted.


_AFTER_PRINCIPAL = ", host="


def kafka_acls_unfit(rule: StandardAcl) -> str | None:
    """Return why the listing cannot hold a rule; None if it can."""
    if any("\n" in text for text in (rule.resource_name, rule.principal, rule.host)):
        return "a name with a line end"
    if _AFTER_PRINCIPAL in rule.principal + rule.host:
        return "a principal or host that holds `, host=`"
    return None


def kafka_acls_lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield the lines."""
    for pattern, group in groupby(sorted(rules, key=sort_key), resource_of):
        yield f"Current ACLs for resource `{pattern}`:"
        for rule in group:
            operation, permission = code_name(AclOperation, rule.operation), _permission(rule)
            yield (
                f"\t(principal={rule.principal}, host={rule.host}, operation={operation}, permissionType={permission})"
            )
        yield ""


def _permission(rule: StandardAcl) -> str:
    return code_name(AclPermissionType, rule.permission_type)


# Kafka's enum names as other tools spell them.


def camel_name(value: IntEnum) -> str:
    """Return TRANSACTIONAL_ID as TransactionalId (SecurityUtils.resourceTypeName and similar methods)."""
    return value.name.title().replace("_", "")


# Writes the CSV of Kafka Security Manager (CsvAclParser), which can hold any rule.


_HEADER = "KafkaPrincipal,ResourceType,PatternType,ResourceName,Operation,PermissionType,Host"
_PLAIN = re.compile(r"[\w.*:/=@-]+", re.ASCII)


def ksm_unfit(rule: StandardAcl) -> str | None:  # noqa: ARG001
    """Return None: a cell in quotes holds any text."""
    return None


def ksm_lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield the header and a row for each rule."""
    yield _HEADER
    for rule in sorted(rules, key=sort_key):
        cells = (
            rule.principal,
            camel_name(ResourceType(rule.resource_type)),
            PatternType(rule.pattern_type).name,
            rule.resource_name,
            camel_name(AclOperation(rule.operation)),
            camel_name(AclPermissionType(rule.permission_type)),
            rule.host,
        )
        yield ",".join(cell if _PLAIN.fullmatch(cell) else _quoted(cell) for cell in cells)


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


# Writes Terraform: a kafka_acl of the provider Mongey/kafka for each rule.


_TYPES = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTIONAL_ID: "TransactionalID",
    ResourceType.DELEGATION_TOKEN: "DelegationToken",
}
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TEMPLATE = re.compile(r"([$%]+)\{")
_LONGEST_SLUG = 60


def terraform_unfit(rule: StandardAcl) -> str | None:
    """Return why the provider or the language cannot hold a rule; None if they can."""
    if rule.resource_type not in _TYPES:
        return f"the provider has no resource_type {ResourceType(rule.resource_type).name}"
    if rule.operation > AclOperation.IDEMPOTENT_WRITE:
        return f"the provider has no acl_operation {AclOperation(rule.operation).name}"
    texts = (rule.resource_name, rule.principal, rule.host)
    if any(unicodedata.normalize("NFC", text) != text for text in texts):
        return "Terraform composes the characters of its name (Unicode NFC)"
    return None


def terraform_lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield a resource for each rule; its label depends on nothing but the rule."""
    for rule in sorted(rules, key=sort_key):
        yield f'resource "kafka_acl" "{_label(rule)}" {{'
        yield f"  resource_name                = {_hcl_quoted(rule.resource_name)}"
        yield f'  resource_type                = "{_TYPES[ResourceType(rule.resource_type)]}"'
        yield f'  resource_pattern_type_filter = "{camel_name(PatternType(rule.pattern_type))}"'
        yield f"  acl_principal                = {_hcl_quoted(rule.principal)}"
        yield f"  acl_host                     = {_hcl_quoted(rule.host)}"
        yield f'  acl_operation                = "{camel_name(AclOperation(rule.operation))}"'
        yield f'  acl_permission_type          = "{camel_name(AclPermissionType(rule.permission_type))}"'
        yield "}"
        yield ""


def _label(rule: StandardAcl) -> str:
    words = (
        AclPermissionType(rule.permission_type).name,
        rule.principal.removeprefix("User:"),
        AclOperation(rule.operation).name,
        ResourceType(rule.resource_type).name,
        rule.resource_name,
    )
    slug = re.sub(r"[^a-z0-9]+", "_", " ".join(words).lower())[:_LONGEST_SLUG].strip("_")
    return f"{slug}_{digest(rule)}"


def _hcl_quoted(text: str) -> str:
    """Return a string of HCL that is no template, and holds no character that a screen does not show."""
    escaped = "".join(
        character if character.isprintable() and character not in _SHORT else _escape(character) for character in text
    )
    return f'"{_TEMPLATE.sub(_plain_sign, escaped)}"'


def _plain_sign(match: re.Match[str]) -> str:
    signs = match[1]
    if len(signs) == 1:
        return f"{signs}{signs}{{"
    return "".join(f"\\u{ord(sign):04x}" for sign in signs) + "{"  # `$${` itself has no escape


def _escape(character: str) -> str:
    short = _SHORT.get(character)
    if short is not None:
        return short
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


# Text in YAML: always in double quotes, as without them `yes`, `007` and `1e3` are other things to some parsers.


_LONGEST_KEY = 120
"""The longest key, in characters; YAML allows 1,024 before the colon."""


def quoted(text: str) -> str:
    """Return a text as a scalar of one line, with escapes for unparsable and invisible characters."""
    scalar = json.dumps(text, ensure_ascii=False)
    return scalar if scalar.isascii() and scalar.isprintable() else "".join(map(_escaped, scalar))


def quoted_key(text: str, digest: str) -> str:
    """Return a text as a key; a long one is cut, with a digest of its rule."""
    return quoted(text if len(text) <= _LONGEST_KEY else f"{text[:_LONGEST_KEY]} {digest}")


def _escaped(character: str) -> str:
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"  # older parsers refuse these
    return character if character.isprintable() else f"\\u{code:04x}"


# Writes Jikkou's KafkaPrincipalAuthorization resources: one for each principal.


_JINJA = re.compile(r"\{[{%#]")


def jikkou_unfit(rule: StandardAcl) -> str | None:
    """Return why a resource cannot hold a rule; None if it can."""
    if any(_JINJA.search(text) for text in (rule.resource_name, rule.principal, rule.host)):
        return "Jikkou takes its name for a template"
    return None


def jikkou_lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield the documents."""
    for principal, own_rules in by_principal(rules):
        yield "---"
        yield "apiVersion: kafka.jikkou.io/v1"
        yield "kind: KafkaPrincipalAuthorization"
        yield "metadata:"
        yield f"  name: {quoted(principal)}"
        yield "spec:"
        yield "  acls:"
        for grant in grants(own_rules):
            yield from jikkou_acl_lines(grant)


def jikkou_acl_lines(grant: Grant) -> Iterator[str]:
    """Yield the lines of an ACL, indented by four spaces."""
    yield "    - resource:"
    yield f"        type: {grant.resource_type.name}"
    yield f"        pattern: {quoted(grant.resource_name)}"
    yield f"        patternType: {grant.pattern_type.name}"
    yield f"      type: {grant.permission_type.name}"
    yield f"      operations: [{', '.join(operation.name for operation in grant.operations)}]"
    yield f"      host: {quoted(grant.host)}"


# Writes a state of kafka-gitops: a user for each principal, with its rules as custom ACLs.


def kafka_gitops_unfit(rule: StandardAcl) -> str | None:
    """Return why a state cannot hold a rule; None if it can. The tool's Kafka client is of version 2.4."""
    if rule.resource_type == ResourceType.USER:
        return "kafka-gitops has no type USER"
    if rule.operation > AclOperation.IDEMPOTENT_WRITE:
        return f"kafka-gitops has no operation {AclOperation(rule.operation).name}"
    return None


def kafka_gitops_lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield the state."""
    principals = list(by_principal(rules))
    yield "users:" if principals else "users: {}"
    for principal, of_principal in principals:
        yield f"  {_user(principal, of_principal)}:"
        yield f"    principal: {quoted(principal)}"
    if principals:
        yield "customUserAcls:"
    for principal, of_principal in principals:
        yield f"  {_user(principal, of_principal)}:"
        for rule in of_principal:
            yield from kafka_gitops_acl_lines(rule)


def kafka_gitops_acl_lines(rule: StandardAcl) -> Iterator[str]:
    """Yield the lines of a custom ACL, indented by four spaces."""
    kind, pattern = ResourceType(rule.resource_type).name, PatternType(rule.pattern_type).name
    operation, permission = AclOperation(rule.operation).name, AclPermissionType(rule.permission_type).name
    # The digest distinguishes rules for any names in them, and does not change when others are added or removed.
    what = f"{permission} {operation} {kind} {rule.resource_name}"
    yield f"    {quoted_key(f'{digest(rule)} {what}', digest(rule))}:"
    yield f"      name: {quoted(rule.resource_name)}"
    yield f"      type: {kind}"
    yield f"      pattern: {pattern}"
    yield f"      host: {quoted(rule.host)}"
    yield f"      operation: {operation}"
    yield f"      permission: {permission}"


def _user(principal: str, rules: Sequence[StandardAcl]) -> str:
    return quoted_key(principal, digest(rules[0]))


# Writes Strimzi's KafkaUser resources: one for each principal.


_USER = "User:"
_CERTIFICATE = "CN="
_LONGEST_COMMON_NAME = 64
_LONGEST_NAME = 253
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
"""A name of a resource of Kubernetes (RFC 1123)."""
_STRIMZI_TYPES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactionalId",
}
_PATTERNS = {PatternType.LITERAL: "literal", PatternType.PREFIXED: "prefix"}
_COMMENT = """\
# The User Operator wants a label on each of these: strimzi.io/cluster, with the name of the Kafka."""


def strimzi_unfit(rule: StandardAcl) -> str | None:
    """Return why a KafkaUser cannot hold a rule; None if it can."""
    if rule.resource_type not in _STRIMZI_TYPES:
        return f"Strimzi has no resource of the type {ResourceType(rule.resource_type).name}"
    if rule.resource_type == ResourceType.CLUSTER and rule.pattern_type != PatternType.LITERAL:
        return "Strimzi has no prefix of the cluster"
    if rule.operation > AclOperation.IDEMPOTENT_WRITE:
        return f"Strimzi has no operation {AclOperation(rule.operation).name}"
    if not rule.principal.startswith(_USER):
        return "a KafkaUser is a principal of the type User"
    name, tls = _identity(rule.principal)
    if not _NAME.fullmatch(name) or len(name) > (_LONGEST_COMMON_NAME if tls else _LONGEST_NAME):
        return "the principal's name is not a valid Kubernetes name"
    return None


def strimzi_lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield the documents. Raises ConfigError: two principals would be KafkaUsers of one name."""
    _check_names(rules)
    yield _COMMENT
    for principal, own_rules in by_principal(rules):
        name, tls = _identity(principal)
        yield "---"
        yield "apiVersion: kafka.strimzi.io/v1"
        yield "kind: KafkaUser"
        yield "metadata:"
        yield f"  name: {quoted(name)}"
        yield "spec:"
        yield "  authentication:"
        yield f"    type: {'tls' if tls else 'scram-sha-512'}"
        yield "  authorization:"
        yield "    type: simple"
        yield "    acls:"
        for grant in grants(own_rules):
            yield from strimzi_acl_lines(grant)


def strimzi_acl_lines(grant: Grant) -> Iterator[str]:
    """Yield the lines of a rule, indented by six spaces."""
    yield "      - resource:"
    yield f"          type: {_STRIMZI_TYPES[grant.resource_type]}"
    if grant.resource_type != ResourceType.CLUSTER:
        yield f"          name: {quoted(grant.resource_name)}"
        yield f"          patternType: {_PATTERNS[grant.pattern_type]}"
    yield f"        operations: [{', '.join(map(camel_name, grant.operations))}]"
    yield f"        host: {quoted(grant.host)}"
    if grant.permission_type == AclPermissionType.DENY:
        yield "        type: deny"


def _identity(principal: str) -> tuple[str, bool]:
    """Return the name of the KafkaUser, and whether a certificate authenticates it."""
    name = principal.removeprefix(_USER)
    return name.removeprefix(_CERTIFICATE), name.startswith(_CERTIFICATE)


def _check_names(rules: Sequence[StandardAcl]) -> None:
    first: dict[str, bool] = {}
    twice = []
    for rule in rules:
        name, tls = _identity(rule.principal)
        if first.setdefault(name, tls) != tls:
            twice.append((rule, f"a KafkaUser {name} exists with the other kind of authentication"))
    if twice:
        raise refused(AclsFormat.STRIMZI, len(rules), twice)


# Writes rules in a format.


@frozen
class Writer:
    """How one format is written."""

    unfit: Callable[[StandardAcl], str | None]
    """Returns why the format cannot hold a rule; None if it can."""
    lines: Callable[[Sequence[StandardAcl]], Iterable[str]]
    """The lines for rules that it can hold, in an order that depends on nothing but the rules."""


WRITERS: Mapping[AclsFormat, Writer] = MappingProxyType(
    {
        AclsFormat.KAFKA_ACLS: Writer(kafka_acls_unfit, kafka_acls_lines),
        AclsFormat.KSM: Writer(ksm_unfit, ksm_lines),
        AclsFormat.STRIMZI: Writer(strimzi_unfit, strimzi_lines),
        AclsFormat.TERRAFORM: Writer(terraform_unfit, terraform_lines),
        AclsFormat.KAFKA_GITOPS: Writer(kafka_gitops_unfit, kafka_gitops_lines),
        AclsFormat.JIKKOU: Writer(jikkou_unfit, jikkou_lines),
    }
)


def write_rules(form: AclsFormat, rules: Sequence[StandardAcl]) -> str:
    """Return a file of a format that states these rules and no others.

    Raises:
        UnfitError: the format cannot hold some rules.

    """
    writer = WRITERS[form]
    check_holds(form, rules, writer.unfit)
    return "".join(f"{line}\n" for line in writer.lines(rules))
