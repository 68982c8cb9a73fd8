"""The ACL index alone: CPU time of decisions, loading, changes and listing.

    python -m benchmarks.index [decide|load|change|list ...] [--resources 10000,200000]

Each figure is thread CPU time (process CPU time if several threads work), the best of several runs after a warm-up, on
a machine that should be idle. The comparison with the real StandardAuthorizer is `python -m benchmarks decide`.
"""

import argparse
import gc
import json
import time
from collections.abc import Callable, Iterator
from random import Random
from uuid import UUID

import pyarrow as pa

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern
from aclog.authorizer.acls_image import AclsImage, Verdict
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from benchmarks.shapes import HOST, STEM, columns, million, rules, user

READ, WRITE = AclOperation.READ, AclOperation.WRITE


def best(run: Callable[[int], object], count: int, repeats: int = 7) -> float:
    """Return nanoseconds per operation, in the best of some runs of `count` operations."""
    run(count)
    taken = []
    for _ in range(repeats):
        start = time.thread_time_ns()
        run(count)
        taken.append(time.thread_time_ns() - start)
    return min(taken) / count


def repeated(ask: Callable[..., object], *arguments: object) -> Callable[[int], None]:
    """Return a function that makes the same call repeatedly."""

    def run(count: int) -> None:
        for _ in range(count):
            ask(*arguments)

    return run


def drained(take: Callable[[AclBindingFilter], Iterator[object]], wanted: AclBindingFilter) -> None:
    for _ in take(wanted):
        pass


def show(**figures: object) -> None:
    print(json.dumps({k: round(v, 2) if isinstance(v, float) else v for k, v in figures.items()}), flush=True)


def single_requests(image: AclsImage, resources: int) -> Iterator[tuple[str, RequestContext, list[Action]]]:
    """Yield a request without a match, and READs by user 7 that only ALLOWs match: by LITERAL, and by prefix."""

    def ask(principal: str, operation: int, kind: int, name: str) -> tuple[RequestContext, list[Action]]:
        pattern = ResourcePattern(resource_type=ResourceType(kind), name=name)
        return RequestContext(principal=principal, host=HOST), [Action(operation=operation, resource_pattern=pattern)]

    yield "no match", *ask(user(0), WRITE, ResourceType.TOPIC, STEM + "95")
    for label, prefixed in (("literal allow", False), ("prefixed allow", True)):
        for r in range(resources - 1, 0, -1):
            kind = ResourceType.GROUP if r % 10 == 0 else ResourceType.TOPIC
            name = STEM + str(r) + ("-x" if prefixed else "")
            if (r % 5 == 0) is prefixed and image.verdict(user(7), HOST, READ, kind, name) is Verdict.ALLOW:
                yield label, *ask(user(7), READ, kind, name)
                break


def mixed_requests(resources: int) -> list[tuple[RequestContext, list[Action]]]:
    """Return 10,000 requests: half READ on existing names, a quarter WRITE, a quarter on names without ACLs."""
    random, asked = Random(1), []
    for _ in range(10_000):
        r, turn, who = random.randrange(resources), random.randrange(4), user(random.randrange(10))
        kind = ResourceType.GROUP if r % 10 == 0 else ResourceType.TOPIC
        pattern = ResourcePattern(resource_type=kind, name=f"other-{r}" if turn == 3 else f"{STEM}{r}")
        action = Action(operation=WRITE if turn == 2 else READ, resource_pattern=pattern)
        asked.append((RequestContext(principal=who, host=HOST), [action]))
    return asked


def ready(image: AclsImage, *, cache: bool) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(cache=cache)
    authorizer.load(image)
    authorizer.complete_initial_load()
    return authorizer


def decide(resources: int, *, wildcards: bool) -> None:
    image = AclsImage.from_columns(columns(rules(resources, wildcards=wildcards)))
    shape = "K" if wildcards else "S"
    for cache in (False, True):
        authorizer = ready(image, cache=cache)
        figures = {}
        for label, context, actions in single_requests(image, resources):
            figures[label] = best(repeated(authorizer.authorize, context, actions), 50_000)
        show(what="authorize, ns", shape=shape, resources=resources, rules=len(image), cache=cache, **figures)
    authorizer, asked, memo = ready(image, cache=False), mixed_requests(resources), image.index.base.memo

    def mixed(_: int) -> None:
        authorize = authorizer.authorize
        for context, actions in asked:
            authorize(context, actions)

    def forgetful(count: int) -> None:
        memo.lookups = {code: {} for code in range(8)}
        mixed(count)

    known, new = best(mixed, len(asked)), best(forgetful, len(asked))
    show(what="authorize, ns, 10,000 mixed", shape=shape, resources=resources, names_known=known, names_new=new)


