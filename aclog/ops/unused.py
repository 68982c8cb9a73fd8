"""What `aclog accesses unused` does: ACLs that no access needs, by an index of last use; their proof and last use."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve

from aclog.analysis.regions import JsonObject
from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.audit import Reason
from aclog.authorizer.codes import AclPermissionType
from aclog.authorizer.settings import SUPER_USERS_CONFIG, Settings
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError, plural
from aclog.ops.policies import read_premises
from aclog.planning.report import RuleUse, RuleUses
from aclog.sources.choice import ChosenSource
from aclog.sources.logs import cluster_of
from aclog.targets.opening import FoundPlace
from aclog.terminal.notices import progress
from aclog.terminal.output import note, time_text
from aclog.usage.index.database import FILE
from aclog.usage.index.lives import digests
from aclog.usage.index.used import EVENTS, LastUse, Used
from aclog.usage.unused import ANSWERS, Silence, StateRules, Unjudged, Unused
from aclog.usage.window import DAY, EARLIEST, LATEST, UnreadAccesses, Window, of_micros, unread_text

if TYPE_CHECKING:
    from aclog.ops.usage import Judging, ReadAccesses
    from aclog.usage.decisions.intervals import Rules
    from aclog.usage.index.usage_index import UsageIndex
    from aclog.usage.judging import TalliedPart
    from aclog.usage.unused_report import UnusedQuestion, UnusedReport

# What reads an access log or an index is imported where it is needed: an index is read without pyarrow, and the command
# is listed without pyroaring.
# ruff: noqa: PLC0415

# The answers of an index about the ACLs of a source.


def unused_acls(index: "UsageIndex", choice: ChosenSource, question: "UnusedQuestion") -> "UnusedReport":
    """Return which ACLs of a source no access needed; what is unknown of that which decides is noted.

    The report reads the index as long as it is used.

    Raises:
        ConfigError: the index is damaged, empty, or of another cluster than the log that is read.
        MetadataError, OSError: the source is damaged or cannot be read.

    """
    from aclog.usage.unused_report import UnusedReport

    index.check_cluster(cluster_of(choice.source))
    report = UnusedReport.of(index, StateRules.of(choice.image().acls), question)
    unknown = read_premises(choice, index.settled_properties()).without({SUPER_USERS_CONFIG})
    if not unknown:
        return report
    text = f"no ACL counts as removable: make the index anew, by aclog accesses index with {unknown.settled_by()}"
    note(text)
    return report.without_removals(text)


def unused_premises(report: "UnusedReport") -> Iterator[str]:
    """Yield what the answers do not count: silences of brokers, unread accesses, unknown settings."""
    silences = report.unused.silences
    for silence in silences[:_NAMED_SILENCES]:
        yield f"gap: {silence_text(silence)}"
    if len(silences) > _NAMED_SILENCES:
        yield f"and {plural(len(silences) - _NAMED_SILENCES, 'more gap')}"
    if report.unused.unread:
        yield f"not judged: {unread_text(report.unused.unread)}"
    if report.unknown:
        yield report.unknown


_KEYS = ("firstMatched", "lastMatched", "firstNeeded", "lastNeeded")
"""Of EVENTS."""
_NAMED_SILENCES = 20
_BLOCK = 1 << 14
"""Rules whose uses are read together."""


def unused_objects(report: "UnusedReport") -> Iterator[JsonObject]:
    """Yield an object for each ACL, in the order of `acls list`."""
    result, used = report.unused, report.used
    last_use = report.last_use(np.arange(len(result.rules)))  # all at once: names are in another order than lives
    numbered = result.rules.in_text_order()
    while block := list(islice(numbered, _BLOCK)):
        lives = result.lives.number[[number for number, _ in block]]
        counts = _counts(used, lives)
        uses = zip(*(_uses(last_use, lives, event) for event in range(len(EVENTS))), strict=True)
        for (number, rule), count, use in zip(block, counts, uses, strict=True):
            row: dict[str, Any] = {
                **rule.to_dict(),
                "answer": ANSWERS[result.judgement.answer[number]].value,
                "matched": count[0],
                "needed": count[1],
                "removable": bool(result.removable[number]),
                **({"unread": int(result.unread_counts[number])} if result.unread else {}),
                "daysMatched": count[2],
                "daysNeeded": count[3],
                **dict(zip(_KEYS, use, strict=True)),
            }
            yield {**row, "reason": why_unjudged(result, number) or None}


def _counts(used: Used, lives: Int64s) -> list[tuple[int, int, int, int]]:
    """Return matched, needed, and the days of both, of each life; zeros for -1."""
    columns = (used.matched, used.needed, used.days_matched, used.days_needed)
    if not len(used):
        return [(0, 0, 0, 0)] * len(lives)
    at = np.minimum(np.searchsorted(used.numbers, lives), len(used) - 1)
    present = used.numbers[at] == lives
    return list(zip(*(np.where(present, column[at], 0).tolist() for column in columns), strict=True))


def _uses(last_use: LastUse, lives: Int64s, event: int) -> Iterator[dict[str, Any] | None]:
    """Yield an event of each life, None if it has not had it."""
    if not len(last_use.numbers):
        yield from repeat(None, len(lives))
        return
    at = np.minimum(np.searchsorted(last_use.numbers, lives), len(last_use.numbers) - 1)
    who = np.where(last_use.numbers[at] == lives, last_use.who[event, at], -1)
    for user, time in zip(who.tolist(), last_use.times[event, at].tolist(), strict=True):
        if user < 0:
            yield None
        else:
            principal, host = last_use.users[user]
            yield {"timestamp": time // 1000, "principal": principal, "host": host}


# Times, silences and reasons in words.


def time_of(micros: int) -> str:
    """Return a time in us since 1970 as ISO 8601."""
    return time_text(micros // 1000)


def brokers_text(report: "UnusedReport") -> str:
    """Return which brokers are expected to log; lines that name no broker count as those of one."""
    named = [each for each in report.expected if each is not None]
    if len(named) == len(report.expected):
        return f"brokers: {', '.join(named) or 'none'}"
    if not named:
        return "the log lines name no broker"
    return f"brokers: {', '.join(named)}; other log lines name no broker"


def silence_text(silence: Silence) -> str:
    """Return which broker logged nothing, and when."""
    lines = "no log lines " + ("of an unnamed broker" if silence.broker is None else f"of broker {silence.broker}")
    if silence.since is None and silence.to is None:
        return f"{lines} in the window"
    if silence.since is None:
        return f"{lines} before {time_of(silence.to or 0)}"
    if silence.to is None:
        return f"{lines} after {time_of(silence.since)}"
    return f"{lines} from {time_of(silence.since)} to {time_of(silence.to)}"


def unread_of_rule(count: int) -> str:
    """Return why a rule is not judged that so many accesses may have needed."""
    if not count:
        return "what an older aclog could not read of the log is not known: make a new index of it"
    return f"it may apply to {plural(count, 'access')} that could not be read or decided"


def why_unjudged(result: Unused, number: int) -> str:
    """Return why a rule is not judged; nothing for one that is."""
    why = Unjudged(int(result.judgement.unjudged[number]))
    if why is Unjudged.NOT_INDEXED:
        return "the index has not seen it in force: update it with these rules"
    if why is Unjudged.YOUNG and result.lives.resettled is not None and result.lives.resettled[number]:
        return (
            "accesses were decided by other super users or another version of Kafka until "
            f"{time_of(int(result.lives.begin[number]))}, after the window began"
        )
    if why is Unjudged.YOUNG:
        return f"known to the index only since {time_of(int(result.lives.begin[number]))}, after the window began"
    if why is Unjudged.SILENCE:
        others = len(result.silences) - 1
        more = f", and {plural(others, 'more gap')}" if others else ""
        return silence_text(result.silences[0]) + more
    if why is Unjudged.UNREAD:
        return unread_of_rule(int(result.unread_counts[number]))
    return ""


# The proof of the removals of `aclog accesses unused`: the accesses of the window, decided again without these rules.


def prove(report: "UnusedReport", choice: ChosenSource, flags: "ReadAccesses") -> None:
    """Replay a log without the removable rules; print how many accesses were decided the same. Raises as `proved`."""
    from aclog.ops.usage import Judging

    note(proved(report, Judging.of(choice, decided_by(report)), flags))


def proved(report: "UnusedReport", judging: "Judging", flags: "ReadAccesses") -> str:
    """Replay a log without the removable rules; return how many accesses were decided the same, as a sentence.

    Raises:
        ConfigError: an access would be decided otherwise, or may be that cannot be read or decided; or the log cannot
            be read.
        MetadataError, OSError: the source is damaged.

    """
    from aclog.ops.usage import AccessLog
    from aclog.usage.decisions.decisions import REQUEST_COLUMNS
    from aclog.usage.simulation import replay
    from aclog.usage.undecided import undecided

    result = report.unused
    end = (result.window.last_day + 1) * DAY - 1
    window = Window(start=of_micros(result.window.start), until=of_micros(end))
    counted = AccessLog.of(flags).count(judging.how(window))
    removed = [tuple(rule.to_dict().values()) for _, rule in result.rules.in_text_order(result.removable)]
    outcome = replay(counted.accesses, judging.rules, removed, judging.settings, own_time=judging.own_time)
    if len(outcome.flipped):
        first = outcome.flipped.select(REQUEST_COLUMNS).slice(0, 1).to_pylist()[0]
        raise ConfigError(
            f"--accesses: {plural(len(outcome.flipped), 'access')} would be decided differently without the removable "
            f"rules, such as {' '.join(map(str, first.values()))}: is the index made of this log, and up to date?"
        )
    unread = UnreadAccesses.sum_of((counted.unread, undecided(counted.accesses, outcome.codes)))
    others = _unread(report, judging, judging.in_window(window).unread(unread))
    return (
        f"--accesses: {plural(outcome.decided, 'access')} of the window decided again without the removable rules: "
        f"all the same{others}"
    )


def _unread(report: "UnusedReport", judging: "Judging", unread: UnreadAccesses) -> str:
    """Return what is not in the proof, as the rest of a sentence."""
    if not unread:
        return ""
    result = report.unused
    numbers = np.flatnonzero(result.removable)
    who, denies = result.rules.principals(numbers), result.rules.denies[numbers]
    if unread.concerned(who, denies, by_presence=judging.settings.allow_everyone).any():
        raise ConfigError(
            f"--accesses: {unread_text(unread)}: they may need rules that are removable by the index, which does not "
            "know them: is it made of this log, and up to date?"
        )
    return f"; {unread_text(unread)}, and need none of these rules"


def decided_by(report: "UnusedReport") -> Settings:
    """Return what decided besides the rules when the index was made, the last time."""
    from aclog.usage.index.usage_index import KAFKA, REGISTERED

    runs = report.index.runs()
    settings: Mapping[str, object] = runs[-1].settings if runs else {}
    supers = settings.get("super_users", ())
    return Settings(
        super_users=frozenset(map(str, supers)) if isinstance(supers, list) else frozenset(),
        allow_everyone=bool(settings.get("allow_everyone")),
        documented=bool(settings.get("documented")),
        cidr=bool(settings.get("cidr")),
        is_kafka_stated=settings.get(KAFKA) != REGISTERED,
    )


# When the ACLs that a plan deletes were last used: by an index of last use, or by an access log.


_MATCHED, _NEEDED = EVENTS.index("last matched"), EVENTS.index("last needed")


def read_rule_uses(flags: "ReadAccesses", place: FoundPlace, acls: Sequence[StandardAcl]) -> RuleUses:
    """Return when some ACLs of a place were last used, each access judged by what the place has now; or by an index.

    Raises:
        ConfigError: an index beside logs, of another cluster, or without accesses; a log that holds none, or denials
            alone, by which no rule seems to be used.
        OSError: a file cannot be read.

    """
    indexes = [path for path in flags.accesses if Path(path, FILE).is_file()]
    if not indexes:
        return _by_log(flags, place, acls)
    if len(flags.accesses) > 1:
        raise ConfigError(f"--accesses {indexes[0]}: an index of last use: expected it alone, or access logs")
    return _by_index(Path(indexes[0]), place, acls)


def _by_index(path: Path, place: FoundPlace, acls: Sequence[StandardAcl]) -> RuleUses:
    from aclog.usage.index.usage_index import UsageIndex
    from aclog.usage.unused_report import lives_of, resettled

    with UsageIndex.open(path) as index:
        index.check_cluster(place.identity)
        coverage = index.coverage()
        if not len(coverage):
            raise ConfigError(f"--accesses {path}: holds no access yet: expected some, by aclog accesses index")
        state = _state_of(acls)
        runs = index.runs()
        lives = resettled(lives_of(state, index.lives()), state, runs, EARLIEST)
        numbers = lives.number[lives.number >= 0]
        last = index.last_use(np.unique(numbers))
        of_rules = {
            state.rule(at).acl: evolve(_use_of(last, number), since=since)
            for at, (number, since) in enumerate(zip(lives.number.tolist(), lives.begin.tolist(), strict=True))
            if number >= 0
        }
        by_presence = any(run.settings.get("allow_everyone") for run in runs)
        return RuleUses(
            source=str(path),
            first=int(coverage.first.min()),
            last=int(coverage.last.max()),
            of_rules=_with_unread(of_rules, index.unread(EARLIEST, LATEST), by_presence=by_presence),
        )


def _by_log(flags: "ReadAccesses", place: FoundPlace, acls: Sequence[StandardAcl]) -> RuleUses:
    from aclog.ops.usage import AccessLog, Judging, warn_of_long_lines, warn_of_rejects, warn_of_unread
    from aclog.usage.accesses.lines import LongLine
    from aclog.usage.counting import RowCounts
    from aclog.usage.decisions.intervals import ALWAYS, Rules
    from aclog.usage.judging import tally_log

    log = AccessLog.of(flags)
    # The question is whether it will be missed, so the present rules judge, not those at the time.
    settings = evolve(place.settings, is_kafka_stated=place.kafka.is_known)
    rules, settings = Rules.of_image(place.state.acls).by_kafka(settings, lambda _: [(ALWAYS, place.kafka)])
    judging = Judging(rules=rules, settings=settings, own_time=False)
    last = LastUse.nothing()
    rejects: Counter[Reason] = Counter()
    unread = list[UnreadAccesses]()
    times: list[int] = []
    rows, long_lines = list[RowCounts](), list[LongLine]()
    for part in _counted(tally_log(log.accesses.parts, judging.how(None), log.each)):
        last = last.plus(*(tally.last_use for tally in part.tallies))
        rejects += part.counted.rejects
        unread += (part.counted.unread, *(tally.unread for tally in part.tallies))
        times += [each for each in (part.counted.earliest, part.counted.latest) if each is not None]
        rows.append(part.counted.rows)
        long_lines += part.counted.long_lines
    name = ", ".join(flags.accesses)
    if not times:
        raise ConfigError(f"--accesses {name}: holds no access with a time: expected some")
    if (counts := RowCounts.sum_of(rows)).is_denials_only:
        raise ConfigError(f"--accesses {name}: {counts.denials_text()}")
    warn_of_rejects(rejects)
    warn_of_long_lines(long_lines)
    of_log = {acl: _use_of(last, number) for acl, number in _ordinals(judging.rules, acls).items()}
    unknown = UnreadAccesses.sum_of(unread).but_of(place.settings.super_users)
    warn_of_unread(unknown, "the last use of ACLs that they may need is unknown")
    of_rules = _with_unread(of_log, unknown, by_presence=place.settings.allow_everyone)
    return RuleUses(source=name, first=min(times), last=max(times), of_rules=of_rules)


def _with_unread(
    of_rules: Mapping[StandardAcl, RuleUse], unread: UnreadAccesses, *, by_presence: bool
) -> Mapping[StandardAcl, RuleUse]:
    """Return the uses with how many accesses may have needed each ACL that could not be read or decided."""
    who = [acl.principal for acl in of_rules]
    denies = np.array([acl.permission_type != AclPermissionType.ALLOW for acl in of_rules], np.bool_)
    concerned = unread.concerned(who, denies, by_presence=by_presence).tolist()
    counts = unread.counts(who, denies, by_presence=by_presence).tolist()
    return {
        acl: evolve(use, unread=count) if is_concerned else use
        for (acl, use), is_concerned, count in zip(of_rules.items(), concerned, counts, strict=True)
    }


def _counted(parts: "Iterator[TalliedPart]") -> "Iterator[TalliedPart]":
    with progress("reading the accesses", "rows") as advance:
        done = 0
        for part in parts:
            done += part.counted.rows.total
            advance(done, None)
            yield part


def _ordinals(rules: "Rules", acls: Sequence[StandardAcl]) -> Mapping[StandardAcl, int]:
    """Return the ordinals of some of the rules."""
    from aclog.usage.rules import seen_rules

    ordinals = {key.tobytes(): at for at, key in enumerate(seen_rules(rules, own_time=False).digests)}
    state = _state_of(acls)
    keys = digests(state.acls.records())
    return {state.rule(at).acl: ordinals[key.tobytes()] for at, key in enumerate(keys)}


def _state_of(acls: Sequence[StandardAcl]) -> StateRules:
    return StateRules.of(AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in acls))


def _use_of(last: LastUse, number: int) -> RuleUse:
    return RuleUse(matched=last.use(number, _MATCHED), needed=last.use(number, _NEEDED))
