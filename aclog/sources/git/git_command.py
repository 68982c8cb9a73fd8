"""Runs git on a repository that is not trusted: nothing that its configuration names is run, and nothing is fetched."""

import os
import shutil
import subprocess
from pathlib import Path

from attrs import frozen

from aclog.metalog.errors import ConfigError

_SAFE = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.warnAmbiguousRefs=true"),
)
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # a partial clone would fetch what it lacks, by programs that its settings name
    "GIT_NO_LAZY_FETCH": "1",  # the same, as git says it since 2.44
    "GIT_NO_REPLACE_OBJECTS": "1",  # refs/replace would show other content than the commit has
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def git_arguments(*arguments: str) -> list[str]:
    """Return the command line of a git command in the working directory. Raises ConfigError: there is no git."""
    program = shutil.which("git")
    if program is None:
        raise ConfigError("git is not on the PATH: it is needed to read files as of a commit (--ref, --to-ref)")
    return [program, "-C", os.curdir, *_SAFE, *arguments]


def git_environment() -> dict[str, str]:
    """Return the environment of git: ours, and what keeps it from running or fetching anything.

    GIT_DIR, GIT_INDEX_FILE and the like stay: in a hook they name the repository and the index that is committed.
    """
    return {**os.environ, **_ENVIRONMENT}


@frozen(kw_only=True)
class GitAnswer:
    """What a git command printed, and what it said on stderr; `output` is None if it failed."""

    output: bytes | None
    said: str


def ask_git(*arguments: str) -> GitAnswer:
    """Run a git command that only reads, and return its answer.

    Raises:
        ConfigError: there is no git, or the working directory is in no repository that git reads.

    """
    done = subprocess.run(  # noqa: S603  # no shell, and no argument that begins with a dash comes from outside
        git_arguments(*arguments),
        env=git_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode == 0:
        return GitAnswer(output=done.stdout, said=said)
    if "not a git repository" in said:
        raise ConfigError(f"{Path.cwd()}: not in a git repository: --ref and --to-ref read the one around it")
    if "dubious ownership" in said or "cannot use bare repository" in said:
        raise ConfigError(f"git refuses to read this repository: {_flat(said)}")
    return GitAnswer(output=None, said=said)


def without_filters() -> list[str]:
    """Return the options of git that switch off the filters of its settings, which a comparison of files would run.

    Raises:
        ConfigError: one has a name that an option cannot have.

    """
    keys = (
        ask_git("config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$").output
        or b""
    )
    options: list[str] = []
    for key in keys.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        if "=" in key:
            raise ConfigError(f"git's setting {key!r}: the name of a filter with =, which cannot be switched off")
        options += ("-c", f"{key}=")
    return options


def is_partial_clone() -> bool:
    """Return whether git knows a remote that has what this clone lacks."""
    return ask_git("config", "--get-regexp", r"^remote\..*\.promisor$").output is not None


def _flat(said: str) -> str:
    """Return what git said as one line, with its advice."""
    return " ".join(said.removeprefix("fatal: ").split())
