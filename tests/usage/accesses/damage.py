"""A log of which some lines are damaged at random: what is read of it, and what is recorded as unread.

python -m tests.usage.accesses.damage 2000000 > benchmarks/results/damaged-logs.txt
"""
# ruff: noqa: E501 - lines of logs

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import numpy as np

from aclog.usage.accesses.access_log import find_accesses, read_part
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.window import UnreadAccesses, micros_of
from tests.support.cli.command import aclog
from tests.usage.accesses.forms import TEXTS, apache

_BEGIN: Final = datetime(2026, 3, 1, 10, tzinfo=UTC)
_PRINCIPALS: Final = 400
_RARE: Final = 50
"""One of so many accesses is the only one of its topic."""
_MINUTE: Final = 60_000_000
"""In us."""


class Written(NamedTuple):
    """An access that was written."""

    principal: str
    name: str
    is_allowed: bool

    @property
    def is_rare(self) -> bool:
        """Whether it is the only one of its topic."""
        return self.name.startswith("rare-")

    @property
    def message(self) -> str:
        """Its message, as Kafka 4.4 writes it."""
        answer = "Allowed" if self.is_allowed else "Denied"
        return (
            f"Principal = {self.principal} is {answer} operation = READ from host = 10.0.0.1 on resource = "
            f"Topic:LITERAL:{self.name} for request = Fetch with resourceRefCount = 1 based on rule "
            + ("DefaultAllow" if self.is_allowed else "DefaultDeny")
        )


class Kind(NamedTuple):
    """A kind of damage."""

    damage: Callable[[bytes, bytes, Random], bytes]
    """The bytes of a line and of the next one, in place of both with their line feeds."""
    keeps: tuple[bool, bool]
    """Whether the two lines still hold their whole message and time."""


def _cut(line: bytes, random: Random) -> int:
    return random.randrange(1, len(line) - 1)


def _tail(line: bytes, after: bytes, random: Random) -> bytes:
    return line[: _cut(line, random)] + b"\n" + after + b"\n"


def _head(line: bytes, after: bytes, random: Random) -> bytes:
    return line[_cut(line, random) :] + b"\n" + after + b"\n"


def _joined(line: bytes, after: bytes, random: Random) -> bytes:
    return line[: _cut(line, random)] + after + b"\n"


def _zeroed(line: bytes, after: bytes, random: Random) -> bytes:
    at = line.index(b"Principal = ") + random.randrange(3, 80)
    return line[:at] + b"\0" * random.randrange(1, 99) + line[at + 30 :] + b"\n" + after + b"\n"


def _not_utf8(line: bytes, after: bytes, random: Random) -> bytes:
    at = line.index(b"Principal = ") + random.randrange(12, 60)
    return line[:at] + b"\xff" + line[at + 1 :] + b"\n" + after + b"\n"


def _interleaved(line: bytes, after: bytes, random: Random) -> bytes:
    at = _cut(line, random)
    return line[:at] + b"\njava.lang.Error: no\n\tat kafka.A.b(A.scala:1)\n" + line[at:] + b"\n" + after + b"\n"


def _zeros_before(line: bytes, after: bytes, random: Random) -> bytes:
    return b"\0" * random.randrange(1, 9999) + line + b"\n" + after + b"\n"


def _mark_before(line: bytes, after: bytes, random: Random) -> bytes:
    return b"\xef\xbb\xbf" + line + b"\n" + after + b"\n"


KINDS: Final = {
    "cut at its end": Kind(_tail, (False, True)),
    "cut at its beginning": Kind(_head, (False, True)),
    "joined with the next line": Kind(_joined, (False, False)),
    "with NULs in its message": Kind(_zeroed, (False, True)),
    "with a byte that is not UTF-8": Kind(_not_utf8, (False, True)),
    "with a stack trace in it": Kind(_interleaved, (False, True)),
    "after NULs": Kind(_zeros_before, (True, True)),
    "after a byte order mark": Kind(_mark_before, (True, True)),
}


