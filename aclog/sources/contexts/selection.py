"""The source of a context, to be opened without a command line: for the library, and for files that name a context."""

from collections.abc import Iterator
from pathlib import Path

from aclog.sources.choice import SourceSelection
from aclog.sources.contexts.context import Context
from aclog.sources.formats.format import AclsFormat
from aclog.sources.name_file import NameFile


def selection_of(context: Context, *, as_of: str | None = None) -> SourceSelection:
    """Return what aclog.sources.choice.choose_source opens for a context; its settings are not part of it.

    Raises:
        ConfigError, OSError: the ZooKeeper properties that it names cannot be read.

    """
    is_path = context.kind in {"log", "snapshot"}
    is_store = context.kind == "zookeeper"
    named = {} if is_store else {context.kind.replace("-", "_"): Path(context.value) if is_path else context.value}
    return SourceSelection(
        **named,  # type: ignore[arg-type]
        authorizer_properties=tuple(store_properties(context)) if is_store else (),
        form=AclsFormat(context.acls_format or AclsFormat.AUTO),
        modules=context.modules,
        topics=None if context.topics is None else NameFile(context.topics),
        command_config=context.command_config,
        as_of=as_of,
    )


def store_properties(context: Context) -> Iterator[str]:
    """Yield the KEY=VALUE properties with which AclAuthorizer would reach the ZooKeeper of a context.

    Raises:
        ConfigError, OSError: the properties that it names cannot be read.

    """
    yield f"zookeeper.connect={context.value}"
    if context.zookeeper_config is not None:
        from aclog.nodes.config.java_properties import read_properties

        found, _ = read_properties(context.zookeeper_config)
        yield from (f"{key}={value}" for key, value in found.items())
