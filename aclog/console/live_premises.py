"""What is unknown of the settings that decide, and what the first state lacks: read once, with that state."""

from collections.abc import Callable

from attrs import define, field

from aclog.authorizer.premises import ALL_KNOWN, Premises


@define(eq=False, kw_only=True)
class LivePremises:
    """Read once, by the thread that reads the states; any other may look at what it has read.

    Gaps of a log (aclog.sources.gaps) are those at the start, too: one that opens or closes later is not seen.
    """

    read: Callable[[], Premises]
    """Raises MetadataError: no node of the cluster has an authorizer."""
    tell: Callable[[str], None]
    """Called with each premise that is unknown."""
    _read: Premises | None = field(default=None, init=False)

    @property
    def unknown(self) -> Premises:
        """What is unknown; nothing before the first state."""
        return self._read or ALL_KNOWN

    def look(self) -> None:
        """Read it, unless it has been read. Raises as `read`: there is nothing to decide by then."""
        if self._read is None:
            self._read = self.read()
            for premise in self._read.unknown:
                self.tell(premise.note())


def none_unknown() -> LivePremises:
    """Return those of a source that is no running cluster."""
    return LivePremises(read=lambda: ALL_KNOWN, tell=lambda _: None)
