"""What pages are made from."""

from attrs import field, frozen

from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.console.pages.command_line import CommandLine
from aclog.console.pages.states import States

SEPARATORS = ".-_/:"
"""Where names are thought to have their parts."""


@frozen(eq=False, kw_only=True)
class Console:
    """A source that is followed, and what else is known of its cluster."""

    name: str
    """Of the source, for people."""
    states: States
    command: CommandLine
    place: ChangePlace = field(factory=ChangePlace)
    """Where advised commands make their changes."""
    origins: Origins = NO_ORIGINS
    """Where rules stand in files."""
