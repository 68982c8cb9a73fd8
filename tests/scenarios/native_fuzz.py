"""`make fuzz-native`: the native core under sanitizers: damaged bases, whole worlds beside Python, misused arguments.

    python -m tests.scenarios.native_fuzz --bases 200000 --out benchmarks/results/fuzz-native.txt

A base is guarded by a checksum where it is stored; here it is wrong all the same. The core may refuse it or answer
anything, but must read and write only what is its own: the address sanitizer ends the process if it does not. In whole
worlds each answer is the Python path's. Whatever arguments it is called with, it answers or raises an error that
says what is wrong with them, and keeps none of them.
"""

import argparse
import os
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from struct import pack_into
from typing import Any, NoReturn

from aclog.authorizer.index.layout import Column
from aclog.metalog import batches as batches_module
from aclog.metalog.batches import build_batch, scan_batches, scan_values
from aclog.metalog.native import native
from tests.scenarios.native_differences import differing_worlds
from tests.support.builders.logs import recrc
from tests.support.kafka.oracle import Ask
from tests.support.models.differential import image_of
from tests.support.models.shapes import RANGED, Maker, random_shape

_HEADER, _PLACE = 24, 16
_EXTREMES = (0, 1, -1, -2, 0x7FFFFFFF, -0x80000000, 8, 255, 1 << 30)
_PER_ESTATE = 100
"""Damaged bases made from one whole one."""


def damaged_bases(*, seed: int, count: int) -> Counter[str]:
    """Ask that many damaged bases; return what came of them."""
    random, outcomes = Random(seed), Counter[str]()
    while outcomes.total() < count:
        maker = Maker(random_shape(random, **(RANGED if random.randrange(3) == 0 else {})))
        image = image_of(maker.estate.acls, changes=0, random=maker.random)
        whole, asks = bytes(image.index.base.buffer), maker.asks(20)
        for _ in range(min(_PER_ESTATE, count - outcomes.total())):
            outcomes[_outcome(damaged(whole, random), asks, random)] += 1
    return outcomes


def damaged(whole: bytes, random: Random, *, columns: bool = True) -> bytearray:
    """A copy with a few bytes or numbers changed, anywhere or in one column of a base."""
    copy = bytearray(whole)
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        at = random.randrange(len(copy))
        if columns and random.randrange(3):
            head = _HEADER + _PLACE * random.choice(list(Column))
            start, size = (int.from_bytes(whole[head + each : head + each + 8], "little") for each in (0, 8))
            at = start + random.randrange(size) if size else head + random.randrange(_PLACE)
        if random.randrange(2) and at + 4 <= len(copy):
            pack_into("<i", copy, at & ~3 if at & ~3 <= len(copy) - 4 else at, random.choice(_EXTREMES))
        else:
            copy[at] ^= 1 << random.randrange(8)
    if random.randrange(20) == 0:
        del copy[random.randrange(len(copy)) :]
    return copy


def damaged_logs(*, seed: int, count: int) -> Counter[str]:
    """Scan that many damaged logs; return how much of each the core and the Python path found alike."""
    random, outcomes = Random(seed), Counter[str]()
    for _ in range(count):
        sizes = random.choices((1, 1, 1, 2, 5, 40), k=random.randrange(1, 12))
        parts, offset = [], 0
        for size in sizes:
            values = [random.randbytes(random.choice((1, 4, 20, 90, 200))) for _ in range(size)]
            parts.append(build_batch(values, base_offset=offset, leader_epoch=1, timestamp=offset))
            offset += size
        log, at = damaged(b"".join(parts), random, columns=False), random.choice((0, 0, 0, 5, 1 << 20))
        if random.randrange(2):  # of the last batch: what is behind a checksum is looked at too
            log[-len(parts[-1]) :] = recrc(bytes(log[-len(parts[-1]) :]))
        found = [_scanned(bytes(log), at, core) for core in (native, None)]
        outcomes["scanned alike" if found[0] == found[1] else f"SCANNED OTHERWISE: {bytes(log).hex()}"] += 1
    return outcomes


def _scanned(log: bytes, at: int, core: Any) -> list[Any]:
    before, batches_module.native = batches_module.native, core
    try:
        found, damage = scan_batches(log, at)
        values, bad = scan_values(log, found)
    finally:
        batches_module.native = before
    columns = (found.position, found.end, found.base_offset, found.max_timestamp, values.batch, values.offset)
    return [damage, bad, *(each.tolist() for each in (*columns, values.value_start, values.value_end))]


