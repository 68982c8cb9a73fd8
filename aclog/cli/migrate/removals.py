"""What `--replace` may remove: more than a share of what the target holds is confirmed first."""

import sys

from attrs import evolve

from aclog.cli.removal_limit import RemovalLimit
from aclog.metalog.errors import ConfigError
from aclog.terminal.confirmation import confirms
from aclog.terminal.output import shown
from aclog.zkstore.migration.access_state import AccessState, difference


def suspicion(name: str, current: AccessState, wanted: AccessState, limit: RemovalLimit) -> str | None:
    """Return why the changes to the wanted state are suspicious, and what to do; None if they are not, or accepted."""
    removed = difference(current, wanted).removals
    if not limit.is_exceeded(removed, len(current)) or limit.is_accepted(removed):
        return None
    what = f"{removed} of {len(current)} entries would go"
    return f"{name}: {what}: if that is right, accept it with --accept-removal {removed}"


def confirmed(name: str, current: AccessState, wanted: AccessState, limit: RemovalLimit) -> RemovalLimit:
    """Ask on a terminal whether a suspicious removal is right; return the limit with what is accepted by now.

    Raises:
        ConfigError: it is not accepted, or there is nobody to ask.

    """
    found = suspicion(name, current, wanted, limit)
    if found is None:
        return limit
    if not sys.stdin.isatty():
        raise ConfigError(found)
    removed = difference(current, wanted).removals
    question = shown()(f"{name}: {removed} of {len(current)} entries would go. Remove them? (y/n)")
    nothing = f"{name}: nothing was written"
    if not confirms(question, nothing):
        raise ConfigError(nothing)
    return evolve(limit, accepted=removed)
