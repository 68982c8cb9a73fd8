"""The file `notice`: one line that the writer of a log directory leaves for its readers, until it is withdrawn."""

from pathlib import Path

from aclog.metalog.filelog.filesystem import fsync_directory, log_error, read_small, replace_durably

NOTICE_FILE = "notice"
_MAX_CHARACTERS = 1000


def notices(directory: Path) -> tuple[str, ...]:
    """Return the notice as a warning, if there is one. Raises LogError: it cannot be read."""
    data = read_small(directory / NOTICE_FILE)
    if data is None:
        return ()
    return (f"warning: {directory}: {data.decode('utf-8', 'replace').strip()[:_MAX_CHARACTERS]}",)


def leave_notice(directory: Path, text: str) -> None:
    """Leave a notice durably, in place of an earlier one. Raises LogError: it cannot be written."""
    replace_durably(directory / NOTICE_FILE, f"{text}\n".encode())


def withdraw_notice(directory: Path) -> None:
    """Remove the notice durably, if there is one. Raises LogError: it cannot be removed."""
    path = directory / NOTICE_FILE
    try:
        path.unlink()
        fsync_directory(directory)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise log_error(error, path, "cannot remove") from error
