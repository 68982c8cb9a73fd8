"""The extras that commands need besides the base package; an error shows how to install a missing one."""

from importlib.util import find_spec

from aclog.installation import install_command
from aclog.metalog.errors import ConfigError


def need_web_extra() -> None:
    """Raise ConfigError if a package is missing that serves over the web."""
    _need(
        ("starlette", "uvicorn", "jinja2", "argon2", "authlib", "itsdangerous", "python_multipart"),
        "it serves over the web",
        "web",
    )


def need_usage_extra() -> None:
    """Raise ConfigError if a package is missing that commands about access logs read them with."""
    _need(("pyarrow", "pyroaring"), "access logs need it", "usage")


def need_query_extra() -> None:
    """Raise ConfigError if a package is missing that runs SQL."""
    _need(("duckdb", "pyarrow"), "it runs SQL", "query")


def need_mcp_extra() -> None:
    """Raise ConfigError if the SDK of the Model Context Protocol is missing."""
    _need(("mcp",), "it speaks the Model Context Protocol", "mcp")


def need_spark_extra() -> None:
    """Raise ConfigError if a package is missing that `aclog spark` runs on."""
    _need(("pyspark", "pyarrow"), "`aclog spark` needs it, and Java 17", "spark")


def _need(packages: tuple[str, ...], purpose: str, extra: str) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ConfigError(f"no module {missing[0]}: {purpose}: {install_command(extra)}")
