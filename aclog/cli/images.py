"""Reports on an image: its counts, warnings about its ACLs, and the verdict of a verification."""

from collections.abc import Callable, Iterable, Iterator, Sized
from enum import Enum, IntEnum
from itertools import chain

from attrs import field

from aclog.authorizer.acl import (
    NO_ORIGINS,
    Origins,
    StandardAcl,
    StandardAclWithId,
    acl_text,
    is_cidr,
    is_symbolic,
    looks_like_cidr,
    places_text,
    reasons_unmatched,
)
from aclog.authorizer.codes import AclPermissionType
from aclog.authorizer.control import failure_in_kafka, refusal
from aclog.authorizer.settings import Generation
from aclog.authorizer.symbols import symbol_refusal
from aclog.metalog.errors import ConfigError, MetadataError, is_newer_kafka, noun, plural
from aclog.metalog.primitives import uuid_text
from aclog.metalog.values import define
from aclog.snapshots.deciding_kafka import DecidingKafka, deciding_kafka
from aclog.snapshots.image import Image
from aclog.terminal.columns import Column
from aclog.terminal.output import warn

# Reports on an image: a one-line summary, and a warning about hosts that not every Kafka matches.


def summary(image: Image) -> str:
    """Return the number of entries of each kind in the image."""
    kinds: dict[str, Sized] = {
        "ACL": image.acls,
        "SCRAM credential": image.scram,
        "delegation token": image.tokens,
        "feature": image.features,
        "broker": image.cluster,
        "other record": image.opaque,
    }
    return ", ".join(f"{len(entries)} {noun(len(entries), word)}" for word, entries in kinds.items())


COUNT_COLUMNS = (
    Column(key="acls", title="ACLS"),
    Column(key="scramCredentials", title="SCRAM", spare=True),
    Column(key="delegationTokens", title="TOKENS", spare=True),
    Column(key="features", spare=True),
    Column(key="brokers", spare=True),
    Column(key="otherRecords", title="OTHERS", spare=True),
)
"""Of `counts`."""


def counts(image: Image) -> dict[str, int]:
    """Return the number of entries of each kind in the image, for JSON."""
    return {
        "acls": len(image.acls),
        "scramCredentials": len(image.scram),
        "delegationTokens": len(image.tokens),
        "features": len(image.features),
        "brokers": len(image.cluster),
        "otherRecords": len(image.opaque),
    }


class RangeWatch:
    """Counts ACLs whose host is a range of addresses, or looks like one, and warns about them once, on stderr.

    Kafka up to 4.3 compares hosts as texts, so such an ACL never matches and a DENY fails open. Kafka 4.4 matches those
    whose host is a range.
    """

    def __init__(self, origins: Origins = NO_ORIGINS) -> None:
        """`origins` has the locations of the ACLs; `is_empty`: no ACL has passed so far."""
        self.is_empty = True
        self._origins = origins
        self._tallies: dict[_Warning, _Tally] = {}

    def watch(self, rules: Iterable[StandardAclWithId], kafka: DecidingKafka) -> Iterator[StandardAclWithId]:
        """Yield the same ACLs, counting those with a range; `kafka` is what decides on them."""
        rest = iter(rules)
        first = next(rest, None)
        if first is None:
            return
        self.is_empty = False
        for rule in chain((first,), rest):
            if "/" in rule.acl.host and looks_like_cidr(rule.acl.host):
                kind = _kind(rule.acl, kafka)
                if kind is not None:
                    self._tallies.setdefault(kind, _Tally(rule.acl, kafka.reason())).add(rule.acl)
            yield rule

    def watch_all(self, rules: Iterable[StandardAclWithId], kafka: DecidingKafka) -> None:
        """Count the ACLs that have a range."""
        for _ in self.watch(rules, kafka):
            pass

    def report(self) -> None:
        """Print a warning of each kind that there is."""
        for kind, tally in self._tallies.items():
            place = places_text(tally.first, self._origins)
            why = f" ({tally.reason})" if kind is _Warning.BY_GENERATION and tally.reason else ""
            have = "has" if tally.count == 1 else "have"
            number = f"{plural(tally.count, 'ACL')} ({tally.denying:,} DENY)"
            warn(f"{number} {have} {kind.value}{why}. The first: {tally.first}{place}")


