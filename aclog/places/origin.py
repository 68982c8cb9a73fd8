"""Who runs a command, when, and as of which commit."""

import getpass
import socket
from datetime import UTC, datetime

from aclog.metalog.errors import ConfigError
from aclog.planning.plan import Origin
from aclog.sources.git.git_history import changed_files, commit_id, exists, path_from_top
from aclog.sources.git.git_place import GitPlace
from aclog.sources.text_lines import STDIN


def origin_now(path: str | None = None) -> Origin:
    """Return who runs this command, and now; with the commit of the repository that `path` is in, if it is in one."""
    return Origin(at=time_now(), who=who(), git=None if path is None else _commit_of(path))


def time_now() -> str:
    """Return the time as ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def who() -> str:
    """Return the user and the machine of this process, `user@host`; what is not UTF-8 is escaped."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}".encode(errors="backslashreplace").decode()


def _commit_of(path: str) -> str | None:
    """Return the id of the commit that is checked out, with `-dirty` if `path` is not as it is there."""
    if path == STDIN:
        return None
    try:
        inside = path_from_top(path)
        commit = commit_id("HEAD")
        if commit is None:
            return None
        changed = changed_files("HEAD", None)
    except ConfigError:  # no git, no repository, or a file outside of it
        return None
    is_changed = any(not inside or each == inside or each.startswith(f"{inside}/") for each in changed)
    # What git ignores is in no list of changes.
    is_clean = not is_changed and exists(GitPlace(ref="HEAD", path=inside))
    return commit if is_clean else f"{commit}-dirty"
