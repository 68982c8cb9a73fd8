"""Parquet, which takes pyarrow: an extra, since it is larger than all else that aclog needs."""

from importlib.util import find_spec

from aclog.metalog.errors import ConfigError


def has_pyarrow() -> bool:
    """Return whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


def need_pyarrow(path: str) -> None:
    """Raise ConfigError unless pyarrow is installed; `path` is what is to be read or written as Parquet."""
    if not has_pyarrow():
        raise ConfigError(f"{path}: Parquet needs pyarrow, which is not installed: pip install 'aclog[parquet]'")