class Damaged(NamedTuple):
    """A log, and what is in it."""

    written: Counter[tuple[str, str, datetime]]
    whole: Counter[tuple[str, str, datetime]]
    """Those of lines that still hold their whole message."""
    lost: list[tuple[Written, datetime]]
    kinds: Counter[str]
    rare: list[Written]
    """The accesses of topics with one access."""


def write_damaged(path: Path, lines: int, share: float, seed: int, form: str = "apache") -> Damaged:
    """Write a log in a form (TEXTS) of which this share of the lines is damaged."""
    random = Random(seed)
    made = Damaged(Counter(), Counter(), [], Counter(), [])
    with path.open("wb") as file:
        pending = list(_accesses(lines, random))
        made.rare.extend(access for access, _ in pending if access.is_rare)
        at = 0
        while at < len(pending):
            one, one_time = pending[at]
            line = _line(one, one_time, form)
            if at + 1 < len(pending) and random.random() < share:
                name = random.choice(list(KINDS))
                other, other_time = pending[at + 1]
                file.write(KINDS[name].damage(line, _line(other, other_time, form), random))
                made.kinds[name] += 1
                for access, when, is_whole in zip((one, other), (one_time, other_time), KINDS[name].keeps, strict=True):
                    made.written[access.principal, access.name, when] += 1
                    if is_whole:
                        made.whole[access.principal, access.name, when] += 1
                    else:
                        made.lost.append((access, when))
                at += 2
                continue
            file.write(line + b"\n")
            made.written[one.principal, one.name, one_time] += 1
            made.whole[one.principal, one.name, one_time] += 1
            at += 1
    return made


def _accesses(lines: int, random: Random) -> Iterator[tuple[Written, datetime]]:
    when = _BEGIN
    for number in range(lines):
        when += timedelta(milliseconds=random.randrange(5))
        principal = f"User:client-{random.randrange(_PRINCIPALS)}"
        if random.randrange(_RARE):
            yield Written(principal, f"topic-{random.randrange(20)}", random.random() < 0.7), when
        else:
            yield Written(principal, f"rare-{number}", True), when


def _line(access: Written, when: datetime, form: str) -> bytes:
    text = _FORMS[form](access.message)
    return text.replace("2026-03-01 10:00:00,123", f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03}").encode()


def _docker(message: str) -> str:
    return json.dumps({"log": f"{apache(message)}\n", "stream": "stdout", "time": "2026-03-01T10:00:01.000000001Z"})


_FORMS: Final = {**TEXTS, "docker": _docker}


class Outcome(NamedTuple):
    """What was read of a damaged log."""

    read: int
    invented: Counter[tuple[str, str, datetime]]
    missed: Counter[tuple[str, str, datetime]]
    unread: UnreadAccesses
    judged: list[Written]
    """Lost accesses whose rules would be judged nevertheless, in a window of their minute alone."""
    places: Counter[str]
    """The number of unread accesses by whether their broker and hour are known."""
    seconds: float


