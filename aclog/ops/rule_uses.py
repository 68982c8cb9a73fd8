"""When the ACLs that a plan deletes were last used: by an index of last use, or by an access log."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from attrs import evolve

from aclog.authorizer.acl import AclPermissionType, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.audit import Reason
from aclog.metalog.errors import ConfigError
from aclog.ops.usage import AccessLog, Judging, ReadAccesses, warn_of_rejects, warn_of_unread
from aclog.planning.report import RuleUse, RuleUses
from aclog.targets.opening import FoundPlace
from aclog.terminal.progress import progress
from aclog.usage.decisions.intervals import ALWAYS, Rules
from aclog.usage.index.database import FILE
from aclog.usage.index.lives import digests
from aclog.usage.index.usage_index import UsageIndex
from aclog.usage.index.used import EVENTS, LastUse
from aclog.usage.judging import TalliedPart, tally_log
from aclog.usage.rules import seen_rules
from aclog.usage.unused import StateRules
from aclog.usage.unused_report import lives_of
from aclog.usage.window import EARLIEST, LATEST, UnreadAccesses

_MATCHED, _NEEDED = EVENTS.index("last matched"), EVENTS.index("last needed")


def read_rule_uses(flags: ReadAccesses, place: FoundPlace, acls: Sequence[StandardAcl]) -> RuleUses:
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
    with UsageIndex.open(path) as index:
        index.check_cluster(place.identity)
        coverage = index.coverage()
        if not len(coverage):
            raise ConfigError(f"--accesses {path}: holds no access yet: expected some, by aclog usage-index")
        state = _state_of(acls)
        lives = lives_of(state, index.lives())
        numbers = lives.number[lives.number >= 0]
        last = index.last_use(np.unique(numbers))
        of_rules = {
            state.rule(at).acl: evolve(_use_of(last, number), since=since)
            for at, (number, since) in enumerate(zip(lives.number.tolist(), lives.begin.tolist(), strict=True))
            if number >= 0
        }
        by_presence = any(run.settings.get("allow_everyone") for run in index.runs())
        return RuleUses(
            source=str(path),
            first=int(coverage.first.min()),
            last=int(coverage.last.max()),
            of_rules=_with_unread(of_rules, index.unread(EARLIEST, LATEST), by_presence=by_presence),
        )


def _by_log(flags: ReadAccesses, place: FoundPlace, acls: Sequence[StandardAcl]) -> RuleUses:
    log = AccessLog.of(flags)
    # The question is whether it will be missed, so the present rules judge, not those at the time.
    settings = evolve(place.settings, is_kafka_stated=place.kafka.is_known)
    rules, settings = Rules.of_image(place.state.acls).by_kafka(settings, lambda _: [(ALWAYS, place.kafka)])
    judging = Judging(rules=rules, settings=settings, own_time=False)
    last = LastUse.nothing()
    rejects: Counter[Reason] = Counter()
    unread = list[UnreadAccesses]()
    times: list[int] = []
    accesses = denials = 0
    for part in _counted(tally_log(log.accesses.parts, judging.how(None), log.each)):
        last = last.plus(*(tally.last_use for tally in part.tallies))
        rejects += part.counted.rejects
        unread += (part.counted.unread, *(tally.unread for tally in part.tallies))
        times += [each for each in (part.counted.earliest, part.counted.latest) if each is not None]
        accesses += part.counted.rows.total
        denials += part.counted.logged_denials
    name = ", ".join(flags.accesses)
    if not times:
        raise ConfigError(f"--accesses {name}: holds no access with a time: expected some")
    if denials and denials == accesses:
        raise ConfigError(
            f"--accesses {name}: all {denials:,} accesses are denials, by which no rule is used: Kafka logs what it "
            "allows only if kafka.authorizer.logger is at DEBUG"
        )
    warn_of_rejects(rejects)
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


def _counted(parts: Iterator[TalliedPart]) -> Iterator[TalliedPart]:
    with progress("reading the accesses", "rows") as advance:
        done = 0
        for part in parts:
            done += part.counted.rows.total
            advance(done, None)
            yield part


def _ordinals(rules: Rules, acls: Sequence[StandardAcl]) -> Mapping[StandardAcl, int]:
    """Return the ordinals of some of the rules."""
    ordinals = {key.tobytes(): at for at, key in enumerate(seen_rules(rules, own_time=False).digests)}
    state = _state_of(acls)
    keys = digests(state.acls.records())
    return {state.rule(at).acl: ordinals[key.tobytes()] for at, key in enumerate(keys)}


def _state_of(acls: Sequence[StandardAcl]) -> StateRules:
    return StateRules.of(AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in acls))


def _use_of(last: LastUse, number: int) -> RuleUse:
    return RuleUse(matched=last.use(number, _MATCHED), needed=last.use(number, _NEEDED))
