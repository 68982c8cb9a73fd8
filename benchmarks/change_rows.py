"""How many rows a commit reads in: ten estates in the style of team prefixes, apps, consumers and producers.

The baseline is naive folding: changed rules that differ in their principal only are one row.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from aclog.analysis.comparison import differences
from aclog.analysis.policy import Policy
from aclog.analysis.rows.folding import rows
from aclog.analysis.rows.report import naive_rows
from aclog.authorizer.acls_image import AclsImage
from benchmarks.measurement import percentile
from benchmarks.report import Row
from tests.support.analysis.commits import commits

MEDIAN_TARGET, P95_TARGET = 2, 6
_LONG = 10


def _counts(seed: int, count: int) -> tuple[int, list[int], list[int], int]:
    """Return how many rules an estate ends with, the rows of each commit after the first, naive ones, and summaries."""
    before, ours, naive, summaries = Policy(AclsImage.empty()), [], [], 0
    for commit in commits(seed, count):
        after = Policy(before.acls.apply(commit.records()).merged())
        found = rows(differences(before, after, changed=commit.rules()), before, after, commit.changed())
        ours.append(len(found))
        naive.append(len(naive_rows(commit.changed())))
        summaries += sum(row.summary is not None for row in found)
        before = after
    return len(before.acls), ours[1:], naive[1:], summaries


def _figures(what: str, ours: Sequence[int], naive: Sequence[int]) -> Iterator[Row]:
    for share, target in ((0.5, MEDIAN_TARGET), (0.95, P95_TARGET)):
        value, limit = percentile(ours, share), float(target)
        yield Row(what=f"{what}: p{share * 100:.0f}", ours=value, unit="rows", target=limit)
        yield Row(
            what=f"{what}: p{share * 100:.0f}, and naively", ours=value, theirs=percentile(naive, share), unit="rows"
        )
    yield Row(what=f"{what}: at most, and naively", ours=max(ours), theirs=max(naive), unit="rows")


def run(estates: int, count: int) -> Iterator[Row]:
    """Yield the figures of so many estates with so many commits each, and of all together."""
    all_ours: list[int] = []
    all_naive: list[int] = []
    all_summaries = 0
    for seed in range(estates):
        rules, ours, naive, summaries = _counts(seed, count)
        yield from _figures(f"estate {seed} ({rules:,} rules, {len(ours):,} commits)", ours, naive)
        all_ours += ours
        all_naive += naive
        all_summaries += summaries
    yield from _figures(f"all {len(all_ours):,} commits", all_ours, all_naive)
    more = sum(one > other for one, other in zip(all_ours, all_naive, strict=True))
    yield Row(what="commits with more rows than naive ones", ours=more, unit="", target=0)
    yield Row(what="rows that are summaries", ours=all_summaries * 100 / sum(all_ours), unit="%")
    histogram, naively = (Counter(min(each, _LONG) for each in counts) for counts in (all_ours, all_naive))
    for number in range(_LONG + 1):
        what = f"commits in {number} row{'s' * (number != 1)}{' or more' * (number == _LONG)}"
        bar = "█" * round(histogram[number] * 50 / len(all_ours))
        ours_share, theirs_share = (each[number] * 100 / len(all_ours) for each in (histogram, naively))
        yield Row(what=f"{what} {bar} (naively {theirs_share:.1f} %)", ours=ours_share, unit="%")
