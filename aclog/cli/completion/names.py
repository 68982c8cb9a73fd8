"""The names that flags take: topics, groups, principals, ... of the source on the command line."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from aclog.authorizer.acl import WILDCARD
from aclog.authorizer.name_notation import name_text
from aclog.cli.completion.in_child import in_child
from aclog.cli.completion.name_cache import NameCache
from aclog.cli.completion.name_kind import NameKind
from aclog.cli.flags.groups import group_from
from aclog.cli.flags.source import SourceFlags

SECONDS = 1.0
"""How long a user waits after Tab for a source that is not in the cache."""


_FLAGS = {
    **dict.fromkeys(("--topic", "--topic-prefix", "--input-topic", "--output-topic"), NameKind.TOPIC),
    **dict.fromkeys(("--group", "--group-prefix"), NameKind.GROUP),
    **dict.fromkeys(("--transactional-id", "--transactional-id-prefix"), NameKind.TRANSACTIONAL_ID),
    "--delegation-token": NameKind.DELEGATION_TOKEN,
    **dict.fromkeys(
        (
            "--principal",
            "--from-principal",
            "--to-principal",
            "--allow-principal",
            "--deny-principal",
            "--except-principal",
            "--from-principal",
            "--to-principal",
            "--user-principal",
            "--owner-principal",
            "--renewer-principal",
            "--super-users",
            "--to-super-users",
            "--grantprincipal",
            "--revokeprincipal",
        ),
        NameKind.PRINCIPAL,
    ),
}


_NOTATED = frozenset(
    (
        "--topic",
        "--group",
        "--transactional-id",
        "--delegation-token",
        "--user-principal",
        "--input-topic",
        "--output-topic",
    )
)
"""Whose values are names as questions write them (aclog.authorizer.name_notation), but for `acls`."""


def kind_of(parameter: Any) -> NameKind | None:
    """Return what the value of an option names; None if it is not one of these kinds."""
    return next((_FLAGS[name] for name in parameter.opts if name in _FLAGS), None)


def names_like(context: Any, parameter: Any, typed: str, *, most: int) -> Iterator[str]:
    """Yield the names of the source that begin with what was typed, at most so many; none if it cannot be read in time.

    What was read is kept for a minute. A source that takes longer than a second goes on being read in the background,
    so that the next Tab finds it.
    """
    kind, source = kind_of(parameter), _source(context.params)
    if kind is None or source is None:
        return
    cache = NameCache.of(source)
    if not cache.is_fresh():
        in_child(lambda: _collect(cache, source), wait_seconds=SECONDS)
    before, separator, last = typed.rpartition(_separator(parameter))
    names: Iterable[str] = cache.names(kind, last, most=most)
    if not _NOTATED.isdisjoint(parameter.opts) and "acls" not in context.command_path.split():
        names = filter(None, (_as_asked(name, kind) for name in names))
    yield from (before + separator + name for name in names)


def _as_asked(name: str, kind: NameKind) -> str | None:
    """Return a name as a question writes it; None if no question can. The `*` of a rule is every name."""
    if name == WILDCARD:
        return name
    return None if kind is NameKind.TOPIC and WILDCARD in name else name_text(name)


def _separator(parameter: Any) -> str:
    """Return what stands between the values of an option that takes several; nothing that is ever typed otherwise."""
    if parameter.metavar == "USERS":
        return ";"
    return "," if (parameter.metavar or "").endswith(",...") else "\0"


@frozen(kw_only=True)
class _Source:
    """What the options before the word name."""

    flags: SourceFlags
    stores: tuple[str, ...]
    """KEY=VALUE properties of a ZooKeeper."""


def _source(given: Mapping[str, Any]) -> _Source | None:
    """Return the source that the options before the word name; None if they name none, or stdin."""
    flags = group_from(SourceFlags, given)
    stores = tuple(given.get("authorizer_properties") or ())
    if given.get("acls") == "-" or not (flags.given() or stores):  # stdin is the command's to read
        return None
    return _Source(flags=flags, stores=stores)


def _collect(cache: NameCache, source: _Source) -> None:
    from attrs import evolve

    from aclog.cli.completion.collect import collect  # the replay of logs, which a cached name does without

    cache.store(collect(evolve(source.flags.selection(), authorizer_properties=source.stores)))
