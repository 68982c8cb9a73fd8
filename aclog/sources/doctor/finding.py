"""What a check has found."""

from enum import StrEnum

from attrs import frozen


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    """Some commands will not do what is expected of them, or soon not."""
    FAIL = "fail"
    """The source cannot be used."""


@frozen
class Finding:
    """One line of the doctor: what was looked at, what was found, and what to do about it."""

    check: str
    level: Level
    text: str
    todo: str = ""


def ok(check: str, text: str, todo: str = "") -> Finding:
    """Return what is as it should be; `todo` says what else there is."""
    return Finding(check, Level.OK, text, todo)


def warn(check: str, text: str, todo: str) -> Finding:
    """Return what may be meant, and what to do if it is not."""
    return Finding(check, Level.WARN, text, todo)


def fail(check: str, text: str, todo: str = "") -> Finding:
    """Return what is wrong; without `todo` the text says what to do, as that of every MetadataError does."""
    return Finding(check, Level.FAIL, text, todo)


def text_of(error: Exception) -> str:
    """Return an error as a line for people: one of the operating system says what failed, and without its number."""
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
