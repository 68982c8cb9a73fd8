"""What `aclog denied` prints, and the change that it writes."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from attrs import evolve

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.rule_change import Action
from aclog.authorizer.settings import Settings
from aclog.cli.access_log import AccessLog, Judging, warn_of_rejects, warn_of_unread
from aclog.cli.change_file import write_change_file
from aclog.cli.denied.flags import DeniedFlags
from aclog.cli.denied.rows import DENIED_COLUMNS, denied_row, missing_row
from aclog.cli.denied.text_report import text_lines
from aclog.cli.flags.accesses import AccessesFlags
from aclog.cli.flags.output import Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.premises import read_premises
from aclog.metalog.errors import ConfigError
from aclog.metalog.printable import printable
from aclog.sources.change_lines import change_line
from aclog.terminal.notices import note, warn
from aclog.terminal.output import say
from aclog.usage.denied.attempts import Attempt, attempts_of
from aclog.usage.denied.refusals import Refusals, refusals
from aclog.usage.unread import UnreadAccesses

NONE, FOUND = 0, 1
"""Exit codes."""
_NO_ACCESS: Final = "--accesses: no line is an access: expected one at least"


def print_denied(
    source: SourceFlags,
    accesses: AccessesFlags,
    settings: Settings,
    flags: DeniedFlags,
    output: Output,
    *,
    given: AbstractSet[str] = frozenset(),
) -> int:
    """Print who is refused what, and return the exit code.

    `given`: the properties of brokers whose values `settings` has. What is unknown and could refuse more is said.

    Raises:
        ConfigError: no line of the log is an access; `--out` names a file that says something else.
        MetadataError, OSError: the log or the source cannot be read.

    """
    log = AccessLog.of(accesses)
    chosen = source.choose()
    image = chosen.image()
    judging = Judging.of_state(image, settings)
    rules, settings = judging.rules, judging.settings
    unknown = read_premises(chosen, given).turning(allowed=True)
    counted = log.count(judging.how(None, timeless=True))
    warn_of_rejects(counted.rejects)
    if not len(counted.accesses):
        raise ConfigError(_NO_ACCESS)
    unread = counted.unread.but_of(settings.super_users).may_be_refusals()
    found = _of_principals(refusals(counted.accesses, rules, settings), flags.principal)
    attempts = attempts_of(found.found, any_host=flags.any_host)
    if flags.out is not None:
        _write_change(flags.out, attempts)
    if output.is_rows:
        output.print_rows(DENIED_COLUMNS, (denied_row(attempt, rules) for attempt in attempts))
    else:
        for line in text_lines(found, attempts, rules, unknown):
            say(printable(line))
    if found.undecided:
        warn(f"{found.undecided:,} accesses cannot be decided, such as those whose host is no address")
    unread = UnreadAccesses.sum_of((unread, found.unread))
    if flags.principal:
        unread = unread.of_principals(flags.principal)
    warn_of_unread(unread, "more may be refused than is listed")
    return FOUND if attempts or unread or unknown else NONE


def _of_principals(found: Refusals, principals: Sequence[str]) -> Refusals:
    if not principals:
        return found
    chosen = tuple(each for each in found.found if each.access.principal in principals)
    return evolve(found, found=chosen, refused=sum(each.count for each in chosen))


def _write_change(path: Path, attempts: Sequence[Attempt]) -> None:
    rules = sorted({rule for attempt in attempts for rule in attempt.missing}, key=_order)
    lines = (change_line(Action.ADD, missing_row(rule)) for rule in rules)
    state = write_change_file(path, lines, "--out")
    note(f"{path}: {state}: {len(rules):,} additions, for --change")


def _order(rule: StandardAcl) -> tuple[str, ...]:
    return tuple(map(str, missing_row(rule).values()))
