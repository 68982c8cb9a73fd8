"""The one error tree. Every message says what is wrong, where (path, offset, byte position) and what was expected."""

from typing import Self


class MetadataError(Exception):
    """The root of every error that aclog raises on purpose; its text is one line, fit for an operator."""


class ConfigError(MetadataError):
    """A flag, a property or an input line that cannot be honoured: what, where, and what would be accepted."""


class DecodeError(MetadataError):
    """Bytes that are not what the format says.

    Decoders are pure and know positions only; whoever holds the file adds the rest with `at`.
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
        """The same error seen from further out: `base` is added to the position; what is known already stays."""
        return type(self)(
            self.what,
            position=None if self.position is None else self.position + base,
            offset=self.offset if self.offset is not None else offset,
            path=self.path if self.path is not None else path,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (_restored, (type(self), self.what, self.position, self.offset, self.path))


def _restored(
    kind: type[DecodeError], what: str, position: int | None, offset: int | None, path: str | None
) -> DecodeError:
    return kind(what, position=position, offset=offset, path=path)


class ReplayError(DecodeError):
    """A log that decodes, but cannot be replayed: a gap, an epoch that goes back, an ACL id added twice."""


class LogError(MetadataError):
    """The place where a log lives failed, or refuses: not a log, a full disk, closed, an offset out of range."""


class LockedError(LogError):
    """Somebody else holds the lock that a writer needs."""


class FencedError(LogError):
    """Another writer has taken over: this one never writes again (Kafka's ProducerFencedException)."""


class CheckpointError(MetadataError):
    """A checkpoint that is not whole, or that does not say what its name says."""


class EncodeError(MetadataError):
    """A value that the format cannot hold: a string beyond 32,767 bytes, a number out of its field's range."""
