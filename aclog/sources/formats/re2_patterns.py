"""Regular expressions of RE2, whose time is linear in the text, whatever the pattern."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return a compiled pattern, which has the methods of Python's.

    Raises:
        ValueError: it is none.

    """
    import re2  # here: few files have an expression

    options = re2.Options()
    options.log_errors = False  # it writes to stderr
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0]
        raise ValueError(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from error


def matches(pattern: Any, text: str) -> Iterator[Any]:
    """Yield each match in turn, as Go finds them: none that is empty and touches the one before."""
    end = None
    for found in pattern.finditer(text):
        if found.end() != end or found.start() != end:
            end = found.end()
            yield found
