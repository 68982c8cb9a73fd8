"""Files of which only one can be stdin."""

from collections.abc import Mapping

from aclog.metalog.errors import ConfigError

_STDIN = "-"


def check_one_stdin(files: Mapping[str, str | None]) -> None:
    """Check the values of flags that name files: the second one to read stdin would find it empty.

    Raises:
        ConfigError: two or more of them are `-`.

    """
    found = [f"{flag} -" for flag, path in files.items() if path == _STDIN]
    if len(found) > 1:
        raise ConfigError(f"{' and '.join(found)}: only one of them can be stdin")
