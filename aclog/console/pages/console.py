"""What pages are made from."""

from attrs import field, frozen

from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.console.draft.drafts import Drafts
from aclog.console.draft.editing import Editing
from aclog.console.findings.item import Kind
from aclog.console.findings.looked import Uses
from aclog.console.findings.lookout import Lookout
from aclog.console.login.visibility import Own
from aclog.console.pages.command_line import CommandLine
from aclog.console.pages.history import History
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
    history: History | None = None
    """None if the source is a single state."""
    lookout: Lookout | None = None
    """What looks for findings; None: nobody does."""
    drafts: Drafts = field(factory=Drafts)
    editing: Editing | None = None
    """What makes and applies plans; None: nothing is written here, or not by who looks."""
    viewer: str | None = None
    """The principal who looks, if there is a login."""
    own: Own | None = None
    """The viewer, if he sees his own rights only; None: all is shown."""

    @property
    def version(self) -> str:
        """What changes when the rules do, or what was found out about them, or about their past."""
        version = self.states.version
        if self.history is not None:
            version = f"{version}-{self.history.edition}"
        return version if self.lookout is None else f"{version}-{self.lookout.version}"

    @property
    def uses(self) -> Uses | None:
        """What accesses say of the newest rules; None while nobody knows: then they are neither used nor unused."""
        kept = None if self.lookout is None else self.lookout.kept(Kind.UNUSED)
        return None if kept is None or kept.looked is None else kept.looked.uses

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
