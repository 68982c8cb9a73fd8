"""The rules that kafka-gitops plans for its states (StateManager)."""

from collections.abc import Iterator, Sequence

from aclog.sources.formats.kafka_gitops.custom_acls import custom_acl
from aclog.sources.formats.kafka_gitops.services import service_statements
from aclog.sources.formats.kafka_gitops.shape import claims
from aclog.sources.formats.kafka_gitops.state import State, read_states
from aclog.sources.formats.kafka_gitops.users import user_statements
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.node import Node
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.source_file import SourceFile

__all__ = ["claims", "read"]


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of states. Topics make none, nor do custom ACLs of a service or user that is not defined.

    Raises:
        ConfigError: something on the way to a rule that kafka-gitops would refuse, or a principal that only Confluent
            Cloud knows; with file and line.
        OSError: a file cannot be read.

    """
    for state in read_states(files, context):
        yield from _of_services(state, context)
        yield from _of_users(state, context)


def _of_services(state: State, context: ReadContext) -> Iterator[LocatedRule]:
    for name, service in state.services.items():
        _refuse_cloud(state, service, name)
        statements = list(service_statements(name, service, describes_topics=state.describes_topics))
        principal = service.get("principal")
        if statements and principal is None:
            raise service.error(f"service {name} has no principal")
        for statement in statements:
            yield statement.rule("" if principal is None else principal.text("principal"))
    for name, acls in state.service_acls.items():
        yield from _custom(acls, None, context, owner=f"service {name}", exists=name in state.services)


def _of_users(state: State, context: ReadContext) -> Iterator[LocatedRule]:
    principals: dict[str, str] = {}
    for name, user in state.users.items():
        _refuse_cloud(state, user, f"user-{name}")
        statements = list(user_statements(name, user))
        principals[name] = user.required("principal", f"user {name}").text("principal")
        for statement in statements:
            yield statement.rule(principals[name])
    for name, acls in state.user_acls.items():
        principal = principals.get(name)
        yield from _custom(acls, principal, context, owner=f"user {name}", exists=principal is not None)


def _custom(
    acls: Node, principal: str | None, context: ReadContext, *, owner: str, exists: bool
) -> Iterator[LocatedRule]:
    """Yield custom ACLs; the principal of one that has none is its owner's, if that is a user."""
    for name, acl in acls.mapping(f"the custom ACLs of {owner}").items():
        statement = custom_acl(name, acl)
        own = acl.get("principal")
        if not exists:
            kind = "custom ACL of an undefined service or user"
            context.makes_nothing(kind, acl, f"custom ACL {name} of {owner}, which is not defined: it makes no rule")
        elif own is not None:
            yield statement.rule(own.text("principal"))
        elif principal is not None:
            yield statement.rule(principal)
        else:
            raise acl.error(f"custom ACL {name} of {owner} has no principal: it does not inherit one")


def _refuse_cloud(state: State, node: Node, account: str) -> None:
    if state.on_confluent_cloud:
        raise node.error(
            f"the principal of this is the id of the service account {account[:60]!r}, which only Confluent Cloud "
            "knows (settings.ccloud.enabled): read the cluster instead, with --bootstrap-server"
        )
