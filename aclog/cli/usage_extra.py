"""What the commands about access logs need besides the base package."""

from importlib.util import find_spec

from aclog.metalog.errors import ConfigError


def need_usage_extra() -> None:
    """Raise ConfigError if a package of the extra is missing, with the way to install it."""
    missing = [name for name in ("pyarrow", "pyroaring") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"no module {missing[0]}: access logs need it: pip install 'aclog[usage]'")
