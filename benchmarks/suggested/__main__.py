"""Learns 90 days, tests the next 30, and rolls on through a synthetic year, for several --fold; prints and plots it.

python -m benchmarks.suggested [--seed N]     writes results/suggested.txt and results/suggested.svg
"""

import argparse
from collections import Counter
from collections.abc import Iterator

import matplotlib as mpl
import pyarrow as pa
from attrs import define, field

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.settings import Settings
from aclog.usage.counting import COUNTED
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.decisions.intervals import Rules
from aclog.usage.needs import Needs
from aclog.usage.simulation import simulate
from aclog.usage.suggestion import Question, suggest
from aclog.usage.suggestion_proof import prove
from aclog.usage.window import DAY
from benchmarks.report import RESULTS
from benchmarks.suggested.year import DAYS, Year

LEARNED, TESTED = 90, 30
ROLLS = len(range(LEARNED, DAYS - TESTED + 1, TESTED))
FOLDS = (2, 3, 5, 8, 12, None)
SETTINGS = Settings()
_KINDS = ("name never seen", "principal new to the name", "used before the window")
_OPERATIONS = sum(1 << operation for operation in AclOperation if operation > AclOperation.ALL)


@define
class Curve:
    """What one --fold came to, over all rolls."""

    accesses: int = 0
    rules: int = 0
    now: int = 0
    over: int = 0
    over_now: int = 0
    denials: Counter[str] = field(factory=Counter)
    distinct: int = 0
    """Distinct (principal, operation, name) among the denials."""


def counted(year: Year, days: range) -> pa.Table:
    """Return the accesses of some days (COUNTED)."""
    rows = []
    for use in year.uses:
        made = [(day, count) for day in days if (count := use.on(day))]
        if made:
            what = (AclOperation(use.operation).name, ResourceType(use.resource_type).name, use.name)
            total = sum(count for _, count in made)
            rows.append((use.principal, use.host, *what, 0, total, made[0][0] * DAY, made[-1][0] * DAY))
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], schema=COUNTED)


def image_of(acls: list[StandardAcl]) -> AclsImage:
    """Return an image of rules."""
    return AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in acls)


def roll(year: Year, day: int, curves: dict[int | None, Curve]) -> None:
    """Learn up to a day, and test from it on."""
    learned, tested = counted(year, range(day - LEARNED, day)), counted(year, range(day, day + TESTED))
    acls = year.present(day - 1)
    present = image_of(acls)
    rules = Rules.of_image(present)
    needs = Needs.of(learned, rules, SETTINGS)
    allowed = Needs.of(tested, rules, SETTINGS)
    before = counted(year, range(-DAYS, day - LEARNED))
    seen, ever = _seen(learned), _seen(before)
    for fold, curve in curves.items():
        suggestion = suggest(needs, acls, Question(settings=SETTINGS, fold=fold))
        prove(present, suggestion.acls, learned, SETTINGS)
        after = image_of(suggestion.acls)
        found = simulate(tested, (rules, SETTINGS), (Rules.of_image(after), SETTINGS))
        for flip in found.flips.to_pylist():
            curve.denials[_kind(flip, seen, ever)] += flip["count"]
        names = [name for name in REQUEST_COLUMNS if name != "host"]
        curve.distinct += len(found.flips.group_by(names).aggregate([]))
        curve.accesses += sum(each.accesses for each in allowed.by_access.values())
        curve.rules += len(suggestion.rules)
        curve.now += len(acls)
        if day == LEARNED:
            curve.over, curve.over_now = over_grant(after, needs), over_grant(present, needs)


def _seen(table: pa.Table) -> set[tuple[str, ...]]:
    """Return the names that were used, and who used them for what."""
    columns = (table.column(name).to_pylist() for name in ("principal", "operation", "resourceType", "resourceName"))
    found = set(zip(*columns, strict=True))
    return found | {each[2:] for each in found}