def read_damaged(path: Path, made: Damaged) -> Outcome:
    """Read the log, and compare it with what was written."""
    begin = time.process_time()
    rows, unread = Counter[tuple[str, str, datetime]](), list[UnreadAccesses]()
    for part in find_accesses([str(path)], UTC).parts:
        for batch in read_part(part):
            columns = (batch.rows.column(name).to_pylist() for name in (*REQUEST_COLUMNS, "timestamp"))
            rows.update((row[0], row[4], row[5]) for row in zip(*columns, strict=True))
            unread.append(batch.unread)
    total = UnreadAccesses.sum_of(unread)
    by_minute = dict[int, list[Written]]()
    for access, when in made.lost:
        by_minute.setdefault(micros_of(when) // _MINUTE, []).append(access)
    judged = list[Written]()
    for minute, accesses in by_minute.items():
        # the rule of a principal is ALLOW for an allowed access, DENY for a denied one
        principals, denies = [each.principal for each in accesses], [not each.is_allowed for each in accesses]
        window = total.between(minute * _MINUTE, (minute + 1) * _MINUTE - 1)
        concerned = window.concerned(principals, np.array(denies, np.bool_), by_presence=False).tolist()
        judged += [access for access, is_met in zip(accesses, concerned, strict=True) if not is_met]
    places = Counter[str]()
    for key, span in total.spans.items():
        known = [name for name in ("broker", "hour") if getattr(key, name) is not None]
        places[" and ".join(known) or "nothing"] += span.accesses
    return Outcome(
        read=rows.total(),
        invented=rows - made.written,
        missed=made.whole - rows,
        unread=total,
        judged=judged,
        places=places,
        seconds=time.process_time() - begin,
    )


class Judged(NamedTuple):
    """What `aclog usage` answers about one rule for each topic with one access, and as many that no access needs."""

    of_whole: Counter[str]
    """Answers about rules whose access is in a line that still holds its whole message."""
    of_lost: Counter[str]
    """Answers about rules whose access is in no such line."""
    of_unused: Counter[str]

    @property
    def wrong(self) -> int:
        """The number of wrong answers: a whole access is needed; what a damaged line may have needed is not judged."""
        others = self.of_lost.total() - self.of_lost["NEEDED"] - self.of_lost["NOT_JUDGED"]
        missed = self.of_whole.total() - self.of_whole["NEEDED"]
        return missed + others + self.of_unused.total() - self.of_unused["NOT_JUDGED"]


def judge_damaged(path: Path, made: Damaged) -> Judged:
    """Judge rules by the log."""
    acls = path.with_name("acls.jsonl")
    with acls.open("w") as file:
        for access in made.rare:
            for name in (access.name, f"unused-{access.name}"):
                pattern = {"resourceType": "TOPIC", "resourceName": name, "patternType": "LITERAL"}
                rule = {"principal": access.principal, "host": "*", "operation": "READ", "permissionType": "ALLOW"}
                file.write(json.dumps(pattern | rule) + "\n")
    lost = {access.name for access, _ in made.lost}
    judged = Judged(Counter(), Counter(), Counter())
    for line in aclog("usage", "--accesses", path, "--acls", acls, "--format", "jsonl").ok().lines:
        row = json.loads(line)
        name = row["resourceName"]
        answers = (
            judged.of_unused if name.startswith("unused-") else judged.of_lost if name in lost else judged.of_whole
        )
        answers[row["answer"]] += 1
    return judged


def main() -> None:
    """Print the figures of logs of so many lines, in these forms."""
    lines = int(sys.argv[1])
    for form in sys.argv[2:] or ("apache", "strimzi", "docker"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kafka-authorizer.log")
            made = write_damaged(path, lines, 0.01, 38, form)
            outcome, judged = read_damaged(path, made), judge_damaged(path, made)
        print(f"{form}: {lines:,} lines, {made.kinds.total():,} damaged: ", end="", flush=True)
        print(", ".join(f"{count:,} {kind}" for kind, count in sorted(made.kinds.items())))
        print(
            f"  {outcome.read:,} accesses read in {outcome.seconds:.1f} s of CPU time, {len(made.lost):,} lines without a whole message"
        )
        print(f"  {outcome.invented.total()} invented, {outcome.missed.total()} whole ones not read")
        print(
            f"  {outcome.unread.total:,} unread accesses recorded; {len(outcome.judged)} lost accesses whose rules are judged in their minute"
        )
        print(
            f"  known of the unread ones: {', '.join(f'{name} {count:,}' for name, count in outcome.places.most_common())}"
        )
        for kind, answers in judged._asdict().items():
            found = ", ".join(f"{answer} {count:,}" for answer, count in answers.most_common())
            print(f"  aclog usage, {sum(answers.values()):,} rules {kind.replace('_', ' ')} accesses: {found}")
        print(f"  {judged.wrong} wrong answers", flush=True)


if __name__ == "__main__":
    main()
