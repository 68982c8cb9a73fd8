"""Jikkou: resources, and the ACLs that it applies for them."""

import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import field

from aclog.authorizer.acl import FileOrigin, StatedCluster
from aclog.authorizer.codes import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.nodes import Node, plain_text
from aclog.sources.formats.rule import (
    LocatedRule,
    ReadContext,
    SourceFile,
    Statement,
    compiled,
    concrete,
    named_value,
)
from aclog.sources.formats.rule import resources as resources_of
from aclog.sources.formats.unread import UnreadKind
from aclog.sources.formats.verdicts import declare_unknown_topics, judge_broken, judge_resource, rule_in_text

# The ACLs of an authorization or a role (V1KafkaPrincipalAcl).


_ACL_KEYS = ("resource", "operations", "type", "host")
_RESOURCE_KEYS = ("type", "pattern", "patternType")
_TYPES = concrete(ResourceType)
_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH)
_OPERATIONS = concrete(AclOperation)
_PERMISSIONS = (AclPermissionType.ALLOW, AclPermissionType.DENY)


@frozen(kw_only=True)
class PrincipalAcl:
    """One ACL: operations on a literal name, on a prefix, or on all topics that a regular expression matches."""

    where: Node
    resource_type: ResourceType
    pattern: Node
    pattern_type: PatternType
    operations: tuple[AclOperation, ...]
    permission_type: AclPermissionType
    host: str

    def statements(self) -> Iterator[Statement]:
        """Yield its statements, of a literal name or a prefix."""
        return self._statements(plain_text(self.pattern, "pattern"), self.pattern_type)

    def statements_about(self, topic: str) -> Iterator[Statement]:
        """Yield its statements about one topic that matches."""
        return self._statements(topic, PatternType.LITERAL)

    def _statements(self, name: str, pattern_type: PatternType) -> Iterator[Statement]:
        for operation in self.operations:
            yield Statement(
                where=self.where,
                resource_type=self.resource_type,
                name=name,
                pattern_type=pattern_type,
                operation=operation,
                permission_type=self.permission_type,
                host=self.host,
            )


def acls_of(spec: Node, what: str) -> Iterator[PrincipalAcl]:
    """Yield the ACLs under `acls`. Raises ConfigError: a key is missing or unknown, or holds none of Kafka's names."""
    for acl in spec.members("acls"):
        acl.check_keys(_ACL_KEYS, f"an ACL of {what}")
        resource = acl.required("resource", f"an ACL of {what}")
        resource.check_keys(_RESOURCE_KEYS, "resource")
        operations = acl.required("operations", f"an ACL of {what}").items("operations")
        host = acl.mapping().get("host")
        yield PrincipalAcl(
            where=acl,
            resource_type=named_value(resource.required("type", "resource"), "type", _TYPES, any_case=True),
            pattern=resource.required("pattern", "resource"),
            pattern_type=named_value(
                resource.required("patternType", "resource"), "patternType", _PATTERNS, any_case=True
            ),
            operations=tuple(named_value(each, "operation", _OPERATIONS, any_case=True) for each in operations),
            permission_type=named_value(acl.required("type", f"an ACL of {what}"), "type", _PERMISSIONS, any_case=True),
            host=WILDCARD if host is None else plain_text(host, "host"),
        )


# Resources of Jikkou: the content of each document of a file.


AUTHORIZATION = "KafkaPrincipalAuthorization"
ROLE = "KafkaPrincipalRole"
_LISTS = {f"{AUTHORIZATION}List": AUTHORIZATION, f"{ROLE}List": ROLE}
_VERSIONS = tuple(f"kafka.jikkou.io/{version}" for version in ("v1", "v1beta2", "v1beta1"))
_API_VERSION = re.compile(r"""["']?apiVersion["']?\s*:\s*["']?([a-z]+\.)?jikkou\.io/""")
_TEMPLATE = re.compile(r"\{\{|\{%|\{#")
_IGNORE = "jikkou.io/ignore"
_PROVIDER = "jikkou.io/provider"
CLUSTER = f"annotation {_PROVIDER}"
"""The basis of a cluster."""