def _kind(flip: dict[str, str], seen: set[tuple[str, ...]], ever: set[tuple[str, ...]]) -> str:
    use = tuple(flip[name] for name in REQUEST_COLUMNS if name != "host")
    if use in ever:
        return _KINDS[2]
    return _KINDS[1] if use[2:] in seen | ever else _KINDS[0]


def over_grant(image: AclsImage, needs: Needs) -> int:
    """Return how many (principal, topic, operation) are granted from any host and were never used."""
    used: Counter[tuple[str, str]] = Counter()
    for need in needs.by_access:
        if need.resource_type == ResourceType.TOPIC:
            used[need.principal, need.resource_name] |= 1 << need.operation | 1 << AclOperation.DESCRIBE
    who = {need.principal for need in needs.by_access}
    topics = needs.names[ResourceType.TOPIC]
    masks = ((image.mask(p, "192.0.2.1", ResourceType.TOPIC, t), used.get((p, t), 0)) for p in who for t in topics)
    return sum((mask & ~(mask >> 16) & _OPERATIONS & ~done).bit_count() for mask, done in masks)


def lines(curves: dict[int | None, Curve], seed: int) -> Iterator[str]:
    """Yield the table."""
    yield f"{LEARNED} days learned, {TESTED} tested, {ROLLS} times over a synthetic year (seed {seed});"
    yield "accesses that the rules at the end of the learned days allow, and the suggestion denies, of 10,000:"
    yield (
        f"{'--fold':>6}  {'denied':>8}  "
        + "  ".join(f"{kind:>25}" for kind in _KINDS)
        + "  distinct     rules  over-grant"
    )
    for fold, curve in curves.items():
        parts = [curve.denials[kind] * 10_000 / curve.accesses for kind in _KINDS]
        kinds = "  ".join(f"{part:>25.2f}" for part in parts)
        over = f"{curve.over / curve.over_now:>10.4f}"
        size = f"{curve.distinct / ROLLS:>8.1f}  {curve.rules // ROLLS:>8,}"
        yield f"{fold or 'none':>6}  {sum(parts):>8.2f}  {kinds}  {size}  {over}"
    some = curves[FOLDS[0]]
    yield "distinct: uses (principal, operation, name) that are denied in 30 days;"
    yield f"now: {some.now // ROLLS:,} rules; over-grant is the share of what they give and nobody used;"
    yield f"{some.accesses:,} accesses tested"


def draw(curves: dict[int | None, Curve]) -> None:
    """Write results/suggested.svg."""
    mpl.use("svg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "aclog"  # reproducible output
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6))
    names = [str(fold or "none") for fold in curves]
    bottom = [0.0] * len(names)
    for kind in _KINDS:
        parts = [curve.denials[kind] * 10_000 / curve.accesses for curve in curves.values()]
        axes[0].bar(names, parts, bottom=bottom, label=kind)
        bottom = [low + part for low, part in zip(bottom, parts, strict=True)]
    axes[0].legend(fontsize=7)
    axes[0].set(title="new denials in 10,000 accesses", xlabel="--fold")
    axes[1].plot(names, [curve.rules / ROLLS for curve in curves.values()], "o-")
    axes[1].set(title="rules", xlabel="--fold", ylim=(0, None))
    axes[2].plot(names, [curve.over / curve.over_now for curve in curves.values()], "o-")
    axes[2].set(title="over-grant, of that of the rules now", xlabel="--fold", ylim=(0, None))
    figure.tight_layout()
    figure.savefig(RESULTS / "suggested.svg", metadata={"Date": None})


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    year, curves = Year.of(seed), {fold: Curve() for fold in FOLDS}
    for day in range(LEARNED, DAYS - TESTED + 1, TESTED):
        roll(year, day, curves)
    text = "\n".join(lines(curves, seed)) + "\n"
    (RESULTS / "suggested.txt").write_text(text, encoding="utf-8")
    print(text, end="")
    draw(curves)


if __name__ == "__main__":
    main()
