"""A place as it was found when a plan was made for it."""

import secrets
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from pathlib import Path

from attrs import evolve, frozen

from aclog.authorizer.cluster_settings import SETTLED
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.generation import Generation
from aclog.authorizer.loader import AUTHORIZER_CLASS_NAME_CONFIG
from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.authorizer.premises import ALL_KNOWN, Premise, Premises
from aclog.authorizer.rule_content import ranges_among
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.metalog.uuids import random_uuid, uuid_text
from aclog.places.applied_journal import check_applied
from aclog.places.choice import open_place
from aclog.planning.batching import Batching
from aclog.planning.delete_limit import DeleteLimit
from aclog.planning.errors import JournalError, RefusedError
from aclog.planning.journal.journal import Journal
from aclog.planning.journal.journal_file import read_journal
from aclog.planning.journal.settling import settle, unsure_texts
from aclog.planning.making import Circumstances
from aclog.planning.place import Place, PlaceState
from aclog.planning.plan import JournalMark, Origin, PlaceAddress, PlaceKind, PlanPlace
from aclog.planning.planner import Held, PlannedChange
from aclog.planning.step import Step
from aclog.snapshots.deciding_kafka import DecidingKafka

COUNTS_AS_OPEN = Premise(
    name=ALLOW_EVERYONE_CONFIG,
    problem="neither a flag nor the place says whether names without ACLs are open: they count as open",
    unless="names without ACLs are not open",
    settled_by="--allow-everyone-if-no-acl-found or --no-allow-everyone-if-no-acl-found",
    allows=False,
    denies=True,
)
"""Where that is unknown."""


@frozen(kw_only=True)
class ToldSettings:
    """What somebody says of what decides in a place; None where he does not."""

    super_users: frozenset[str] | None = None
    allow_everyone: bool | None = None
    documented: bool = False
    generation: Generation | None = None
    """Of the Kafka that decides there."""

    @property
    def given(self) -> frozenset[str]:
        """The properties of brokers whose values it has."""
        values = {SUPER_USERS_CONFIG: self.super_users, ALLOW_EVERYONE_CONFIG: self.allow_everyone}
        return frozenset(name for name, value in values.items() if value is not None)


_OLD_KAFKA = DecidingKafka(generations=(Generation.V4_3,))
"""What stands for any, where all decide alike."""


@frozen(eq=False, kw_only=True)
class FoundPlace:
    """What a place held, what decides there, and who owns what."""

    name: str
    address: PlaceAddress
    identity: str | None
    fingerprint: str | None
    """Of a place that has no identity, what tells it from others."""
    batching: Batching
    state: PlaceState
    settings: Settings
    """Where several generations of Kafka may decide, those of the oldest one."""
    settings_known: bool
    settings_by_place: bool
    """As Plan has it."""
    kafka: DecidingKafka = _OLD_KAFKA
    """What may decide there."""
    kafka_given: bool = True
    """Whether who makes a plan named it, or all that may decide there decide alike."""
    premises: Premises = ALL_KNOWN
    """What decides there and is unknown; super users that are count as none."""
    _check: Callable[[Sequence[Step]], None]
    journal: Journal | None
    """As its file has it."""
    settled: Journal | None
    """The same with every apply ended, as aclog.planning.journal.settling has it."""
    owned_by_others: AbstractSet[bytes]
    others: tuple[Journal, ...] = ()
    """The journals of other sources, as their files have them."""

    @property
    def held(self) -> Held:
        """What is there, and who owns it."""
        owned = frozenset[bytes]() if self.settled is None else self.settled.owned
        return Held(there=self.state.contents, owned=owned, others=self.owned_by_others)

    def check_plan(
        self, change: PlannedChange, steps: Sequence[Step], limit: DeleteLimit, *, origins: Origins = NO_ORIGINS
    ) -> None:
        """Check a change, and that the place can hold what its steps add; `origins` as for PlannedChange.check.

        Raises:
            RefusedError: it cannot, or as PlannedChange.check.

        """
        change.check(limit, self.kafka.generations, origins=origins)
        try:
            self._check(steps)
        except ConfigError as error:
            raise RefusedError(f"{self.name}: {error}") from error

    def circumstances(self, origin: Origin) -> Circumstances:
        """Return what a plan says of the place."""
        return Circumstances(
            place=PlanPlace(
                address=self.address, identity=self.identity, batching=self.batching, fingerprint=self.fingerprint
            ),
            state=self.state,
            settings=self.settings,
            settings_known=self.settings_known,
            settings_by_place=self.settings_by_place,
            kafka=None if self.kafka_given else self.kafka,
            origin=origin,
            journal=None if self.journal is None else _mark(self.journal),
            others=tuple(map(_mark, self.others)),
        )


