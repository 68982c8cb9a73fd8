"""`--fix`: a change that mends findings and no decision, proved before it is written."""

from collections.abc import Sequence
from pathlib import Path

from aclog.analysis.difference import differences
from aclog.analysis.lint.neutral_fix import neutral_fix
from aclog.analysis.lint_report.lint_report import plural
from aclog.analysis.lint_report.located_finding import LocatedFinding, rule_object
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import AclPermissionType
from aclog.authorizer.rule_change import RuleChange, changed_acls
from aclog.cli.transfer.output import open_output
from aclog.metalog.errors import ConfigError
from aclog.sources.change_lines import Action
from aclog.sources.text_lines import STDIN
from aclog.terminal.json_text import json_text
from aclog.terminal.notices import note


def write_fix(path: Path, policy: Policy, findings: Sequence[LocatedFinding]) -> None:
    """Write what mends findings without changing any decision, as a change for `--change`; say what it does.

    Raises:
        ConfigError: the file exists and says something else, or the change is not neutral after all.
        OSError: it cannot be written.

    """
    changes = sorted(neutral_fix(policy, (each.finding for each in findings)), key=_safe_order)
    # Once more, as one change, and without telling the proof where to look.
    after = Policy(changed_acls(policy.acls, changes), policy.settings)
    if next(differences(policy, after), None) is not None:
        raise ConfigError(f"{path}: not written: the mends together would change a decision; please report this")
    state = _write(path, "".join(f"{_line(change)}\n" for change in changes))
    made = set(changes)
    mended = sum(bool(each.finding.fix) and made.issuperset(each.finding.fix) for each in findings)
    left = len(findings) - mended
    rest = f"; {plural(left, 'finding')} left, whose mend changes a decision or takes a person" if left else ""
    what = f"{plural(len(changes), 'change')} for {plural(mended, 'finding')}, proved to change no decision"
    note(f"{path}: {state}: {what}{rest}")


def _safe_order(change: RuleChange) -> int:
    """Return the place of a change in an order that, rule by rule, opens nothing on the way: DENY first, and last."""
    allows = change.acl.permission_type == AclPermissionType.ALLOW
    return (1 if allows else 0) if change.added else (2 if allows else 3)


def _line(change: RuleChange) -> str:
    action = Action.ADD if change.added else Action.REMOVE
    return json_text({"action": action.value, "rule": rule_object(change.acl)})


def _write(path: Path, text: str) -> str:
    if str(path) == STDIN:
        raise ConfigError("--fix -: expected a file: findings go to stdout")
    content = text.encode()
    if path.exists():
        if path.is_file() and path.read_bytes() == content:
            return "already there"
        raise ConfigError(f"{path}: exists already, and is not this change: expected a new file for --fix")
    with open_output(path, binary=False) as file:
        file.write(content)
    return "written"
