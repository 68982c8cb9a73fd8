"""Finds what `aclog drift` finds, in the states that the console shows."""

from collections.abc import Sequence
from pathlib import Path

from attrs import define, field

from aclog.authorizer.rule_content import contents_of
from aclog.cli.console.finders.files import signature_of
from aclog.cli.flags.plan import WantFlags
from aclog.cli.planning.wanted import read_wanted_rules
from aclog.console.findings.drift_items import drift_looked, drifted_then
from aclog.console.findings.looked import Looked, Subject
from aclog.metalog.clock import elapsed_seconds
from aclog.metalog.errors import MetadataError
from aclog.places.choice import open_place
from aclog.places.found_place import check_journal, other_journal, read_own_journal
from aclog.planning.drift import drift_of
from aclog.planning.journal.settling import settle
from aclog.planning.plan import PlaceAddress
from aclog.planning.planner import Held
from aclog.terminal.notices import note

_EVERY_S, _REST = 5.0, 20.0
"""Between two readings of what is wanted; a long one is followed by so many times its time."""


@define(eq=False, kw_only=True)
class DriftFinder:
    """Compares states of a place with what a source wants there, and with what its journal owns."""

    address: PlaceAddress
    wanted: WantFlags
    journal: Path
    others: Sequence[Path] = ()
    _rules: frozenset[bytes] | str = field(default=frozenset(), init=False)
    """What was wanted when it was read last; or why it could not be."""
    _next: float = field(default=0.0, init=False)
    """When it is read again."""

    def look(self, subject: Subject) -> Looked:
        """Return what drifts in a state. Raises MetadataError, OSError: nobody can tell."""
        rules, origins = read_wanted_rules(self.wanted)
        own = read_own_journal(self.journal, note)
        foreign = [other_journal(path, own, note) for path in self.others]
        with open_place(self.address, lambda _note: None, write=False) as place:
            identity, name = place.identity(), place.name
            there = frozenset(contents_of(subject.image.acls))
            own, *foreign = (settle(each, there, place.made).journal for each in (own, *foreign))
        for each in (own, *foreign):
            check_journal(each, self.address, identity, name)
        own.check_rules_there(there, name)
        others = frozenset[bytes]().union(*(each.owned for each in foreign))
        held = Held(there=there, owned=own.owned, others=others)
        return drift_looked(drift_of(held, rules), len(there - rules - held.owned), origins)

    def had(self, then: Subject, found: Looked) -> frozenset[str]:
        """Return the keys of what drifted in an earlier state, too, by what is wanted now."""
        return drifted_then(then.image.acls, found)

    def signature(self) -> object:
        """Return what changes with the wanted rules and the journals. Raises OSError: a journal is gone."""
        journals = [path for path in (self.journal, *self.others) if path.exists()]
        return self._wanted_now(), signature_of(map(str, journals))

    def _wanted_now(self) -> frozenset[bytes] | str:
        """Return what is wanted, read now and then: files lead to others, so that nothing less tells of a change."""
        began = elapsed_seconds()
        if began >= self._next:
            try:
                self._rules, _ = read_wanted_rules(self.wanted, lambda _note: None)
            except (MetadataError, OSError) as error:
                self._rules = str(error)
            ended = elapsed_seconds()
            self._next = ended + max(_EVERY_S, _REST * (ended - began))
        return self._rules