def _outcome(flat: bytearray, asks: list[Ask], random: Random) -> str:
    try:
        core = native.Base(flat)
    except ValueError:
        return "refused when opened"
    found, base = "answered", core
    if random.randrange(2):
        try:
            core.read_ranges()
        except ValueError:
            found = "found out when asked"
    for number, ask in enumerate(asks):
        request = ask.resource_type, ask.name, number % 4
        questions = (
            lambda core, ask=ask, request=request: core.mask(ask.principal, ask.host, *request),
            lambda core, ask=ask, request=request: core.rule(ask.principal, ask.host, ask.operation, *request),
            lambda core, request=request: core.has_candidate(*request),
            lambda _, request=request, number=number: base.resource(*request[:2], bool(number % 2)),
            lambda core, ask=ask, request=request: core.session(
                ask.principal, ask.host, request[2], False, array("Q", (0, 0))
            ).allows(ask.operation, *request[:2], 0),
        )
        for question in questions:
            try:
                question(core)
            except ValueError:
                found = "found out when asked"
        try:
            literal, mask = bool(random.randrange(2)), random.choice((-1, 0, 0xFFFFFFFF))
            host = random.choice((ask.host, ask.host + "/8"))
            core = core.put(ask.resource_type, ask.name, literal, ask.principal, host, mask, random.randrange(3))
        except ValueError:
            found = "found out when changed"
    return found


class OwnError(Exception):
    """What the methods of a hostile argument raise."""


class Raising:
    """Every conversion of it fails."""

    def __index__(self) -> NoReturn:
        raise OwnError

    def __bool__(self) -> NoReturn:
        raise OwnError


class Calling:
    """Its conversions run Python code, which fails if an exception is set meanwhile."""

    def __index__(self) -> int:
        return len(repr([1, 2]))

    def __bool__(self) -> bool:
        return bool(sorted([3, 1]))


class Lying:
    """A number that is none."""

    def __index__(self) -> str:
        return "3"  # type: ignore[return-value]  # noqa: PLE0305 - which is what is to be refused

    def __bool__(self) -> int:
        return 1  # type: ignore[return-value]  # noqa: PLE0304


class Slotted:
    """What a maker makes."""

    __slots__ = ("first", "second")


_COUNTED = (bytearray, memoryview, array, Raising, Calling, Lying)
"""What the interpreter itself does not refer to elsewhere meanwhile, as it does to a 3."""
_REFUSALS = (TypeError, ValueError, OverflowError, BufferError, MemoryError, OwnError)
_MOST_ARGUMENTS = 8
_QUESTIONS = ("mask", "has_candidate", "rule", "put", "read_ranges", "resource", "session", "allows", "make")
_FUNCTIONS = ("number", "crc32", "order", "cut", "crc32c", "batches", "values")
_COUNTS = {
    "mask": 5, "session": 5, "allows": 4, "has_candidate": 3, "rule": 6, "put": 7, "read_ranges": 0, "Base": 1,
    "number": 3, "crc32": 3, "order": 3, "cut": 3, "crc32c": 2, "batches": 3, "values": 4,
    "resource": 3, "Maker": 2, "make": 2,
}  # fmt: skip


