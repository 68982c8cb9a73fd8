"""authorize, authorizeByResourceType and filtering vs. the real StandardAuthorizer with the same ACLs."""

import json
import random
import tempfile
from collections.abc import Callable, Iterator

from attrs import frozen

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from benchmarks import shapes
from benchmarks.measurement import best_ns
from benchmarks.report import Row
from benchmarks.rival import Rival

DENY_PERCENT = 50
TARGETS = {("K", 10_000): 50.0, ("K", 50_000): 500.0, ("K", 200_000): 1500.0, ("S", 10_000): 1.2, ("S", 200_000): 1.2}
CACHED_TARGET = 10.0


def requests(resources: int) -> dict[str, dict[str, str]]:
    """Return the three requests that are timed individually; the allowed ones match no DENY for the user."""
    literal, prefixed = (_allowed(range(resources // 2 + first, resources, 10)) for first in (7, 5))
    return {
        "no match": _request("User:test-user", "WRITE", shapes.STEM + "95"),
        "literal allow": _request("User:test-user7", "READ", f"{shapes.STEM}{literal}"),
        "prefixed allow": _request("User:test-user7", "READ", f"{shapes.STEM}{prefixed}-suffix"),
    }


def _allowed(names: range) -> int:
    """Return the first resource without a DENY for user 7: Kafka's search ends at the first DENY."""
    return next(r for r in names if not shapes.is_denied(r * 10 + 7, DENY_PERCENT))


def _request(principal: str, operation: str, name: str, kind: str = "TOPIC") -> dict[str, str]:
    return {
        "principal": principal,
        "host": shapes.HOST,
        "operation": operation,
        "resourceType": kind,
        "resourceName": name,
    }


def mixed(resources: int, count: int) -> list[dict[str, str]]:
    """Return requests: half READ on existing names, a quarter WRITE, a quarter on names without ACLs; shuffled."""
    draw = random.Random(1)
    rows = []
    for number in range(count):
        principal = shapes.user(draw.randrange(10))
        name = shapes.STEM + str(draw.randrange(resources))
        if number % 4 == 3:
            name = f"nowhere-{draw.randrange(resources)}"
        rows.append(_request(principal, "WRITE" if number % 4 == 2 else "READ", name))
    draw.shuffle(rows)
    return rows


def _prebuilt(row: dict[str, str]) -> tuple[RequestContext, list[Action]]:
    pattern = ResourcePattern(
        resource_type=ResourceType[row["resourceType"]],
        name=row["resourceName"],
        pattern_type=PatternType.LITERAL,
    )
    context = RequestContext(principal=row["principal"], host=row["host"])
    return context, [Action(operation=AclOperation[row["operation"]], resource_pattern=pattern)]


def _authorizer(image: AclsImage, *, cache: bool) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(cache=cache)
    authorizer.configure({})
    authorizer.load(image)
    authorizer.complete_initial_load()
    return authorizer


def _calling(authorizer: StandardAuthorizer, row: dict[str, str]) -> Callable[[], list[AuthorizationResult]]:
    context, actions = _prebuilt(row)
    authorize = authorizer.authorize
    return lambda: authorize(context, actions)


@frozen(kw_only=True)
class _Case:
    """Both sides with the same ACLs: the JVM, our image, and how long a round of the JVM lasts."""

    rival: Rival
    image: AclsImage
    resources: int
    shape: str
    round_ms: int

    @property
    def where(self) -> str:
        """The shape and size, for the names of rows."""
        return f"{self.shape} {self.resources:,}"


def run(rival: Rival, sizes: list[int], round_ms: int) -> Iterator[Row]:
    """Yield rows for shapes K and S at each size."""
    for shape in ("K", "S"):
        for resources in sizes:
            if shape == "S" and resources == 50_000:
                continue
            wildcards = shape == "K"
            built = rival.ask(
                "build", resources=resources, perResource=10, denyPercent=DENY_PERCENT, wildcards=wildcards
            )
            columns = shapes.columns(shapes.rules(resources, deny_percent=DENY_PERCENT, wildcards=wildcards))
            image = AclsImage.from_columns(columns)
            if len(image) != built["rules"]:
                raise AssertionError(f"{len(image)} ACLs here, {built['rules']} in Kafka")
            case = _Case(rival=rival, image=image, resources=resources, shape=shape, round_ms=round_ms)
            yield from _single(case)
            yield from _mixed(case)
            if resources == 50_000:
                yield from _listing(case)


def _single(case: _Case) -> Iterator[Row]:
    round_ms, where, target = case.round_ms, case.where, TARGETS[case.shape, case.resources]
    plain, cached = _authorizer(case.image, cache=False), _authorizer(case.image, cache=True)
    for name, row in requests(case.resources).items():
        theirs = case.rival.ask("authorize", roundMillis=round_ms, kind="authorize", **row)
        _agree(theirs["result"], _calling(plain, row)()[0], row)
        ours = best_ns(_calling(plain, row), round_ms=round_ms)
        yield Row(what=f"{where}: {name}", ours=ours, theirs=theirs["nanos"], unit="ns", target=target)
        ours = best_ns(_calling(cached, row), round_ms=round_ms)
        yield Row(
            what=f"{where}: {name}, answers cached",
            ours=ours,
            theirs=theirs["nanos"],
            unit="ns",
            target=CACHED_TARGET if case.shape == "S" else None,
        )


def _agree(theirs: str, ours: AuthorizationResult, row: object) -> None:
    if theirs != ours.value:
        raise AssertionError(f"{row}: {ours.value} here, {theirs} in Kafka")


def _mixed(case: _Case) -> Iterator[Row]:
    image, resources, where, round_ms = case.image, case.resources, case.where, case.round_ms
    # Kafka scans a section for milliseconds per request in large shapes: 10,000 requests per round would take hours.
    rows = mixed(resources, 500 if case.shape == "K" and resources > 10_000 else 10_000)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps({"kind": "authorize", **row}) + "\n" for row in rows)
        file.flush()
        theirs = case.rival.ask("mixed", file=file.name, roundMillis=round_ms)
    calls = [_prebuilt(row) for row in rows]
    fresh = _authorizer(AclsImage.from_acls(image), cache=False) if len(image) < 200_000 else None
    if fresh is not None:
        ours = _first_pass_ns(fresh, calls)
        what = f"{where}: mixed, each name seen for the first time"
        yield Row(what=what, ours=ours, theirs=theirs["nanos"], unit="ns")
    for cache in (False, True):
        authorizer = _authorizer(image, cache=cache)
        allowed = sum(authorizer.authorize(*call)[0] is AuthorizationResult.ALLOWED for call in calls)
        if allowed != theirs["allowed"]:
            raise AssertionError(f"mixed: {allowed} allowed here, {theirs['allowed']} in Kafka")

        def all_of_them(authorizer: StandardAuthorizer = authorizer) -> None:
            authorize = authorizer.authorize
            for context, actions in calls:
                authorize(context, actions)

        ours = best_ns(all_of_them, round_ms=round_ms, calls_per_check=1) / len(calls)
        name = "mixed, answers cached" if cache else "mixed"
        yield Row(what=f"{where}: {name}", ours=ours, theirs=theirs["nanos"], unit="ns")


def _first_pass_ns(authorizer: StandardAuthorizer, calls: list[tuple[RequestContext, list[Action]]]) -> float:
    """Time a single pass with cold caches; it cannot be repeated on the same authorizer."""
    import time

    start = time.thread_time_ns()
    for context, actions in calls:
        authorizer.authorize(context, actions)
    return (time.thread_time_ns() - start) / len(calls)


def _listing(case: _Case) -> Iterator[Row]:
    where, round_ms = case.where, case.round_ms
    authorizer = _authorizer(case.image, cache=False)
    for name, principal in (("allowed", "User:test-user7"), ("unknown principal", "User:nobody")):
        row = _request(principal, "READ", "")
        theirs = case.rival.ask("byResourceType", **{**row, "kind": "byResourceType"}, roundMillis=round_ms * 5)
        context = RequestContext(principal=principal, host=shapes.HOST)

        def by_type(context: RequestContext = context) -> AuthorizationResult:
            return authorizer.authorize_by_resource_type(context, AclOperation.READ, ResourceType.TOPIC)

        _agree(theirs["result"], by_type(), row)
        ours = best_ns(by_type, round_ms=round_ms)
        what = f"{where}: authorizeByResourceType, {name}"
        yield Row(what=what, ours=ours, theirs=theirs["nanos"], unit="ns", target=1000.0)
    name = f"{shapes.STEM}{case.resources // 2 + 7}"
    theirs = case.rival.ask("filter", name=name, roundMillis=round_ms * 5)
    wanted = AclBindingFilter(resource_type=ResourceType.TOPIC, resource_name=name, pattern_type=PatternType.LITERAL)
    found = len(list(authorizer.acls(wanted)))
    if found != theirs["found"]:
        raise AssertionError(f"filter: {found} here, {theirs['found']} in Kafka")
    ours = best_ns(lambda: list(authorizer.acls(wanted)), round_ms=round_ms)
    yield Row(what=f"{where}: filter of one topic", ours=ours, theirs=theirs["nanos"], unit="ns", target=1000.0)
