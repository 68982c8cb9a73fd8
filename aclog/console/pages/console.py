"""What pages are made from."""

from attrs import field, frozen

from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.console.login.visibility import Own
from aclog.console.pages.command_line import CommandLine
from aclog.console.pages.own_states import OwnStates
from aclog.console.pages.states import States

SEPARATORS = ".-_/:"
"""Where names are thought to have their parts."""


class NotShownError(Exception):
    """The viewer may not see this."""


@frozen(eq=False, kw_only=True)
class Console:
    """A source that is followed, and what else is known of its cluster."""

    name: str
    """Of the source, for people."""
    states: States | OwnStates
    command: CommandLine
    place: ChangePlace = field(factory=ChangePlace)
    """Where advised commands make their changes."""
    origins: Origins = NO_ORIGINS
    """Where rules stand in files."""
    own: Own | None = None
    """The viewer, if he sees his own rights only; None: all is shown."""

    def check_own(self, principal: str) -> None:
        """Refuse what is asked about others on behalf of who sees only his own rights.

        Raises:
            NotShownError: the principal is not the viewer.

        """
        if self.own is not None and principal != self.own.principal:
            raise NotShownError(
                f"You may ask about {self.own.principal} only: what others may do is shown to who may DESCRIBE the "
                "cluster."
            )
