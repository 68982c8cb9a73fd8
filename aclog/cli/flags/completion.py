"""Completions of flags by the shell: paths, and what git names in the repository around the working directory."""

from pathlib import Path

from aclog.metalog.errors import ConfigError

_MOST = 200


def complete_paths(incomplete: str) -> list[str]:
    """Return the files and directories whose paths begin so; directories end with `/`."""
    directory, slash, name = incomplete.rpartition("/")
    try:
        found = sorted(path for path in Path(directory + slash or ".").iterdir() if path.name.startswith(name))
    except OSError:
        return []
    shown = (path for path in found if name or not path.name.startswith("."))
    return [f"{directory}{slash}{path.name}{'/' * path.is_dir()}" for path in shown][:_MOST]


def complete_refs(incomplete: str) -> list[str]:
    """Return the branches and tags that begin so, with the colon after which a path is expected."""
    from aclog.sources.git.git_command import ask_git

    try:
        answer = ask_git("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags")
    except ConfigError:
        return []
    names = (answer.output or b"").decode(errors="replace").split()
    return [f"{name}:" for name in ("HEAD", *names) if name.startswith(incomplete)][:_MOST]