@define(kw_only=True)
class Resources:
    """The authorizations and roles of some files, each by its name."""

    authorizations: dict[tuple[str, str], Node] = field(factory=dict)
    """By name and provider, which may be empty."""
    roles: dict[tuple[str, str], Node] = field(factory=dict)

    def add(self, kind: str, resource: Node, context: ReadContext) -> None:
        """Take a resource.

        Raises:
            ConfigError: it has no name, or its name is taken by another of its provider.

        """
        if annotated(resource, _IGNORE):
            context.ignore(f"{kind} with {_IGNORE}")
            return
        metadata = resource.required("metadata", kind)
        name = metadata.required("name", f"metadata of {kind}").text("name")
        resources = self.roles if kind == ROLE else self.authorizations
        first = resources.setdefault((name, provider_of(resource)), resource)
        if first is not resource:
            raise metadata.error(f"duplicate {kind} {name[:60]!r}: first in {first.file}:{first.line}")


def provider_of(resource: Node) -> str:
    """Return the provider of a resource, which is a cluster; empty: the default one."""
    provider = annotation(resource, _PROVIDER)
    return "" if provider is None else provider.text("provider")


def claims(file: SourceFile) -> bool:
    """Return whether a file holds resources of Jikkou, of any kind. Raises ConfigError: not UTF-8."""
    return file.has_suffix(".yaml", ".yml", ".json", ".tpl") and _API_VERSION.search(file.text) is not None


def read_resources(files: Sequence[SourceFile], context: ReadContext) -> Resources:
    """Return the authorizations and roles of files; other kinds are counted.

    Raises:
        ConfigError: a template, or something that is no resource; with file and line.

    """
    resources = Resources()
    for file in files:
        template = _TEMPLATE.search(file.text)
        if template is not None:
            declare_unknown_topics(file.text, FileOrigin(file=file.name, line=1), context)
        if template is None:
            judge_broken(file, context)
            for document in file.documents:
                for kind, resource in _resources(document):
                    _add(kind, resource, resources, context)
        elif rule_in_text(file.text) is not None:
            line = file.text.count("\n", 0, template.start()) + 1
            why = "a template: render it first, and pass Jikkou's output"
            context.not_read(UnreadKind.TEMPLATE, FileOrigin(file=file.name, line=line), why)
        else:
            context.ignore("template")
    return resources


def _resources(document: Node) -> Iterator[tuple[str, Node]]:
    kind = document.required("kind", "the resource").text("kind")
    version = document.required("apiVersion", "the resource")
    if kind in _LISTS:
        for item in document.members("items"):
            yield _LISTS[kind], item
    else:
        if kind in {AUTHORIZATION, ROLE} and version.text("apiVersion") not in _VERSIONS:
            raise version.error(f"{kind} has the version {version.raw[:60]!r}: expected one of {', '.join(_VERSIONS)}")
        yield kind, document


def _add(kind: str, resource: Node, resources: Resources, context: ReadContext) -> None:
    if kind in {AUTHORIZATION, ROLE}:
        resources.add(kind, resource, context)
    elif kind.startswith("KafkaPrincipal"):
        raise resource.error(f"unknown kind {kind[:60]!r}: expected {AUTHORIZATION} or {ROLE}")
    else:
        for each in resources_of([resource]):
            judge_resource(each, context)


def annotation(resource: Node, key: str) -> Node | None:
    """Return the value of an annotation."""
    metadata = resource.get("metadata")
    annotations = None if metadata is None else metadata.get("annotations")
    return None if annotations is None else annotations.get(key)


def annotated(resource: Node, key: str) -> bool:
    """Return whether an annotation is true. Raises ConfigError: it is neither true nor false."""
    value = annotation(resource, key)
    if value is None:
        return False
    text = value.text(key).lower()
    if text not in {"true", "false"}:
        raise value.error(f"{key} is {value.raw[:60]!r}: expected true or false")
    return text == "true"


# Regular expressions of Java over names of topics, in time linear in the name.


_REPETITION = re.compile(r"\{\d+(,\d*)?\}")


def matching(pattern: str, topics: Sequence[str]) -> list[str]:
    """Return the topics whose whole name matches an expression.

    Raises:
        ConfigError: it is invalid, or RE2 rejects it or reads it differently: intersections and unions of classes,
            look-around, back references, possessive repetition.

    """
    _refuse_dialect(pattern)
    try:
        compiled(pattern)  # by itself: `a)|(b` is invalid, though valid in brackets
        whole = compiled(rf"\A(?:{pattern})\z")
    except ValueError as error:
        raise ConfigError(f"not a regular expression that can be expanded: {error}") from error
    return [topic for topic in topics if whole.search(topic) is not None]


