"""A file of names, one a line, such as that of `--topics`."""

from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.sources.text_lines import display_name, numbered


@define(eq=False)
class NameFile:
    """Names in a file or in stdin (`-`), read once, when they are asked for; gzip is detected."""

    path: str
    of: str = "a topic"
    """What has the names, for errors."""
    _names: tuple[str, ...] | None = field(default=None, init=False)

    def names(self) -> tuple[str, ...]:
        """Return the names. Raises ConfigError: a line is not UTF-8; OSError: the file cannot be read."""
        if self._names is None:
            self._names = tuple(self._name(number, line) for number, line in numbered(self.path))
        return self._names

    def _name(self, number: int, line: bytes) -> str:
        try:
            return line.decode().strip("\r")
        except UnicodeDecodeError as error:
            where = f"{display_name(self.path)}: line {number}"
            raise ConfigError(f"{where}: byte {error.start} is not UTF-8: expected the name of {self.of}") from error
