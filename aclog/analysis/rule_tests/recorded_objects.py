"""Tests as the objects of a YAML file, in the making: whom they are about, and lists of resources by operation."""

from collections.abc import Iterable, Mapping

from aclog.analysis.regions.operations import REQUESTED, operations_of
from aclog.analysis.rule_tests.case_subject import CaseSubject
from aclog.analysis.rule_tests.listed_access import ANY_HOST, ListedAccess
from aclog.analysis.rule_tests.tested_resource import resource_text

TestObject = dict[str, object]


def by_operation(items: Iterable[tuple[int, object]]) -> dict[str, list[object]]:
    """Return what is said of some operations, as masks, by their names; `ALL` stands for all 13."""
    found: dict[str, list[object]] = {}
    for mask, item in items:
        names = ["ALL"] if mask == REQUESTED else [operation.name for operation in operations_of(mask)]
        for name in names:
            listed = found.setdefault(name, [])
            if item not in listed[-1:]:
                listed.append(item)
    return dict(sorted(found.items()))


def item_of(access: ListedAccess) -> object:
    """Return an item of `can_only`: a text, or a mapping if it leaves something out or names hosts."""
    text = resource_text(access.resource)
    if not access.but and access.hosts == ANY_HOST:
        return text
    word, _, name = text.partition(":")
    item: dict[str, object] = {word: name or access.resource.name}
    if access.but:
        item["except"] = [resource_text(each).partition(":")[2] for each in access.but]
    if access.hosts.entries:
        item["from"] = list(access.hosts.entries)
    if access.hosts.but:
        item["not_from"] = list(access.hosts.but)
    return item


def test_object(name: str, subject: CaseSubject, expected: Mapping[str, object]) -> TestObject:
    """Return a test of a subject."""
    test: TestObject = {"name": name, "principal": subject.principal}
    if subject.but:
        test["except"] = list(subject.but)
    if subject.host is not None:
        test["host"] = subject.host
    return {**test, **expected}
