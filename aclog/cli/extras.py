"""The extras that commands need besides the base package."""

from importlib.util import find_spec

from aclog.metalog.errors import ConfigError

# What the commands that serve over the web need besides the base package.


def need_web_extra() -> None:
    """Raise ConfigError if a package of the extra is missing, with the way to install it."""
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"no module {missing[0]}: it serves over the web: pip install 'aclog[web]'")


# What the commands about access logs need besides the base package.


def need_usage_extra() -> None:
    """Raise ConfigError if a package of the extra is missing, with the way to install it."""
    missing = [name for name in ("pyarrow", "pyroaring") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"no module {missing[0]}: access logs need it: pip install 'aclog[usage]'")


# What `aclog mcp` needs besides the base package.


def need_mcp_extra() -> None:
    """Raise ConfigError if the protocol's SDK is missing, with the way to install it."""
    if find_spec("mcp") is None:
        raise ConfigError("no module mcp: it speaks the Model Context Protocol: pip install 'aclog[mcp]'")
