"""Files that hold secrets."""

from pathlib import Path

from aclog.metalog.errors import ConfigError


def check_private(path: Path, harm: str) -> None:
    """Check that only its owner may read a file.

    `harm` ends a sentence that begins with "others may read it".

    Raises:
        ConfigError: others may. OSError: there is no such file.

    """
    if path.stat().st_mode & 0o077:
        raise ConfigError(f"{path}: others may read it{harm}: chmod 600")
