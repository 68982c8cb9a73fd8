"""`--fix`: a change that mends findings and no decision, proved before it is written."""

from collections.abc import Sequence
from pathlib import Path

from attrs import define, field

from aclog.analysis.difference import differences
from aclog.analysis.lint_report.lint_report import plural
from aclog.analysis.lint_report.located_finding import LocatedFinding, rule_object
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import AclPermissionType
from aclog.authorizer.rule_change import RuleChange, changed_acls, net_changes
from aclog.cli.transfer.output import open_output
from aclog.metalog.errors import ConfigError
from aclog.sources.change_lines import Action
from aclog.terminal.json_text import json_text
from aclog.terminal.notices import note


def write_fix(path: Path, policy: Policy, findings: Sequence[LocatedFinding]) -> None:
    """Write what mends findings without changing any decision, as a change for `--change`; say what it does.

    Raises:
        ConfigError: the file exists and says something else.
        OSError: it cannot be written.

    """
    mended = Mended(policy=policy)
    mended.mend([each for each in findings if each.finding.neutral and each.finding.fix])
    changes = sorted(net_changes(mended.changes), key=_safe_order)
    # Once more, as one change, and without telling the proof where to look.
    if next(differences(policy, _changed(policy, changes)), None) is not None:
        raise ConfigError(f"{path}: not written: the mends together would change a decision; mend one lint at a time")
    state = _write(path, "".join(f"{_line(change)}\n" for change in changes))
    left = len(findings) - mended.findings
    rest = f"; {plural(left, 'finding')} left: mending changes a decision, or only a person can" if left else ""
    what = f"{plural(len(changes), 'change')} for {plural(mended.findings, 'finding')}, proved to change no decision"
    note(f"{path}: {state}: {what}{rest}")


@define(eq=False, kw_only=True)
class Mended:
    """A policy while findings are mended in it, as long as no decision changes."""

    policy: Policy
    changes: dict[RuleChange, None] = field(factory=dict)
    """In order."""
    findings: int = 0

    def mend(self, found: Sequence[LocatedFinding]) -> None:
        """Mend what can be mended without changing a decision, until no more can: one mend may allow another."""
        left: Sequence[LocatedFinding] = ()
        while len(left) != len(found):
            left, found = found, self._try(found)

    def _try(self, found: Sequence[LocatedFinding]) -> list[LocatedFinding]:
        """Mend all of these, or if that changes a decision, what can be of each half; return what could not be.

        Two rules may stand in for each other: then only one of them can go.
        """
        if not found:
            return []
        changes = [change for each in found for change in self._open(each.finding.fix)]
        after = self._neutral(changes)
        if after is not None:
            self.policy = after
            self.changes |= dict.fromkeys(changes)
            self.findings += len(found)
            return []
        if len(found) == 1:
            return list(found)
        half = len(found) // 2
        return [*self._try(found[:half]), *self._try(found[half:])]

    def _open(self, fix: Sequence[RuleChange]) -> list[RuleChange]:
        """Return the changes of a fix that another one has not made already."""
        return [change for change in fix if change not in self.changes]

    def _neutral(self, changes: Sequence[RuleChange]) -> Policy | None:
        """Return the policy after some changes if it decides every request the same."""
        try:
            after = _changed(self.policy, changes)
        except ConfigError:  # two fixes remove, or add, the same rule
            return None
        found = differences(self.policy, after, changed=[change.acl for change in changes])
        return after if next(found, None) is None else None


def _changed(policy: Policy, changes: Sequence[RuleChange]) -> Policy:
    return Policy(changed_acls(policy.acls, changes), policy.settings)


def _safe_order(change: RuleChange) -> int:
    """Return the place of a change in an order that, rule by rule, opens nothing on the way: DENY first, and last."""
    allows = change.acl.permission_type == AclPermissionType.ALLOW
    return (1 if allows else 0) if change.added else (2 if allows else 3)


def _line(change: RuleChange) -> str:
    action = Action.ADD if change.added else Action.REMOVE
    return json_text({"action": action.value, "rule": rule_object(change.acl)})


def _write(path: Path, text: str) -> str:
    content = text.encode()
    if path.exists():
        if path.is_file() and path.read_bytes() == content:
            return "already there"
        raise ConfigError(f"{path}: exists already, and is not this change: expected a new file for --fix")
    with open_output(path, binary=False) as file:
        file.write(content)
    return "written"
