"""The state of a context, as the flags that would name it: for what a command takes besides its first source."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from aclog.cli.flags.authorizer import AuthorizerFlags, Semantics
from aclog.cli.flags.source import SourceFlags
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat

if TYPE_CHECKING:
    from aclog.sources.contexts.context import Context


def context_source(context: "Context") -> SourceFlags:
    """Return the source of a context; warn if others can read the secrets of its login.

    Raises:
        ConfigError: it is a ZooKeeper, which only some commands read.

    """
    if context.kind == "zookeeper":
        raise ConfigError(f"context {context.name} is {context.address}: expected a log, files of rules or a cluster")
    if context.command_config is not None:
        from aclog.sources.contexts.client_secrets import warn_of_readers

        warn_of_readers(context.command_config)
    is_path = context.kind in {"log", "snapshot"}
    return SourceFlags(
        **{context.kind.replace("-", "_"): Path(context.value) if is_path else context.value},  # type: ignore[arg-type]
        acls_format=None if context.acls_format is None else AclsFormat(context.acls_format),
        modules=[f"{source}={path}" for source, path in context.modules.items()],
        topics_file=context.topics,
        command_config=context.command_config,
        timezone=context.timezone,
    )


def tell_what_decides(context: "Context", settings: Iterable[str]) -> None:
    """Say that settings of a context decide, besides the rules; nothing if there are none."""
    from aclog.terminal.notices import note

    if found := ", ".join(settings):
        note(f"decided with what context {context.name} says: {found}")


def context_authorizer(context: "Context") -> AuthorizerFlags:
    """Return what a context says of the authorizer; what it does not say is as Kafka's defaults. A note tells it."""
    tell_what_decides(context, context.decides().values())
    return AuthorizerFlags(
        super_users=context.super_users,
        allow_everyone=bool(context.allow_everyone),
        no_allow_everyone=context.allow_everyone is False,
        semantics=Semantics(context.semantics or Semantics.KAFKA),
        cidr=context.cidr,
    )
