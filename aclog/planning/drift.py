"""How a place differs from what a source of rules wants, and from what its journal says."""

from enum import StrEnum

from attrs import frozen

from aclog.planning.planner import Held


class DriftKind(StrEnum):
    """What is wrong with a rule."""

    MISSING = "MISSING"
    """Wanted, and not there."""
    LEFTOVER = "LEFTOVER"
    """Owned, no longer wanted, and still there."""


@frozen(kw_only=True, order=True)
class Drift:
    """One rule that is not as it should be; `content` as aclog.authorizer.rule_content has it."""

    kind: DriftKind
    content: bytes
    owned: bool
    """Whether the journal owns it: if it is missing, somebody else deleted it, else it was never applied."""


def drift_of(held: Held, wanted: frozenset[bytes]) -> list[Drift]:
    """Return every rule that is not as it should be, sorted; what is neither wanted nor owned is nobody's drift."""
    missing, leftover = wanted - held.there, (held.owned - wanted - held.others) & held.there
    return sorted(
        Drift(kind=kind, content=content, owned=content in held.owned)
        for kind, found in ((DriftKind.MISSING, missing), (DriftKind.LEFTOVER, leftover))
        for content in found
    )