class _Warning(Enum):
    """What is wrong with the host of an ACL."""

    NEVER = "a CIDR range as host, which Kafka 4.3 does not match: such a DENY has no effect"
    BY_GENERATION = (
        "a CIDR range as host, which Kafka 4.4 matches and Kafka 4.3 does not: there such a DENY has no effect"
    )
    NO_RANGE = "a host that looks like a CIDR range, but is not: it matches no client, and such a DENY has no effect"


@define(eq=False, repr=False)
class _Tally:
    first: StandardAcl
    reason: str
    """Why several generations may decide."""
    count: int = 0
    denying: int = 0

    def add(self, acl: StandardAcl) -> None:
        """Count an ACL."""
        self.count += 1
        self.denying += acl.permission_type == AclPermissionType.DENY


def _kind(acl: StandardAcl, kafka: DecidingKafka) -> _Warning | None:
    """Return what to warn of; None if all that decide match the ACL."""
    if kafka.stated is Generation.V4_3:
        return _Warning.NEVER
    if not is_cidr(acl.host):
        return _Warning.NO_RANGE
    return None if kafka.stated is Generation.V4_4 else _Warning.BY_GENERATION


# Warnings about ACLs that no request can create, and about ACLs that match no principal (docs/semantics.md).


def odd_rules(image: Image) -> Iterator[StandardAclWithId]:
    """Yield the ACLs that `RangeWatch` and `warn_of_each` look at."""
    # Logs and checkpoints have no symbols; where a name looks like one, every ACL is looked at.
    return iter(image.acls) if image.acls.symbolic() else image.acls.odd_rules(_is_odd)


def _is_odd(acl: StandardAcl) -> bool:
    return "/" in acl.host or refusal(acl) is not None or any(reasons_unmatched(acl, cidr=True))


def warn_of_each(rules: Iterable[StandardAclWithId], place: str) -> int:
    """Warn of every ACL that no request can create, or that matches no principal; return how many make Kafka throw.

    `place` names the state. Ranges are not named one by one: since Kafka 4.4 they match
    (aclog.cli.images.RangeWatch counts them).
    """
    failing = 0
    for rule in rules:
        refused = refusal(rule.acl)
        failure = None if refused is None else failure_in_kafka(rule.acl)
        failing += failure is not None
        throws = f"; Kafka 4.3.1 throws on {failure}" if failure else ""
        creation = [] if refused is None else [f"CreateAcls refuses it: {refused}{throws}"]
        for problem in (*creation, *reasons_unmatched(rule.acl, cidr=True)):
            id_ = "" if rule.id is None else f" (id {uuid_text(rule.id)})"
            warn(f"{place}: {acl_text(rule.acl)}{id_}: {problem}")
    return failing


def matches_ranges(image: Image) -> bool:
    """Return whether all nodes that decide on a state are known to read hosts as ranges, regardless of the ACLs."""
    return deciding_kafka(image, None, controllers=True).stated is Generation.V4_4


def warn_of_unmatched(acls: Iterable[StandardAcl], has_ranges: Callable[[], bool]) -> None:
    """Warn of every ACL that matches no principal, for a command that adds a few.

    `has_ranges` returns whether all that decide are known to take hosts for ranges; called if one of the ACLs has one.
    """
    acls = list(acls)
    cidr = any(is_cidr(acl.host) for acl in acls) and has_ranges()
    for acl in acls:
        for reason in reasons_unmatched(acl, cidr=cidr):
            warn(f"{acl_text(acl)}: {reason}")


@define(eq=False, repr=False)
class _Unmatched:
    """A count of ACLs that match no principal."""

    count: int = 0
    denying: int = 0
    first: str = ""

    def add(self, acl: StandardAcl, reason: str, origins: Origins) -> None:
        """Count an ACL."""
        self.count += 1
        self.denying += acl.permission_type == AclPermissionType.DENY
        if not self.first:
            from aclog.authorizer.explain import located_text  # explains, which most commands never do

            self.first = f"{located_text(acl, origins)}: {reason}"


