"""The report of `aclog suggest`: suggested ACLs, proved, printed or written."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import groupby
from pathlib import Path
from typing import Final

from attrs import frozen

from aclog.authorizer.acl import AclPermissionType, PatternType, StandardAclWithId, acl_text
from aclog.authorizer.settings import Generation, Settings
from aclog.cli.acl_columns import ACL_COLUMNS
from aclog.cli.flags.commands import SuggestFlags
from aclog.cli.flags.common import AccessesFlags, Output, WindowFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.transfer.output import write_change_file
from aclog.cli.usage_report import time_text
from aclog.metalog.errors import printable
from aclog.ops.policies import existing_topics, read_premises, refuse_unless_known
from aclog.ops.usage import AccessLog, Judging, warn_of_rejects
from aclog.snapshots.image import Image
from aclog.terminal.columns import Column, Row, json_text
from aclog.terminal.output import note, say, warn
from aclog.terminal.progress import progress
from aclog.usage.judging import CountedLog, Each
from aclog.usage.suggestion import NOT_JUDGED, Needs, Question, SuggestedRule, Suggestion, prove
from aclog.usage.suggestion import suggest as suggest_acls
from aclog.usage.window import UnreadAccesses, Window, of_micros, unread_text

# A row for each suggested rule: the rule, and its evidence.


def _texts(values: list[str]) -> str:
    return ", ".join(values)


SUGGESTED_COLUMNS: Final = (
    *ACL_COLUMNS,
    Column(key="accesses"),
    Column(key="names", spare=True),
    Column(key="firstAt", title="FIRST", spare=True),
    Column(key="lastAt", title="LAST"),
    Column(key="intents", spare=True, text=_texts),
    Column(key="replaces", spare=True, text=lambda rules: str(len(rules))),
    Column(key="why", flows=True),
)


def suggested_rows(suggestion: Suggestion) -> Iterator[Row]:
    """Return the rows."""
    return map(_row, suggestion.rules)


def _row(rule: SuggestedRule) -> Row:
    evidence = rule.evidence
    plain = StandardAclWithId(id=None, acl=rule.acl).to_dict()
    return {
        **{column.key: plain[column.key] for column in ACL_COLUMNS},
        "accesses": evidence.accesses,
        "names": rule.names,
        "firstAt": shown_time(evidence.first),
        "lastAt": shown_time(evidence.last),
        "intents": [intent.value for intent in rule.intents],
        "replaces": [_plain(StandardAclWithId(id=None, acl=acl)) for acl in rule.replaces],
        "why": rule.why or None,
    }


def _plain(rule: StandardAclWithId) -> dict[str, str | None]:
    row = rule.to_dict()
    return {column.key: row[column.key] for column in ACL_COLUMNS}


def shown_time(micros: int | None) -> str | None:
    """Return a time in us since 1970 as text."""
    return None if micros is None else time_text(of_micros(micros))


# The suggestion for people: by principal, the first rules, and how many more there are.


_MAX_LINES: Final = 40
"""Rules; and refused prefixes."""


def text_lines(suggestion: Suggestion, *, now: int, explain: bool) -> Iterator[str]:
    """Yield the lines; `now` is the number of present rules."""
    rules, staying = suggestion.rules, len(suggestion.staying)
    allows = [rule for rule in rules if rule.evidence.accesses]
    prefixes = sum(rule.acl.pattern_type == PatternType.PREFIXED for rule in allows)
    stays = f", and {staying:,} unchanged rules of other principals" if staying else ""
    yield f"{len(rules) + staying:,} rules instead of {now:,}: {len(rules):,} suggested{stays}"
    unjudged = sum(rule.why.startswith(NOT_JUDGED) for rule in rules)
    others = f"; {unjudged:,} could not be judged" if unjudged else ""
    yield (
        f"{len(allows):,} suggested rules allow logged accesses, {prefixes:,} of them PREFIXED; "
        f"{len(rules) - len(allows) - unjudged:,} are kept because they deny, or as the last ACL of a resource{others}"
    )
    for principal, group in groupby(rules[:_MAX_LINES], key=lambda rule: rule.acl.principal):
        yield ""
        yield f"{principal}:"
        for rule in group:
            yield from _lines(rule, explain=explain)
    if len(rules) > _MAX_LINES:
        yield ""
        yield f"... and {len(rules) - _MAX_LINES:,} more rules (--format table or jsonl, or --out FILE)"
    if explain and suggestion.refused:
        yield ""
        yield "not folded:"
        for text in suggestion.refused[:_MAX_LINES]:
            yield f"  {text}"
        if len(suggestion.refused) > _MAX_LINES:
            yield f"  ... and {len(suggestion.refused) - _MAX_LINES:,} more"


def _lines(rule: SuggestedRule, *, explain: bool) -> Iterator[str]:
    yield f"  {acl_text(rule.acl)}"
    evidence = rule.evidence
    if evidence.accesses:
        intents = f"{', '.join(rule.intents)}: " if rule.intents else ""
        names = f" on {rule.names:,} names" if rule.names > 1 else ""
        when = f", {shown_time(evidence.first)} to {shown_time(evidence.last)}" if evidence.first is not None else ""
        yield f"    {intents}{evidence.accesses:,} accesses{names}{when}; {_replaced(rule)}"
    if rule.why and (explain or rule.acl.permission_type != AclPermissionType.ALLOW or not evidence.accesses):
        yield f"    {rule.why}"


def _replaced(rule: SuggestedRule) -> str:
    if rule.replaces == (rule.acl,):
        return "the rule exists already"
    first, *others = (acl_text(acl) for acl in rule.replaces)
    return f"currently granted by {first}" + (f" and {len(others):,} more" if others else "")


# Suggests rules, proves them, and prints or writes them.


@frozen(eq=False, kw_only=True)
class SuggestReport:
    """A suggestion, and what it was made of."""

    suggestion: Suggestion
    now: int
    """The number of present rules."""
    needs: Needs
    replayed: int
    """Accesses that were decided again, as often as they were made."""
    window: Window
    unread: UnreadAccesses
    """Of the window: not in the proof."""


def print_suggestion(
    source: SourceFlags,
    log: tuple[AccessesFlags, WindowFlags],
    settings: Settings,
    flags: SuggestFlags,
    output: Output,
    each: Each | None = None,
    *,
    configs: AbstractSet[str] = frozenset(),
) -> None:
    """Print the least rules that keep what was used, once they are proved.

    `each` reads and counts the log, by default processes of this machine. `configs`: the properties of brokers whose
    values `settings` has.

    Raises:
        SuggestionError: they are not sound; nothing is printed.
        ConfigError: flags that are not valid, a malformed file, or what decides is unknown, so that nothing is proved.
        MetadataError, OSError: the log or the source cannot be read.

    """
    least, until, topics = flags.least(), log[1].end(), source.topics()
    access_log = AccessLog.of(log[0], each)
    choice = source.choose(topics=topics)
    image = choice.image()
    refuse_unless_known(read_premises(choice, configs), "no rule can be proved to be enough")
    judging = Judging.of_state(image, settings)
    kafka = judging.rules.intervals.kafka
    settings = judging.settings if kafka is None else judging.settings.of_generation(Generation.V4_4)
    acls = image.acls.with_options(documented=settings.documented, cidr=settings.cidr)
    counted, judged = access_log.count_window(judging, log[1].days, until)
    exist = existing_topics(topics, (image,), (choice,))
    principals = frozenset(flags.principal)
    _check_principals(principals, image)
    with progress("suggesting"):
        needs = Needs.of(counted.accesses, judging.rules, judging.settings)
        unread = UnreadAccesses.sum_of((judged.unread(counted.unread), needs.undecided))
        question = Question(
            settings=settings,
            fold=least,
            principals=principals,
            topics=frozenset() if exist is None else frozenset(exist),
            unread=unread,
            ranges_allow=kafka is None,
        )
        suggestion = suggest_acls(needs, [rule.acl for rule in acls], question)
    with progress("proving"):
        deciding = (settings,) if kafka is None else tuple(map(settings.of_generation, Generation))
        proof, *_ = [prove(image.acls, suggestion.acls, counted.accesses, one) for one in deciding]
    report = SuggestReport(
        suggestion=suggestion, now=len(acls), needs=needs, replayed=proof.replayed, window=judged.window, unread=unread
    )
    if flags.out is not None:
        _write(flags.out, suggestion)
    _print(report, flags, output)
    _warn(counted)


def _check_principals(principals: frozenset[str], image: Image) -> None:
    for principal in sorted(principals - image.acls.principals()):
        warn(f"--principal {principal}: no rule is for it")


def _print(report: SuggestReport, flags: SuggestFlags, output: Output) -> None:
    if output.is_rows:
        output.print_rows(SUGGESTED_COLUMNS, suggested_rows(report.suggestion))
    else:
        for line in text_lines(report.suggestion, now=report.now, explain=flags.explain):
            say(printable(line))
    denied = report.needs.denied
    if report.unread:
        decided = report.replayed - report.needs.undecided.total
        warn(
            f"{unread_text(report.unread)}: the rules that they may need stay, not judged; of the other {decided:,} "
            f"accesses {decided - denied:,} stay allowed and {denied:,} stay denied; no request that is denied now "
            "becomes allowed"
        )
        return
    note(
        f"proved: of all {report.replayed:,} accesses {report.replayed - denied:,} stay allowed and {denied:,} stay "
        "denied; no request that is denied now becomes allowed"
    )


def _warn(counted: CountedLog) -> None:
    if counted.rows.without_time:
        warn(f"{counted.rows.without_time:,} accesses have no timestamp: the suggestion does not count them")
    warn_of_rejects(counted.rejects)


def _write(path: Path, suggestion: Suggestion) -> None:
    rules = [StandardAclWithId(id=None, acl=acl) for acl in suggestion.acls]
    state = write_change_file(path, (json_text(rule.to_dict()) for rule in rules), "--out")
    note(f"{path}: {state}: {len(rules):,} rules, all that are wanted")
