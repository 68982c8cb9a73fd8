"""Which context a command uses: the one it names, that of the environment, or the one that `aclog context use` set."""

import os
from enum import StrEnum

from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.sources.contexts.config_place import config_file
from aclog.sources.contexts.context import Context

VARIABLE = "ACLOG_CONTEXT"


class ChosenBy(StrEnum):
    """Who named the context, in words for people."""

    NAME = "named here"
    VARIABLE = "named by ACLOG_CONTEXT"
    CURRENT = "set by `aclog context use`"


@frozen(kw_only=True)
class ChosenContext:
    """A context, as it was when the command began, and why it is used."""

    context: Context
    by: ChosenBy

    @property
    def is_ambient(self) -> bool:
        """Whether it was chosen before this command, so that its user may not think of it."""
        return self.by is not ChosenBy.NAME


def choose_context(name: str | None = None) -> ChosenContext | None:
    """Return the context of this name, else that of $ACLOG_CONTEXT, else the current one; None if there is none.

    An empty name or variable means none at all.

    Raises:
        ConfigError: no context has the name, or the file is not the user's own or says what it cannot.
        OSError: the file cannot be read.

    """
    by, wanted = (ChosenBy.NAME, name) if name is not None else (ChosenBy.VARIABLE, os.environ.get(VARIABLE))
    if wanted == "":
        return None
    if wanted is None and not _file_exists():
        return None  # nothing else is imported: most commands have no contexts to look for
    from aclog.sources.contexts.context_file import read_context_file

    file = read_context_file()
    if wanted is None:
        by, wanted = ChosenBy.CURRENT, file.current
    if wanted is None:
        return None
    try:
        return ChosenContext(context=file.context(wanted), by=by)
    except ConfigError as error:
        if by is ChosenBy.NAME:
            raise
        raise ConfigError(f"{error} (it is {by})") from None


def _file_exists() -> bool:
    path = config_file()
    return path is not None and path.exists()