@define(eq=False, kw_only=True, repr=False)
class WrittenRules:
    """The check of ACLs that a command writes, and a count of those that deserve a warning; owned by the command."""

    keep_odd_rules: bool
    _odd: int = field(default=0, init=False)
    _failing: int = field(default=0, init=False)
    _first_odd: str = field(default="", init=False)
    _unmatched: _Unmatched = field(factory=_Unmatched, init=False)
    _without_ranges: _Unmatched = field(factory=_Unmatched, init=False)
    """Of those that match no principal even where hosts are ranges."""

    def check(self, acl: StandardAcl) -> None:
        """Check an ACL that is to be written. Raises ConfigError: CreateAcls would refuse it, and it is not kept."""
        if is_symbolic(acl):
            raise ConfigError(f"{acl_text(acl)}: {symbol_refusal(acl)}")
        refused = None if self.keep_odd_rules else refusal(acl)
        if refused is not None:
            raise ConfigError(f"{refused} (CreateAcls refuses it; --keep-odd-rules writes it)")

    def add(self, acl: StandardAcl, origins: Origins = NO_ORIGINS) -> None:
        """Count an ACL that was checked and is written."""
        refused = refusal(acl) if self.keep_odd_rules else None
        if refused is not None:
            self._odd += 1
            self._failing += failure_in_kafka(acl) is not None
            if not self._first_odd:
                from aclog.authorizer.explain import located_text

                self._first_odd = f"{located_text(acl, origins)}: {refused}"
        for tally, cidr in ((self._unmatched, False), (self._without_ranges, True)):
            reason = next(reasons_unmatched(acl, cidr=cidr), None)
            if reason is not None:
                tally.add(acl, reason, origins)

    def report(self, image: Image | None = None) -> None:
        """Print a warning for each kind, if there is any. `image`: the state that they are written into."""
        if self._odd:
            warn(
                f"{plural(self._odd, 'ACL')} that CreateAcls refuses, on {self._failing} of which Kafka 4.3.1 throws. "
                f"The first: {self._first_odd}"
            )
        has_ranges = image is not None and matches_ranges(image)
        unmatched = self._without_ranges if has_ranges else self._unmatched
        if unmatched.count:
            match = "matches" if unmatched.count == 1 else "match"
            warn(
                f"{plural(unmatched.count, 'ACL')} ({unmatched.denying:,} DENY) probably {match} no principal. "
                f"The first: {unmatched.first}"
            )


# What a verification of a log or of checkpoints found, as an exit code.


class Verdict(IntEnum):
    """What a verification found; the values are exit codes."""

    SOUND = 0
    DAMAGED = 1
    NEWER = 2


WORDS = {
    Verdict.SOUND: "all is well",
    Verdict.DAMAGED: "damaged",
    Verdict.NEWER: "not damaged, but written by a newer Kafka than 4.4: a newer aclog is needed",
}
"""The last line of a verification."""


@define(kw_only=True)
class Findings:
    """What was found so far."""

    damaged: bool = False
    newer: bool = False

    @property
    def verdict(self) -> Verdict:
        """Damage counts more: what a newer Kafka wrote is whole."""
        return Verdict.DAMAGED if self.damaged else Verdict.NEWER if self.newer else Verdict.SOUND

    def add(self, error: MetadataError) -> None:
        """Take an error into account."""
        if is_newer_kafka(error):
            self.newer = True
        else:
            self.damaged = True


# The columns of ACLs, wherever they are listed: the keys of `acls list --format jsonl`.


ACL_COLUMNS = (
    Column(key="resourceType", title="TYPE"),
    Column(key="resourceName", title="NAME", cut=True),
    Column(key="patternType", title="PATTERN"),
    Column(key="principal", cut=True),
    Column(key="host", cut=True),
    Column(key="operation"),
    Column(key="permissionType", title="PERMISSION"),
)
"""What an ACL is."""

RULE_COLUMNS = (*ACL_COLUMNS, Column(key="id", spare=True))
"""The same, and its id."""

ORIGIN_COLUMNS = (Column(key="file", cut=True), Column(key="line"))
"""The first place where it stands."""

PLACE = Column(key="place", cut=True, spare=True)
"""All places where it stands, in a table."""