def resident() -> int:
    pa.default_memory_pool().release_unused()
    gc.collect()
    with open("/proc/self/statm") as f:  # noqa: PTH123
        return int(f.read().split()[1]) * 4096


def load(count: int = 1_000_000) -> AclsImage:
    found, taken = columns(million(count)), []
    before, image = resident(), AclsImage.empty()
    for _ in range(4):
        image = AclsImage.empty()
        start = time.process_time()
        image = AclsImage.from_columns(found)
        taken.append(time.process_time() - start)
    show(what="from_columns, s", rules=count, best=min(taken), bytes_a_rule=(resident() - before) / count)
    return image


def change(image: AclsImage) -> None:
    """Apply one record at a time to an image of a million ACLs, with the garbage collector set as in a node."""
    gc.freeze()
    gc.set_threshold(5_000, 2, 10_000)
    random = Random(3)
    names = [acl.resource_name for acl, _ in zip(million(), range(20_000), strict=False)]

    def add(name: str, pattern: int, principal: str = "User:new") -> AccessControlEntryRecord:
        return AccessControlEntryRecord(
            id=UUID(int=random.getrandbits(128)),
            resource_type=ResourceType.TOPIC,
            resource_name=name,
            pattern_type=pattern,
            principal=principal,
            host="*",
            operation=READ,
            permission_type=3,
        )

    kept = [rule.id for rule, _ in zip(image, range(2000), strict=False)]
    for label, changes in (
        ("new resource", [add(f"new.{n}", PatternType.LITERAL) for n in range(2000)]),
        ("old resource", [add(random.choice(names), PatternType.LITERAL, f"User:{n}") for n in range(2000)]),
        ("new prefix", [add(f"pre.{n}", PatternType.PREFIXED) for n in range(2000)]),
        ("prefix enclosing 100,000s", [add("payments.0"[: n % 10 + 1], 4, f"User:{n}") for n in range(2000)]),
        ("on *", [add("*", PatternType.LITERAL, f"User:{n}") for n in range(2000)]),
        ("removal", [RemoveAccessControlEntryRecord(id=uuid) for uuid in kept if uuid is not None]),
    ):
        taken = []
        for record in changes:
            start = time.thread_time_ns()
            image = image.apply((record,))
            taken.append((time.thread_time_ns() - start) / 1000)
        taken.sort()
        half, most = taken[len(taken) // 2], taken[len(taken) * 99 // 100]
        show(what="apply, us", change=label, p50=half, p99=most, most=taken[-1])
    start = time.process_time()
    size = image.overlay_size
    image.merged()
    show(what="merged, s", changes=size, cpu=time.process_time() - start)


def listing(resources: int = 50_000) -> None:
    for deny in (0, 50):
        image = AclsImage.from_columns(columns(rules(resources, deny_percent=deny, wildcards=True)))
        figures = {}
        for label, principal, operation in (("READ", user(7), READ), ("WRITE", user(7), WRITE), ("?", "User:x", READ)):
            ask = repeated(image.by_resource_type, principal, HOST, operation, ResourceType.TOPIC)
            figures[label] = best(ask, 200) / 1000
        show(what="by_resource_type, us", resources=resources, deny=deny, **figures)
        for label, name, pattern in (("literal", "77", 3), ("prefixed", "75", 4), ("match", "77", 2)):
            wanted = AclBindingFilter(resource_type=2, resource_name=STEM + name, pattern_type=pattern)
            take = image.matching
            found = len(list(take(wanted)))
            taken = best(repeated(drained, take, wanted), 3 if found > 100 else 200) / 1000
            show(what="matching, us", resources=resources, deny=deny, filter=label, rules=found, taken=taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["decide", "load", "change", "list"])
    parser.add_argument("--resources", default="10000,50000,200000")
    chosen = parser.parse_args()
    if "decide" in chosen.parts:
        for wildcards in (False, True):
            for resources in map(int, chosen.resources.split(",")):
                decide(resources, wildcards=wildcards)
    if "list" in chosen.parts:
        listing()
    if {"load", "change"} & set(chosen.parts):
        image = load()
        if "change" in chosen.parts:
            change(image)


if __name__ == "__main__":
    main()
