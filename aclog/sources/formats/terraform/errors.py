"""Errors of evaluation."""

from aclog.metalog.errors import ConfigError


class EvaluationError(ConfigError):
    """An expression that has no value, with file and line; `try` and `can` catch these, and no other errors."""
