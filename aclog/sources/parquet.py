"""Parquet, which takes pyarrow: an extra, since it is larger than all else that aclog needs."""

from importlib.util import find_spec

from aclog.metalog.errors import ConfigError


def need_pyarrow(path: str) -> None:
    """Raise ConfigError unless pyarrow is installed; `path` is what is to be read or written as Parquet."""
    if find_spec("pyarrow") is None:
        raise ConfigError(f"{path}: Parquet needs pyarrow, which is not installed: pip install 'aclog[parquet]'")
