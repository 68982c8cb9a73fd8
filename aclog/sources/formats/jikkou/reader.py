"""The rules that Jikkou applies for its resources (AclChangeComputer and the builders of bindings that it asks)."""

from collections.abc import Iterator, Sequence

from attrs import define, field

from aclog.authorizer.acl import PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.jikkou.acls import PrincipalAcl, acls_of
from aclog.sources.formats.jikkou.resources import AUTHORIZATION, Resources, annotated, claims, read_resources
from aclog.sources.formats.jikkou.topic_regex import matching
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.node import Node
from aclog.sources.formats.plain_text import plain_text
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.source_file import SourceFile

__all__ = ["claims", "read"]

_DELETE = "jikkou.io/delete"


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of authorizations and of the roles that they name.

    Raises:
        ConfigError: something on the way to a rule is not understood, or a MATCH pattern without the names of topics;
            with file and line.
        OSError: a file cannot be read.

    """
    found = read_resources(files, context)
    topics = _Topics(context)
    roles = {name: _acls(name, role, "role") for name, role in found.roles.items()}
    for principal, resource in found.authorizations.items():
        if annotated(resource, _DELETE):
            context.ignore(f"{AUTHORIZATION} with {_DELETE}")
            continue
        for acl in (*_acls(principal, resource, "principal"), *_of_roles(resource, found, roles)):
            yield from topics.rules(acl, principal)


def _acls(name: str, resource: Node, what: str) -> list[PrincipalAcl]:
    spec = resource.required("spec", f"{what} {name}")
    spec.check_keys(("acls", "roles") if what == "principal" else ("acls",), f"spec of {what} {name}")
    return list(acls_of(spec, f"{what} {name}"))


def _of_roles(resource: Node, found: Resources, roles: dict[str, list[PrincipalAcl]]) -> Iterator[PrincipalAcl]:
    named: dict[str, Node] = {}
    for role in resource.required("spec").members("roles"):
        named.setdefault(plain_text(role, "role"), role)
    for name, role in named.items():
        if name not in roles:
            known = ", ".join(found.roles) or "none is defined"
            raise role.error(f"no role {name[:60]!r}: expected one of the roles of these files: {known[:300]}")
        yield from roles[name]


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
            why = "Jikkou expands MATCH patterns of topics only, and makes no rule of it: expected LITERAL or PREFIXED"
            self.context.makes_nothing(f"MATCH of {kind}", acl.pattern, f"a MATCH pattern of {kind}: {why}")
        else:
            for topic in self._matching(acl):
                for statement in acl.statements_about(topic):
                    yield statement.rule(principal)

    def _matching(self, acl: PrincipalAcl) -> list[str]:
        if self._topics is None:
            if self.context.topics is None:
                raise acl.pattern.error(
                    "a MATCH pattern stands for the topics that exist: give their names with --topics FILE"
                )
            self._topics = self.context.topics()
        try:
            found = matching(plain_text(acl.pattern, "pattern"), self._topics)
        except ConfigError as error:
            raise acl.pattern.error(f"pattern {acl.pattern.raw[:60]!r}: {error}") from error
        if not found:
            self.context.ignore("MATCH pattern of no topic that exists")
        return found
