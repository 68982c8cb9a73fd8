"""What `aclog mcp` needs besides the base package."""

from importlib.util import find_spec

from aclog.metalog.errors import ConfigError


def need_mcp_extra() -> None:
    """Raise ConfigError if the protocol's SDK is missing, with the way to install it."""
    if find_spec("mcp") is None:
        raise ConfigError("no module mcp: it speaks the Model Context Protocol: pip install 'aclog[mcp]'")
