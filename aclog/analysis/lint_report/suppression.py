"""Suppressions: findings that somebody has looked at, and accepts for a reason, perhaps until a day."""

from collections.abc import Iterable, Mapping
from datetime import date
from fnmatch import fnmatchcase

from attrs import field, frozen

RULE_FIELDS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
"""The keys of a rule by which a suppression may choose, as `acls list --format jsonl` names them."""


@frozen(kw_only=True)
class Suppression:
    """Which findings are accepted, why, and until when."""

    lints: frozenset[str]
    """Ids such as `08`."""
    fields: Mapping[str, str] = field(factory=dict)
    """Values that one of a finding's rules must have, by RULE_FIELDS: exactly these, a `*` means itself."""
    file: str | None = None
    """A glob for the file that states such a rule; its `*` crosses `/`."""
    lines: tuple[str, int, int] | None = None
    """The file, as origins show it, and the first and the last line on which such a rule may stand: of a comment."""
    reason: str
    expires: date | None = None
    """The first day (UTC) on which it no longer holds."""
    where: str
    """File and line that state it."""

    def lints_text(self) -> str:
        """Return the ids: `08, 11`."""
        return ", ".join(sorted(self.lints))

    def has_expired(self, today: date) -> bool:
        """Return whether it no longer suppresses anything."""
        return self.expires is not None and self.expires <= today

    def covers(self, lint: str, rules: Iterable["PlacedRule"]) -> bool:
        """Return whether it is about a finding: its lint, and its rules."""
        return lint in self.lints and any(self._covers_rule(rule) for rule in rules)

    def _covers_rule(self, rule: "PlacedRule") -> bool:
        if any(rule.fields.get(key) != value for key, value in self.fields.items()):
            return False
        if self.lines is not None and not any(self._among(place, self.lines) for place in rule.lines):
            return False
        return self.file is None or any(fnmatchcase(each, self.file) for each in rule.files)

    @staticmethod
    def _among(place: tuple[str, int], lines: tuple[str, int, int]) -> bool:
        file, first, last = lines
        return place[0] == file and first <= place[1] <= last


@frozen(kw_only=True)
class PlacedRule:
    """A rule as a suppression sees it."""

    fields: Mapping[str, object]
    """By RULE_FIELDS."""
    files: tuple[str, ...] = ()
    """Each name by which a glob may mean a file that states it."""
    lines: tuple[tuple[str, int], ...] = ()
    """The files as they are shown, and the lines in them."""
