"""The one escaper of characters that control a terminal, forge a line or make a name look like another.

This module alone defines these characters: all that Unicode does not call printable (C0, C1, DEL, line ends, format
characters such as bidirectional ones, blanks other than a space, surrogates, and what is not assigned).
"""

from collections.abc import Callable
from errno import ENOENT
from typing import Self


def noun(count: int, word: str) -> str:
    """Return `rule` for 1, and `rules` for any other number; `access` and `accesses`."""
    return word if count == 1 else f"{word}{'es' if word.endswith('s') else 's'}"


def plural(count: int, word: str) -> str:
    """Return such as `1 rule` or `1,203 rules`."""
    return f"{count:,} {noun(count, word)}"


def printable(text: str) -> str:
    r"""Return a text for one line, with unprintable characters as Python escapes (`\x1b`, `\u202e`, `\n`).

    Names are chosen by clients. Not for JSON, which has escapes of its own: `printable_json`.
    """
    return _escaped(text, lambda character: ascii(character)[1:-1])


def printable_json(text: str) -> str:
    r"""Return JSON on one line with the same characters in its strings as JSON escapes (`\u001b`, `\u202e`).

    It is the same value: outside of strings JSON has none of these except line ends, which `text` must not have. A
    lone surrogate stays as it is: it is not text, and writing it as UTF-8 fails.
    """
    return _escaped(text, _json_escape)


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else escape(each) for each in without_marks(text))


SYMBOL_MARK = "\ufdd0"
"""Before each `${` of a symbol (aclog.authorizer.symbols): a noncharacter of Unicode."""
SYMBOL_START = f"{SYMBOL_MARK}${{"
"""The beginning of an unknown part of a text, which no name has."""
FIRST_HIDDEN, LAST_HIDDEN = "\ufdd1", "\ufde0"
"""Noncharacters of Unicode, by which symbols of the same text are distinct; 16 in all, one for each digit."""
_HIDDEN = dict.fromkeys(range(ord(FIRST_HIDDEN), ord(LAST_HIDDEN) + 1))


def without_marks(text: str) -> str:
    """Return a text with its symbols as people write them: `User:${confluent_service_account.app.id}`."""
    if SYMBOL_START not in text:
        return text
    return text.replace(f"{SYMBOL_MARK}:", "").replace(SYMBOL_START, "${").translate(_HIDDEN)


def _json_escape(character: str) -> str:
    if "\ud800" <= character <= "\udfff":
        return character
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[begin : begin + 4]}" for begin in range(0, len(units), 4))


NO_SUCH_PATH = "no such file or directory"
"""What errors state of a path that does not exist."""


def os_error_text(error: OSError) -> str:
    """Return what the operating system states of a failure, without its number and file."""
    return NO_SUCH_PATH if error.errno == ENOENT else error.strerror or str(error)


# The exceptions of aclog, one tree. A message states what is wrong, where (path, offset, byte) and what was expected.


class MetadataError(Exception):
    """Base class of every error that aclog raises on purpose; its text is one line, written for an operator.

    Names in it were chosen by others: what is unprintable is escaped.
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class ConfigError(MetadataError):
    """A flag, property or input line that is not valid; the text names it and what would be accepted."""


class DecodeError(MetadataError):
    """Bytes that do not follow the format.

    Decoders are pure and know only positions in a buffer; the caller that owns the file adds path and offset with `at`.
    """

    def __init__(
        self, what: str, *, position: int | None = None, offset: int | None = None, path: str | None = None
    ) -> None:
        """`position` is a byte position in the buffer or file, `offset` a log offset, `path` the file."""
        self.what, self.position, self.offset, self.path = what, position, offset, path
        places = [f"{name} {value}" for name, value in (("offset", offset), ("byte", position)) if value is not None]
        where = ", ".join(places)
        prefix = f"{path}: " if path is not None else ""
        super().__init__(f"{prefix}{where}: {what}" if where else f"{prefix}{what}")

    def at(self, *, path: str | None = None, offset: int | None = None, base: int = 0) -> Self:
        """Return the same error with context added: `base` is added to the position; what is set already stays."""
        return type(self)(
            self.what,
            position=None if self.position is None else self.position + base,
            offset=self.offset if self.offset is not None else offset,
            path=self.path if self.path is not None else path,
        )

    # By default an exception is unpickled by calling its class with `args`, here one formatted string. Spark workers
    # and process pools send these errors back to their parent, so the parts are pickled instead.
    def __reduce__(self) -> tuple[object, ...]:
        return (_restored, (type(self), self.what, self.position, self.offset, self.path))


def _restored(
    kind: type[DecodeError], what: str, position: int | None, offset: int | None, path: str | None
) -> DecodeError:
    return kind(what, position=position, offset=offset, path=path)


class ReplayError(DecodeError):
    """A log that decodes but cannot be replayed: an offset gap, a leader epoch that decreases, an ACL added twice."""


class NewerKafkaError(ReplayError):
    """Sound bytes of a newer Kafka, whose meaning is unknown here: no damage."""


def is_newer_kafka(error: BaseException | None) -> bool:
    """Return whether an error, or one that it was raised from, is a NewerKafkaError."""
    while error is not None and not isinstance(error, NewerKafkaError):
        error = error.__cause__
    return error is not None


class LogError(MetadataError):
    """The storage of a log fails or refuses: not a log, disk full, closed, offset out of range."""


class UncertainError(LogError):
    """An append failed, and yet may be in the log: the next writer that opens it determines that."""


class LockedError(LogError):
    """Another process holds a lock that a writer needs."""


class FencedError(LogError):
    """Another writer has taken over; this one can never write again (Kafka's ProducerFencedException)."""


class StaleError(LogError):
    """A followed state is older than the caller accepts (`max_age`)."""


class CheckpointError(MetadataError):
    """A checkpoint that is incomplete, or whose content does not match its file name."""


class EncodeError(MetadataError):
    """A value that the format cannot represent: a string over 32,767 bytes, a number out of its field's range."""
