"""When ACLs were last used, as accesses tell it."""

from collections.abc import Iterator, Mapping

from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.terminal.timestamps import time_text
from aclog.usage.index.last_use import Use


@frozen(kw_only=True)
class RuleUse:
    """The last accesses that an ACL was about, and that would have been decided otherwise without it."""

    matched: Use | None = None
    needed: Use | None = None
    since: int | None = None
    """Since when the ACL is known to be in force, in us since 1970; None: it counts as in force all the time."""
    unread: int | None = None
    """How many accesses that may have needed it could not be read or decided; 0: an unknown number; None: there are
    none."""


@frozen(eq=False, kw_only=True)
class RuleUses:
    """The last uses of some ACLs."""

    source: str
    """Where the accesses are, for people."""
    first: int
    last: int
    """The times of the first and the last access, in us since 1970."""
    of_rules: Mapping[StandardAcl, RuleUse]
    """Without the ACLs that the accesses tell nothing of: an index that has not seen them in force."""

    def text(self, acl: StandardAcl) -> str:
        """Return when an ACL was last used."""
        found = self.of_rules.get(acl)
        if found is None:
            return "last use unknown: the index has not seen it in force"
        since = found.since if found.since is not None and found.since > self.first else None
        if since is not None and since > self.last:
            return f"last use unknown: it is known since {_time(since)}, after the last access"
        return ", ".join(_texts(found, "" if since is None else f" since {_time(since)}"))

    def span(self) -> str:
        """Return which accesses tell it."""
        return f"accesses of {self.source}: {_time(self.first)} to {_time(self.last)}"


def _texts(found: RuleUse, since: str) -> Iterator[str]:
    if found.needed is None and found.unread is not None:
        count = f"{found.unread:,} accesses" if found.unread else "accesses"
        yield f"last use unknown: {count} that may need it could not be read or decided"
        return
    if found.matched is None and found.needed is None:
        yield f"never used{since}: no access was about what it covers"
        return
    if found.needed is None:
        yield f"never needed{since}: each access was decided as without it"
    else:
        yield f"last needed {_use(found.needed)}"
    if found.matched is not None and found.matched != found.needed:
        yield f"last matched {_use(found.matched)}"


def _use(use: Use) -> str:
    return f"{_time(use.time)} by {use.principal} from {use.host}"


def _time(micros: int) -> str:
    return time_text(micros // 1000)
