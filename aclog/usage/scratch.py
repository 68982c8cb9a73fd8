"""Private copies in the directory of temporary files: what a program has to do before it makes the first one.

A signal that ends the process at once leaves its copies, of up to gigabytes. A library changes no handler of signals:
the command line does (`aclog.cli.app`), when there is something to remove.
"""

from collections.abc import Callable
from contextvars import ContextVar


def _nothing() -> None:
    """Do nothing: the program that uses the library ends by itself."""


BEFORE_COPY: ContextVar[Callable[[], None]] = ContextVar("aclog_before_copy", default=_nothing)
"""Called before each private copy is made."""


def before_copy() -> None:
    """Do what the program has to do before it makes a private copy."""
    BEFORE_COPY.get()()


def private_directory() -> str:
    """Create a directory for private copies, and return its path. Raises OSError."""
    from tempfile import mkdtemp  # noqa: PLC0415 - few commands make copies

    before_copy()
    return mkdtemp(prefix="aclog-")