def find_place(
    address: PlaceAddress,
    told: ToldSettings | None,
    journal: Path | None,
    notify: Callable[[str], None],
    others: Sequence[Path] = (),
    *,
    hosts: Iterable[str] = (),
) -> FoundPlace:
    """Read a place, and the journals of it; what is unknown of what decides there is noted.

    `told`: None if nothing is decided, so that it does not matter what does. `hosts` are those that are ranges of rules
    that may be added.

    Raises:
        RefusedError: it answers that it has nothing, though the journal owns something in it.
        JournalError: a journal is damaged, or of another place.
        MetadataError: the place cannot be read.

    """
    own = None if journal is None else read_own_journal(journal, notify)
    foreign = [other_journal(path, own, notify) for path in others]
    with open_place(address, notify, write=False) as place:
        identity, state, by_place = place.identity(), place.read(), place.settings()
        if own is not None and not state.exists:
            _check_beside(own, Path(address.value))
        for each in (own, *foreign):
            if each is not None:
                check_journal(each, address, identity, place.name)
        settled = None if own is None else settle(own, state.contents, place.made)
        if own is not None and settled is not None:
            settled.journal.check_rules_there(state.contents, place.name)
            for text in unsure_texts(own, settled.unsure):
                notify(text)
        owned_by_others = (settle(each, state.contents, place.made).journal.owned for each in foreign)
        settings, known = _settings(told or ToldSettings(), by_place, address.kind)
        ranges = chain(hosts, ranges_among(state.contents), _ranges_of(own))
        kafka = _OLD_KAFKA if told is None else _kafka(told, place, ranges)
        settings = evolve(settings, cidr=kafka.generations[0].has_ranges)
        premises = _premises(place, told, known=known)
        for premise in premises.unknown:
            if premise is not COUNTS_AS_OPEN:  # which plans say
                notify(premise.note())
        return FoundPlace(
            name=place.name,
            address=address,
            identity=identity,
            fingerprint=place.fingerprint(state.end_offset or 0) if identity is None else None,
            batching=place.batching,
            state=state,
            settings=settings,
            settings_known=known,
            settings_by_place=by_place is not None and (told is None or told.allow_everyone is None),
            kafka=kafka,
            kafka_given=kafka is _OLD_KAFKA or (told is not None and told.generation is not None),
            premises=premises,
            check=place.check,
            journal=own,
            settled=None if settled is None else settled.journal,
            owned_by_others=frozenset[bytes]().union(*owned_by_others),
            others=tuple(foreign),
        )


def _kafka(told: ToldSettings, place: Place, ranges: Iterable[str]) -> DecidingKafka:
    """Return what may decide in a place; it is only asked if a host is a range, as else all decide alike.

    `ranges` are only read where no generation is named: to look for them takes a pass over all ACLs.
    """
    if told.generation is not None:
        return DecidingKafka(generations=(told.generation,), stated=told.generation)
    hosts = set(ranges)
    return place.kafka(hosts) if hosts else _OLD_KAFKA


def _ranges_of(journal: Journal | None) -> Iterable[str]:
    """Return the hosts that are ranges of rules that a journal knows: what is undone may be there again."""
    if journal is None:
        return ()
    return ranges_among(step.content for entry in journal.entries for step in entry.steps)


def _premises(place: Place, told: ToldSettings | None, *, known: bool) -> Premises:
    """Return what is unknown of a place; `known`: whether allow.everyone.if.no.acl.found is known."""
    if told is None:
        return place.premises(SETTLED).without({AUTHORIZER_CLASS_NAME_CONFIG})
    found = place.premises(told.given).without({ALLOW_EVERYONE_CONFIG})
    return found if known else found.also(Premises((COUNTS_AS_OPEN,)))


def _mark(journal: Journal) -> JournalMark:
    return JournalMark(
        path=str(Path(journal.path).absolute()),
        id=journal.id,
        entries=len(journal.entries),
        checksum=journal.checksum,
    )


def check_journal(journal: Journal, address: PlaceAddress, identity: str | None, name: str) -> None:
    """Check that a journal is of a place, and neither of them an older copy. Raises JournalError: it is not."""
    journal.check_place(identity, name)
    if address.kind is PlaceKind.LOG:
        check_applied(Path(address.value), identity, journal)


def read_own_journal(path: Path, notify: Callable[[str], None]) -> Journal:
    """Return the journal of a source. Raises as read_journal."""
    return read_journal(path, _new_id, notify)


def other_journal(path: Path, own: Journal | None, notify: Callable[[str], None]) -> Journal:
    """Return the journal of another source. Raises JournalError: there is none, or it is this source's own."""
    found = read_journal(path, _new_id, notify)
    if found.is_new:
        raise JournalError(f"--other-journal {path}: no such journal: what its source owns would be deleted")
    if own is not None and found.id == own.id:
        raise JournalError(f"--other-journal {path}: the same as --journal {own.path}: expected another source's")
    return found


def _check_beside(journal: Journal, directory: Path) -> None:
    """Raise JournalError if the journal would be in the directory of a log that is yet to be made."""
    if directory.resolve() in Path(journal.path).resolve().parents:
        raise JournalError(
            f"--journal {journal.path}: in the directory of the log, which is made by the first apply: expected "
            "another directory"
        )


def _settings(told: ToldSettings, by_place: Settings | None, kind: PlaceKind) -> tuple[Settings, bool]:
    """Return what decides: what is said, then what the place tells; and whether allow.everyone is known at all.

    What is not known counts as open: then a plan that seems safe is safe.
    """
    told_users = by_place.super_users if by_place is not None else frozenset[str]()
    given = Settings(
        super_users=told_users if told.super_users is None else told.super_users,
        documented=told.documented or kind is PlaceKind.ZOOKEEPER,  # AclAuthorizer: `*` covers names that begin so
    )
    if told.allow_everyone is not None:
        return evolve(given, allow_everyone=told.allow_everyone), True
    if by_place is not None:
        return evolve(given, allow_everyone=by_place.allow_everyone), True
    return evolve(given, allow_everyone=True), False


def _new_id() -> str:
    return uuid_text(random_uuid(secrets.token_bytes))
