"""Settings that leave a node open, or lock people out, and are hardly meant. Kafka says nothing of them."""

from collections.abc import Iterator

from attrs import frozen

from aclog.authorizer.config import (
    ALLOW_EVERYONE_CONFIG,
    SUPER_USERS_CONFIG,
    parse_super_users,
    super_user_mistakes,
)
from aclog.authorizer.loader import (
    ACL_AUTHORIZERS,
    AUTHORIZER_CLASS_NAME_CONFIG,
    KAFKAS_STANDARD_AUTHORIZER,
    load_authorizer_class,
)
from aclog.authorizer.standard import StandardAuthorizer
from aclog.nodes.config.node_config import ClientAuth, Listener, NodeConfig
from aclog.nodes.session import ANONYMOUS

NO_AUTHORIZER = "no_authorizer"
SUPER_USERS = "super_users"
ALLOW_EVERYONE = "allow_everyone"
ANONYMOUS_SUPER_USER = "anonymous_super_user"
NO_SUPER_USER_LOGIN = "no_super_user_login"
NO_ADMINISTRATOR = "no_administrator"
EVERYBODY_ADMINISTERS = "everybody_administers"

KINDS = (
    NO_AUTHORIZER,
    SUPER_USERS,
    ALLOW_EVERYONE,
    ANONYMOUS_SUPER_USER,
    NO_SUPER_USER_LOGIN,
    NO_ADMINISTRATOR,
    EVERYBODY_ADMINISTERS,
)
"""Every kind of warning; the last two depend on the ACLs (nodes.access_check), and the first may."""

_LEGACY = {SUPER_USERS_CONFIG: "kafka.superusers", ALLOW_EVERYONE_CONFIG: "allow.everyone"}
"""KIP-11's names, which the authorizer on ZooKeeper reads if the released ones are not set."""


@frozen(kw_only=True)
class AccessWarning:
    """A sentence for the log, and its kind for metrics: one of KINDS."""

    kind: str
    text: str


def configured_warnings(config: NodeConfig) -> Iterator[AccessWarning]:
    """Yield what is amiss whatever the ACLs are. An authorizer of unknown semantics is not judged."""
    if config.authorizer_class_name is None:
        if reasons := [*_logins(config), *_keys_without_effect(config)]:
            yield without_authorizer(reasons)
    elif has_kafkas_semantics(config):
        yield from _of_super_users(access_property(config, SUPER_USERS_CONFIG))
        yield from _of_flag(config)
        yield from _of_anonymous(config)


def without_authorizer(reasons: list[str]) -> AccessWarning:
    """Return the warning of a node without an authorizer, and what speaks against that being meant."""
    text = (
        f"{AUTHORIZER_CLASS_NAME_CONFIG} is not set: everybody who connects may do everything, although "
        f"{' and '.join(reasons)}. Expected {AUTHORIZER_CLASS_NAME_CONFIG}={KAFKAS_STANDARD_AUTHORIZER}"
    )
    return AccessWarning(kind=NO_AUTHORIZER, text=text)


def has_kafkas_semantics(config: NodeConfig) -> bool:
    """Whether the node has one of Kafka's authorizers, whose properties and decisions are known."""
    name = config.authorizer_class_name
    if name is None:
        return False
    return name in ACL_AUTHORIZERS or issubclass(load_authorizer_class(name), StandardAuthorizer)


def access_property(config: NodeConfig, key: str) -> str | None:
    """Return the value of `super.users` or `allow.everyone.if.no.acl.found` that the authorizer goes by."""
    properties = config.properties
    if key not in properties and config.authorizer_class_name in ACL_AUTHORIZERS:
        return properties.get(_LEGACY[key])
    return properties.get(key)


def _logins(config: NodeConfig) -> Iterator[str]:
    names = [each.name for each in config.listeners if _may_log_in(each)]
    if names:
        yield f"clients log in at {_listeners(names)}"


def _keys_without_effect(config: NodeConfig) -> Iterator[str]:
    for key in (*_LEGACY, *_LEGACY.values()):
        if config.properties.get(key, "").strip():
            yield f"{key} is set"


def _of_super_users(text: str | None) -> Iterator[AccessWarning]:
    mistakes = list(super_user_mistakes(text))
    for user in sorted(parse_super_users(text)):
        kind, _, name = user.partition(":")
        if kind != "User":  # no other principal builder is supported
            mistakes.append(f"{user!r} is nobody, as every login has the type User: did you mean 'User:{name}'?")
    for mistake in mistakes:
        yield AccessWarning(kind=SUPER_USERS, text=f"{SUPER_USERS_CONFIG}: {mistake}")


def _of_flag(config: NodeConfig) -> Iterator[AccessWarning]:
    value = access_property(config, ALLOW_EVERYONE_CONFIG)
    if value is not None and value.strip().lower() not in {"true", "false"}:
        text = f"{ALLOW_EVERYONE_CONFIG}: {value!r} means false, as in Kafka: expected true or false"
        yield AccessWarning(kind=ALLOW_EVERYONE, text=text)


def _of_anonymous(config: NodeConfig) -> Iterator[AccessWarning]:
    users = parse_super_users(access_property(config, SUPER_USERS_CONFIG))
    if str(ANONYMOUS) in users:
        if open_to_all := [each.name for each in config.listeners if not _must_log_in(each)]:
            yield AccessWarning(
                kind=ANONYMOUS_SUPER_USER,
                text=f"{SUPER_USERS_CONFIG} has {ANONYMOUS}, who is everybody that has not logged in: whoever reaches "
                f"{_listeners(open_to_all)} may do everything",
            )
        return
    names = [each.name for each in config.listeners]
    if users and names and not any(map(_may_log_in, config.listeners)):
        yield AccessWarning(
            kind=NO_SUPER_USER_LOGIN,
            text=f"no super user can log in: everybody is {ANONYMOUS} at {_listeners(names)}. "
            f"Expected a listener with SASL or ssl.client.auth=required, or ACLs for {ANONYMOUS}",
        )


def _may_log_in(listener: Listener) -> bool:
    certificates = listener.tls is not None and listener.tls.client_auth is not ClientAuth.NONE
    return listener.security_protocol.sasl or certificates


def _must_log_in(listener: Listener) -> bool:
    certificates = listener.tls is not None and listener.tls.client_auth is ClientAuth.REQUIRED
    return listener.security_protocol.sasl or certificates


def _listeners(names: list[str]) -> str:
    return f"listener{'' if len(names) == 1 else 's'} {', '.join(names)}"
