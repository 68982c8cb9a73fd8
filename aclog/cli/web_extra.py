"""What the commands that serve over the web need besides the base package."""

from importlib.util import find_spec

from aclog.metalog.errors import ConfigError


def need_web_extra() -> None:
    """Raise ConfigError if a package of the extra is missing, with the way to install it."""
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"no module {missing[0]}: it serves over the web: pip install 'aclog[web]'")
