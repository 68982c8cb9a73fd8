"""What an explanation depends on besides the ACLs and the request."""

from attrs import field, frozen

from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.authorizer.premises import ALL_KNOWN, Premises

MOST_RULES = 40
"""How many ACLs an explanation lists by default; all are counted."""


@frozen(kw_only=True)
class ExplainOptions:
    """The settings of an explanation; the defaults are those of a question about the newest state of some cluster."""

    allow_everyone: bool = False
    """The setting allow.everyone.if.no.acl.found, with which the decision was made."""
    host_given: bool = True
    """Whether the request named a host; if not, an advised ACL is for any host."""
    as_of: str | None = None
    """The moment of a state of the past; None for the newest."""
    place: ChangePlace = field(factory=ChangePlace)
    """Where the advised commands make their changes."""
    origins: Origins = NO_ORIGINS
    """Where the ACLs stand."""
    premises: Premises = ALL_KNOWN
    """What is unknown of the settings with which the decision was made."""
    limit: int = MOST_RULES
    """How many ACLs are listed, and how many removals are advised."""
