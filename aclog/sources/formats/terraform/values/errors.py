"""Why an expression has no value; the evaluator adds file and line."""

from aclog.metalog.errors import ConfigError


class TooLargeError(ConfigError):
    """A value beyond any use: a few lines can double one until no memory holds it. `try` does not catch this."""


class ValueFault(Exception):  # noqa: N818
    """What is wrong with an operand, an argument or a conversion, in words; it never shows a value."""
