"""Finds the files of a commit, or says how to get it."""

import re

from aclog.metalog.errors import ConfigError
from aclog.sources.git.git_command import ask_git
from aclog.sources.git.git_place import GitPlace

_COMMIT_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def tree_id(place: GitPlace) -> str:
    """Return the id of the tree of a commit.

    Raises:
        ConfigError: there is no such commit in this clone, with the command that fetches it; the name is ambiguous; a
            time that the reflog does not reach.

    """
    found = ask_git("rev-parse", "--verify", f"{place.ref}^{{tree}}")
    if "only goes back to" in found.said or "only has" in found.said:
        reach = found.said.splitlines()[0].removeprefix("warning: ")
        raise ConfigError(f"{place.name}: this clone does not know what {place.ref} was: {reach}")
    if "is ambiguous" in found.said:
        raise ConfigError(f"{place.name}: {place.ref!r} is ambiguous: expected refs/heads/... or refs/tags/...")
    if found.output is None and "Needed a single revision" not in found.said:
        raise ConfigError(f"{place.name}: git rev-parse: {found.said.splitlines()[0].removeprefix('fatal: ')}")
    if found.output is None:
        raise ConfigError(
            f"{place.name}: no branch, tag or commit {place.ref!r} in this clone{way_out(place.ref, place.name)}"
        )
    return found.output.decode().strip()


def way_out(ref: str, name: str) -> str:
    """Return what to do about a commit that is not there, given as `name`; empty if nothing is known."""
    remotes = _lines("remote")
    if not remotes:
        return ""
    origin = "origin" if "origin" in remotes else remotes[0]
    if _COMMIT_ID.fullmatch(ref):
        return f"; fetch it: git fetch {origin} {ref}"
    if re.search(r"[~^@]", ref):
        is_shallow = _lines("rev-parse", "--is-shallow-repository") == ["true"]
        return f"; the clone is shallow, fetch the rest of it: git fetch --unshallow {origin}" if is_shallow else ""
    remote, _, branch = ref.partition("/")
    if remote in remotes and branch:
        return f"; fetch it: git fetch {remote} {branch}:refs/remotes/{remote}/{branch}"
    if ask_git("rev-parse", "--verify", f"refs/remotes/{origin}/{ref}").output is not None:
        return f": did you mean {origin}/{name}?"
    return f"; if {origin} has it: git fetch {origin} {ref}:refs/remotes/{origin}/{ref}, then {origin}/{name}"


def _lines(*arguments: str) -> list[str]:
    return (ask_git(*arguments).output or b"").decode(errors="replace").splitlines()