def _refuse_dialect(pattern: str) -> None:
    """Refuse patterns that Java and RE2 both accept, with different meanings."""
    in_class = False
    at = 0
    while at < len(pattern):
        here = pattern[at]
        if here == "\\":
            end = pattern.find("\\E", at) if pattern.startswith("\\Q", at) else at
            at = len(pattern) if end < 0 else end + 2
            continue
        if in_class and (here == "[" or pattern.startswith("&&", at)):
            raise ConfigError("a class of characters inside another, or an intersection of two: only Java has these")
        if not in_class and here == "{" and not _REPETITION.match(pattern, at):
            raise ConfigError("{ without a repetition such as {2,3}: Java refuses it")
        if here == "[":
            in_class = True
            at += pattern.startswith("^", at + 1)
            if pattern.startswith("]", at + 1):
                raise ConfigError("a class of characters that begins with ]: write \\]")
        in_class = in_class and here != "]"
        at += 1


# The rules that Jikkou applies for its resources (AclChangeComputer and its builders of bindings).


__all__ = ["claims", "read"]

_DELETE = "jikkou.io/delete"


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of authorizations and of the roles that they name.

    Raises:
        ConfigError: something on the way to a rule is not understood, or a MATCH pattern without the names of topics;
            with file and line.
        OSError: a file cannot be read.

    """
    resources = read_resources(files, context)
    topics = _Topics(context)
    roles = {key: _acls(key[0], role, "role") for key, role in resources.roles.items()}
    for (principal, provider), resource in resources.authorizations.items():
        if annotated(resource, _DELETE):
            context.ignore(f"{AUTHORIZATION} with {_DELETE}")
            continue
        cluster = StatedCluster(basis=CLUSTER, name=provider) if provider else None
        for acl in (*_acls(principal, resource, "principal"), *_of_roles(resource, provider, roles)):
            for rule in topics.rules(acl, principal):
                yield rule.of_cluster(cluster)


def _acls(name: str, resource: Node, what: str) -> list[PrincipalAcl]:
    spec = resource.required("spec", f"{what} {name}")
    spec.check_keys(("acls", "roles") if what == "principal" else ("acls",), f"spec of {what} {name}")
    return list(acls_of(spec, f"{what} {name}"))


def _of_roles(
    resource: Node, provider: str, roles: Mapping[tuple[str, str], list[PrincipalAcl]]
) -> Iterator[PrincipalAcl]:
    """Yield the ACLs of the roles that an authorization names: those of its provider, else of the default one."""
    named: dict[str, Node] = {}
    for role in resource.required("spec").members("roles"):
        named.setdefault(plain_text(role, "role"), role)
    for name, role in named.items():
        acls = roles.get((name, provider), roles.get((name, "")))
        if acls is None:
            names = ", ".join(dict.fromkeys(name for name, _ in roles)) or "none is defined"
            raise role.error(f"no role {name[:60]!r}: expected one of the roles of these files: {names[:300]}")
        yield from acls


@define
class _Topics:
    """The rules of ACLs; those of MATCH patterns for the topics that exist."""

    context: ReadContext
    _topics: Sequence[str] | None = field(default=None, init=False)

    def rules(self, acl: PrincipalAcl, principal: str) -> Iterator[LocatedRule]:
        if acl.pattern_type != PatternType.MATCH:
            for statement in acl.statements():
                yield statement.rule(principal)
        elif acl.resource_type != ResourceType.TOPIC:
            kind = acl.resource_type.name
            why = "Jikkou expands MATCH patterns of topics only, so this makes no rule: expected LITERAL or PREFIXED"
            self.context.makes_nothing(f"MATCH of {kind}", acl.pattern, f"a MATCH pattern of {kind}: {why}")
        else:
            for topic in self._matching(acl):
                for statement in acl.statements_about(topic):
                    yield statement.rule(principal)

    def _matching(self, acl: PrincipalAcl) -> list[str]:
        if self._topics is None:
            if self.context.topics is None:
                raise acl.pattern.error(
                    "a MATCH pattern expands to existing topics: pass their names with --topics FILE"
                )
            self._topics = self.context.topics()
        try:
            names = matching(plain_text(acl.pattern, "pattern"), self._topics)
        except ConfigError as error:
            raise acl.pattern.error(f"pattern {acl.pattern.raw[:60]!r}: {error}") from error
        if not names:
            self.context.ignore("MATCH pattern of no topic that exists")
        return names