def misuses(*, seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """Call functions of the core with arguments that fit badly; return what came of it, and what should not have."""
    random, outcomes, found = Random(seed), Counter[str](), list[str]()
    maker = Maker(random_shape(random, **RANGED))
    whole = bytes(image_of(maker.estate.acls, changes=0, random=maker.random).index.base.buffer)
    base = native.Base(whole)
    changed = base.put(2, "t", True, "User:a", "*", 4, 1)
    asks = maker.asks(20)
    before = [_answers(core, asks) for core in (base, changed)]
    owners = {"Base": native, "Maker": native, **dict.fromkeys(_FUNCTIONS, native)}
    while outcomes.total() < count:
        name = random.choice((*_QUESTIONS, *_FUNCTIONS, "Base", "Maker"))
        owner = owners.get(name) or random.choice((base, changed))
        if name == "allows":
            owner = owner.session("User:a", "10.0.0.1", random.randrange(4), random.randrange(2), array("Q", (0, 0)))
        if name == "make":
            owner = native.Maker(Slotted, ("first", "second"))
        function = getattr(owner, name, None)
        if function is None:  # changes have no `read_ranges` and no `resource`
            continue
        size = _COUNTS[name] if random.randrange(10) else random.randrange(_MOST_ARGUMENTS + 1)
        arguments = [_argument(random, whole, fits=_fitting(name, place)) for place in range(size)]
        outcome = _misused(function, arguments)
        outcomes[outcome] += 1
        if outcome not in {"answered", *(each.__name__ for each in _REFUSALS)}:
            found.append(f"{name}({', '.join(repr(each)[:60] for each in arguments)}): {outcome}")
    if before != [_answers(core, asks) for core in (base, changed)]:
        found.append("the core answers otherwise than before")
    return outcomes, found


def _misused(function: Callable[..., Any], arguments: list[Any]) -> str:
    own = [each for each in arguments if isinstance(each, _COUNTED)]
    counts = [sys.getrefcount(each) for each in own]
    try:
        function(*arguments)
        outcome = "answered"
    except Exception as error:  # noqa: BLE001 - which is what is counted
        outcome = type(error).__name__
    if counts != [sys.getrefcount(each) for each in own]:
        return f"{outcome}, and keeps an argument"
    for each in arguments:
        if isinstance(each, bytearray):
            each.append(0)  # raises BufferError while somebody has its memory
            each.pop()
    return outcome


def _fitting(name: str, place: int) -> str:
    """Return which arguments fit at a place."""
    if name in _FUNCTIONS:
        return "number" if name in {"batches", "crc32c"} and place else "buffer"
    if name == "Base" or (name, place) == ("session", 4):
        return "buffer"
    texts = {
        "mask": (0, 1, 3),
        "has_candidate": (1,),
        "resource": (1,),
        "rule": (0, 1, 4),
        "put": (1, 3, 4),
        "session": (0, 1),
        "allows": (2,),
    }
    return "text" if place in texts.get(name, ()) else "number"


_NUMBERS = (0, 1, 2, 3, -1, 7, 8, 255, 1 << 31, -(1 << 31), (1 << 63) - 1, 1 << 63, -(1 << 63) - 1, 1 << 200)
_TEXTS = (
    "",
    "t",
    "User:a",
    "User:*",
    "*",
    "10.0.0.0/8",
    "::/0",
    "\0",
    "\ud800",
    "x\udfff",
    "ä" * 300,
    "a",
    "/",
    "1.2.3.4/",
)


def _argument(random: Random, whole: bytes, *, fits: str) -> Any:
    """Return an argument, which fits more often than not: else none but the first would be looked at."""
    kind = fits if random.randrange(3) else random.choice(("number", "text", "buffer", "other"))
    if kind == "number":
        return random.choice((*_NUMBERS, True, Calling()))
    if kind == "text":
        return random.choice(_TEXTS)
    if kind == "buffer":
        rows = array("q", [random.choice((0, 1, 2, 5, -1, 1 << 62)) for _ in range(random.randrange(4))])
        views = (rows, rows, memoryview(rows), memoryview(rows)[::2], _released(), array("d", [0.5]))
        some = (b"", b"abc", bytearray(b"abcdefgh"), bytearray(8 * random.randrange(4)))
        return random.choice((*views, *some, whole, whole[: random.randrange(len(whole))]))
    others = (None, 1.5, float("nan"), [], {}, object(), type, 1j)
    return random.choice((*others, Raising(), Raising(), Calling(), Lying()))


def _released() -> memoryview:
    view = memoryview(b"gone")
    view.release()
    return view


def _answers(core: Any, asks: list[Ask]) -> list[Any]:
    return [
        (core.mask(ask.principal, ask.host, ask.resource_type, ask.name, semantics),
         core.rule(ask.principal, ask.host, ask.operation, ask.resource_type, ask.name, semantics))
        for ask in asks for semantics in range(4)
    ]  # fmt: skip


def main() -> int:
    """Run and report; return 1 if anything was answered otherwise, or an error was none of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bases", type=int, default=200_000)
    parser.add_argument("--worlds", type=int, default=460)
    parser.add_argument("--misuses", type=int, default=15_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    sanitized = "libasan" in os.environ.get("LD_PRELOAD", "")
    begin = time.perf_counter()
    misused, wrong = misuses(seed=chosen.seed, count=chosen.misuses)
    seen, differences = differing_worlds(seed=chosen.seed, worlds=chosen.worlds)
    outcomes = damaged_bases(seed=chosen.seed, count=chosen.bases)
    logs = damaged_logs(seed=chosen.seed, count=chosen.bases)
    wrong += [text for text in logs if text != "scanned alike"]
    how = "under the address and undefined behaviour sanitizers" if sanitized else "WITHOUT sanitizers"
    lines = [
        f"The native core {how} (make fuzz-native)\n",
        f"seed                     {chosen.seed}",
        f"damaged bases            {outcomes.total():,}, 20 requests and 20 changes each",
        *(f"  {what:22} {number:,}" for what, number in outcomes.most_common()),
        f"worlds beside Python     {seen['estates']:,} with {seen['rules']:,} rules and {seen['requests']:,} requests",
        f"  differing              {len(differences):,}",
        f"calls with bad arguments {misused.total():,}",
        *(f"  {what:22} {number:,}" for what, number in misused.most_common()),
        f"  wrong                  {len(wrong):,}",
        f"damaged logs             {logs.total():,}, scanned as by the Python path: {logs['scanned alike']:,}",
        "memory errors            0",
        f"wall time                {time.perf_counter() - begin:,.0f} s\n",
    ]
    print(text := "\n".join(lines), *differences[:20], *wrong[:20], sep="\n")
    if chosen.out is not None:
        chosen.out.write_text(text, encoding="utf-8")
    return 1 if differences or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
