"""Completion of GITREF:PATH: what git names in the repository around the working directory."""

from aclog.metalog.errors import ConfigError

_MOST = 200


def complete_refs(incomplete: str) -> list[str]:
    """Return the branches and tags that begin so, with the colon after it; then what is in the commit."""
    ref, colon, path = incomplete.partition(":")
    if colon:
        return [f"{ref}:{each}" for each in _paths(ref, path)]
    names = _ask("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags")
    known = () if names is None else ("HEAD", *names.split())
    return [f"{name}:" for name in known if name.startswith(incomplete)][:_MOST]


def _paths(ref: str, incomplete: str) -> list[str]:
    directory, slash, _ = incomplete.rpartition("/")
    found = _ask("ls-tree", "-z", "--end-of-options", f"{ref or 'HEAD'}:{directory}")
    entries = [entry.partition("\t") for entry in (found or "").split("\0") if entry]
    paths = [f"{directory}{slash}{name}{'/' * (' tree ' in details)}" for details, _, name in entries]
    return [path for path in paths if path.startswith(incomplete)][:_MOST]


def _ask(*arguments: str) -> str | None:
    from aclog.sources.git.git_command import ask_git

    try:
        output = ask_git(*arguments).output
    except ConfigError:
        return None
    return None if output is None else output.decode(errors="replace")
