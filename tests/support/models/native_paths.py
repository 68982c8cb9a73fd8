"""The two paths of a decision, the native core's and Python's, side by side."""

import os
from collections import Counter
from collections.abc import Iterable
from uuid import UUID

import pytest
from attrs import evolve

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index import queries
from aclog.authorizer.index.acl_index import AclIndex, Overlay, apply_changes
from aclog.authorizer.index.layout import (
    ASK_PYTHON,
    DOCUMENTED,
    IN_RANGES,
    NO_RULE,
    RULE_OF_PYTHON,
    known_operation,
    known_type,
)
from aclog.authorizer.interface import InvalidRequestError
from aclog.metalog.records import RemoveAccessControlEntryRecord
from tests.support.kafka.oracle import Ask

PATHS = ("python",) if os.environ.get("NATIVE") == "0" else ("python", "native")
"""`make NATIVE=0 test` tests the Python path alone."""


def through(path: str, image: AclsImage) -> AclsImage:
    """The same image, which decides through one of the paths; so do all images made from it by changes."""
    if path == "native":
        if image.index.core is None:
            pytest.fail("no native core: `make native` builds it; set NATIVE=0 to test without it")
        return image
    base, changed = evolve(image.index.base, core=None), image.index.overlay
    # Made anew: with the native core, an overlay has no patterns by client.
    removals = (RemoveAccessControlEntryRecord(id=UUID(int=base.ids.number(row))) for row in changed.removed)
    overlay = apply_changes(base, Overlay(), [*removals, *changed.added.values()])
    return AclsImage(index=AclIndex(base, overlay), documented=image.documented, cidr=image.cidr)


def differing(image: AclsImage, asks: Iterable[Ask], counts: Counter[str]) -> list[str]:
    """What the native core says otherwise than the Python path; `counts` counts what it answered and left."""
    python, texts = through("python", image), []
    for ask in asks:
        if ask.by_type:
            continue
        for documented in (False, True):
            texts += _differing(image, python.index, ask, documented, counts)
    return texts


def _differing(image: AclsImage, python: AclIndex, ask: Ask, documented: bool, counts: Counter[str]) -> list[str]:
    core, kind = through("native", image).index.core, known_type(ask.resource_type)
    subject_of, semantics = (ask.principal, ask.host), DOCUMENTED * documented | IN_RANGES * image.cidr
    request = ask.resource_type, ask.name, semantics
    levels = python.levels(kind, ask.name, documented=documented)
    expected = {"has_candidate": int(bool(levels.named or levels.wildcard or levels.empty))}
    actual = {"has_candidate": core.has_candidate(*request)}
    try:
        subject = through("python", image).subject(*subject_of)
    except InvalidRequestError:
        expected |= {"mask": ASK_PYTHON, "rule": RULE_OF_PYTHON}
    else:
        operation = known_operation(ask.operation)
        expected["mask"] = python.mask(subject, kind, ask.name, documented)
        expected["rule"] = queries.determining(
            python, subject, operation, resource_type=kind, name=ask.name, documented=documented
        )
    actual["mask"] = core.mask(*subject_of, *request)
    row = core.rule(*subject_of, ask.operation, *request)
    actual["rule"] = row if row == RULE_OF_PYTHON else None if row == NO_RULE else image.index.base.rule(row)
    passed = {"has_candidate": ASK_PYTHON, "mask": ASK_PYTHON, "rule": RULE_OF_PYTHON}
    for what, answer in actual.items():
        counts[f"{what} {'left to Python' if answer == passed[what] else 'answered'}"] += 1
    return [
        f"{ask}, documented={documented}: {what} {answer}, not {expected[what]}"
        for what, answer in actual.items()
        if answer not in (expected[what], passed[what])
    ]
