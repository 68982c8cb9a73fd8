"""Terraform as a format: which files are its, and their rules."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.formats.terraform.configuration import read_configuration
from aclog.sources.formats.terraform.module_source import is_module_file
from aclog.sources.formats.terraform.show_json import claims_json, read_json

_MOST_FRAMES = 20_000
"""References lead to others, and through modules: a few frames each. Frames of Python take no stack of C."""


def claims(file: SourceFile) -> bool:
    """Return whether a file is of a module, a plan or a state."""
    return is_module_file(file.base_name) or claims_json(file)


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of all modules, plans and states.

    Raises:
        ConfigError: something on the way to a rule is wrong, unknown or not understood, with file and line.
        OSError: a file cannot be read.

    """
    configuration = [file for file in files if is_module_file(file.base_name)]
    for file in files:
        if is_module_file(file.base_name):
            continue
        if configuration:
            context.ignore("plan or state beside a configuration")
        else:
            yield from read_json(file, context)
    if configuration:
        with _deep_recursion():
            try:
                rules = list(read_configuration(configuration, context))
            except RecursionError as error:
                raise ConfigError(f"{context.tree.name}: references or calls lead too deep") from error
        yield from rules


@contextmanager
def _deep_recursion() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _MOST_FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
