"""`--fix`: a change that mends findings and no decision, proved before it is written."""

from collections.abc import Sequence
from pathlib import Path

from aclog.analysis.difference import differences
from aclog.analysis.lint.neutral_fix import neutral_fix
from aclog.analysis.lint_report.lint_report import plural
from aclog.analysis.lint_report.located_finding import LocatedFinding, rule_object
from aclog.analysis.policy import Policy
from aclog.authorizer.rule_change import Action, RuleChange, changed_acls
from aclog.cli.change_file import safe_order, write_change_file
from aclog.metalog.errors import ConfigError
from aclog.sources.change_lines import change_line
from aclog.terminal.notices import note


def write_fix(path: Path, policy: Policy, findings: Sequence[LocatedFinding]) -> None:
    """Write what mends findings without changing any decision, as a change for `--change`; say what it does.

    Raises:
        ConfigError: the file exists and says something else, or the change is not neutral after all.
        OSError: it cannot be written.

    """
    changes = sorted(
        neutral_fix(policy, (each.finding for each in findings)),
        key=lambda change: safe_order(change.acl, added=change.added),
    )
    # Once more, as one change, and without telling the proof where to look.
    after = Policy(changed_acls(policy.acls, changes), policy.settings)
    if next(differences(policy, after), None) is not None:
        raise ConfigError(f"{path}: not written: the mends together would change a decision; please report this")
    state = write_change_file(path, map(_line, changes), "--fix")
    made = set(changes)
    mended = sum(bool(each.finding.fix) and made.issuperset(each.finding.fix) for each in findings)
    left = len(findings) - mended
    rest = f"; {plural(left, 'finding')} left, whose mend changes a decision or takes a person" if left else ""
    what = f"{plural(len(changes), 'change')} for {plural(mended, 'finding')}, proved to change no decision"
    note(f"{path}: {state}: {what}{rest}")


def _line(change: RuleChange) -> str:
    return change_line(Action.ADD if change.added else Action.REMOVE, rule_object(change.acl))
