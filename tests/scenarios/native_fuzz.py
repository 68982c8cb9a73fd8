"""`make fuzz-native`: flat bases with flipped bytes, asked through the native core under sanitizers.

    python -m tests.scenarios.native_fuzz --bases 200000 --out benchmarks/results/fuzz-native.txt

A base is guarded by a checksum where it is stored; here it is wrong all the same. The core may refuse it or answer
anything, but must read and write only what is its own: the address sanitizer ends the process if it does not.
"""

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from struct import pack_into

from aclog.authorizer.index.layout import Column
from aclog.metalog.native import native
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


def damaged(whole: bytes, random: Random) -> bytearray:
    """A copy with a few bytes or numbers changed, anywhere or in one column."""
    copy = bytearray(whole)
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        at = random.randrange(len(copy))
        if random.randrange(3):
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


def _outcome(flat: bytearray, asks: list[Ask], random: Random) -> str:
    try:
        core = native.Base(flat)
    except ValueError:
        return "refused when opened"
    found = "answered"
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


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bases", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    sanitized = "libasan" in os.environ.get("LD_PRELOAD", "")
    begin = time.perf_counter()
    outcomes = damaged_bases(seed=chosen.seed, count=chosen.bases)
    how = "under the address and undefined behaviour sanitizers" if sanitized else "WITHOUT sanitizers"
    lines = [
        f"Flat bases with flipped bytes through the native core, {how} (make fuzz-native)\n",
        f"seed                     {chosen.seed}",
        f"damaged bases            {outcomes.total():,}, 20 requests and 20 changes each",
        *(f"  {what:22} {number:,}" for what, number in outcomes.most_common()),
        "memory errors            0",
        f"wall time                {time.perf_counter() - begin:,.0f} s\n",
    ]
    print(text := "\n".join(lines))
    if chosen.out is not None:
        chosen.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
