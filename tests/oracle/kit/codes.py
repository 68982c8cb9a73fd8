"""The codes of ACLs in a release, and the operations that each resource type supports, beside aclog's."""

from enum import IntEnum

from aclog.authorizer.codes import SUPPORTED_OPERATIONS, AclOperation, AclPermissionType, PatternType, ResourceType
from tests.oracle.kit.values import Difference, Outcome
from tests.support.kafka.release_facts import ReleaseFacts

CHECK = "codes of ACLs"
KINDS: tuple[type[IntEnum], ...] = (ResourceType, PatternType, AclOperation, AclPermissionType)


def check_codes(facts: ReleaseFacts) -> Outcome:
    """Compare names, codes and supported operations."""
    found, compared = list[Difference](), 0
    for kind in KINDS:
        ours = {each.name: each.value for each in kind}
        for name, code in facts.codes[kind.__name__].items():
            compared += 1
            if ours.get(name) != code:
                subject = f"{kind.__name__}.{name}"
                found.append(Difference(subject=subject, kafka=str(code), aclog=str(ours.get(name, "not known"))))
    supported = {kind.name: operations for kind, operations in SUPPORTED_OPERATIONS.items()}
    for name, operations in facts.supported_operations.items():
        compared += 1
        ours_of_type = sorted(operation.name for operation in supported.get(name, ()))
        if ours_of_type != list(operations):
            subject = f"operations on {name}"
            found.append(Difference(subject=subject, kafka=", ".join(operations), aclog=", ".join(ours_of_type)))
    return Outcome(check=CHECK, compared=compared, differences=tuple(found))
