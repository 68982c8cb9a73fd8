"""Our side of an estate, in a process of its own: `python -m benchmarks.estates.side DIRECTORY [PASSES_MS]`.

The directory holds `base` (the flat base), `requests`, and perhaps `changes` and `denied`
(benchmarks.estates.files). The answer is one JSON object on stdout: ns a decision in each state, and the decisions.
ACLOG_NATIVE=0 turns the native core off.
"""

import gc
import json
import os
import sys
import time
from pathlib import Path

from attrs import frozen

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.base import base_of
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.server.audit_log import AuditLog
from benchmarks import shapes
from benchmarks.estates.files import read_changes, read_requests
from benchmarks.estates.handler import handler_ns

FRESH = 3
"""How often a pass is made with nothing remembered; the best counts."""

_Call = tuple[RequestContext, list[Action]]


@frozen
class Side:
    """One estate, and how long the passes over its requests may take."""

    directory: Path
    budget_ns: int

    def calls(self, file: str = "requests") -> list[_Call]:
        """Return the requests of a file as objects that were never asked before: not even their hashes are known.

        Only those of the file `denied` are logged if they are denied: the others ask as a filtered listing does.
        """
        logged = file == "denied"
        contexts: dict[tuple[str, str], RequestContext] = {}
        calls = []
        for principal, host, operation, kind, name in read_requests(self.directory / file):
            context = contexts.setdefault((principal, host), RequestContext(principal=principal, host=host))
            pattern = ResourcePattern(resource_type=ResourceType(kind), name=name)
            action = Action(operation=AclOperation(operation), resource_pattern=pattern, log_if_denied=logged)
            calls.append((context, [action]))
        return calls

    def fresh(self, *, changed: bool) -> AclsImage:
        """Return an image of which nothing is remembered."""
        image = AclsImage(index=AclIndex(base_of(memoryview((self.directory / "base").read_bytes()))))
        if changed:
            for number, added in read_changes(self.directory / "changes"):
                found = shapes.with_id(number, added) if added is not None else None
                image = image.apply((_removal(number) if found is None else shapes.record(found),))
        return image

    def first(self, *, changed: bool) -> float:
        """Return the ns a decision of the best of several first passes; changes are made on one image only."""
        best = float("inf")
        for _ in range(1 if changed else FRESH):
            calls, authorizer = self.calls(), authorizer_of(self.fresh(changed=changed))
            gc.collect()
            gc.freeze()
            best = min(best, pass_ns(authorizer, calls))
        return best

    def again(self, authorizer: StandardAuthorizer, file: str = "requests") -> float:
        """Return the ns a decision of the best of the passes after the first two."""
        calls = self.calls(file)
        pass_ns(authorizer, calls)
        pass_ns(authorizer, calls)
        gc.collect()
        gc.freeze()
        end, best = time.thread_time_ns() + self.budget_ns, float("inf")
        while best == float("inf") or time.thread_time_ns() < end:
            best = min(best, pass_ns(authorizer, calls))
        return best

    def written(self, image: AclsImage) -> float:
        """Return the ns of CPU of all threads for a denied request, until its line is written."""
        calls, authorizer, passes = self.calls("denied"), authorizer_of(image, audited=False), 0
        begun = time.process_time_ns()
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere, AuditLog(nowhere) as log:
            authorizer.set_audit(log)
            while time.process_time_ns() - begun < self.budget_ns:
                pass_ns(authorizer, calls)
                passes += 1
        return (time.process_time_ns() - begun) / (passes * len(calls))


def _removal(number: int) -> RemoveAccessControlEntryRecord:
    return RemoveAccessControlEntryRecord(id=shapes.id_of(number))


_audit = AuditLog(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - until the process ends
"""At Kafka's default level, into nothing. It is entered where requests are logged."""


def authorizer_of(image: AclsImage, *, cache: bool = True, audited: bool = True) -> StandardAuthorizer:
    """Return a ready authorizer as a node has it, but for what is said."""
    authorizer = StandardAuthorizer(cache=cache)
    authorizer.configure({})
    if audited:
        authorizer.set_audit(_audit)
    authorizer.load(image)
    authorizer.complete_initial_load()
    return authorizer


def pass_ns(authorizer: StandardAuthorizer, calls: list[_Call]) -> float:
    """Ask all requests once; return ns of CPU a decision."""
    authorize, start = authorizer.authorize, time.thread_time_ns()
    for context, actions in calls:
        authorize(context, actions)
    return (time.thread_time_ns() - start) / len(calls)


def _decisions(authorizer: StandardAuthorizer, calls: list[_Call]) -> str:
    allowed = AuthorizationResult.ALLOWED
    return "".join("A" if authorizer.authorize(*call)[0] is allowed else "D" for call in calls)


def measured(directory: Path, budget_ms: int) -> dict[str, object]:
    """Return the figures: as a node decides (audited at Kafka's default level, answers cached) unless the name says."""
    side = Side(directory, budget_ms * 1_000_000)
    image = side.fresh(changed=False)
    found: dict[str, object] = {
        "core": "native" if image.index.core is not None else "python",
        "cold": side.first(changed=False),
        "warm": side.again(authorizer_of(image, cache=False)),
        "cached": side.again(authorizer_of(image)),
        "not audited": side.again(authorizer_of(image, audited=False)),
        "in a handler": handler_ns(authorizer_of(image), read_requests(directory / "requests"), side.budget_ns),
        "decisions": _decisions(authorizer_of(image), side.calls()),
    }
    if (directory / "denied").exists():
        with _audit:
            found["denied, logged"] = side.again(authorizer_of(image), "denied")
        found["denied, written"] = side.written(image)
    if (directory / "changes").exists():
        changed = side.fresh(changed=True)
        found["overlay cold"] = side.first(changed=True)
        found["overlay cached"] = side.again(authorizer_of(changed))
        found["overlay decisions"] = _decisions(authorizer_of(changed), side.calls())
    return found


def as_a_node() -> None:
    """Set the collector as nodes do."""
    gc.set_threshold(50_000, 20, 100)


def main() -> None:
    """Measure one estate."""
    as_a_node()
    budget_ms = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    print(json.dumps(measured(Path(sys.argv[1]), budget_ms)))


if __name__ == "__main__":
    main()
