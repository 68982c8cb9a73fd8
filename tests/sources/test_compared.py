"""What tests of rules compare with: another source, and accesses."""

import json
from pathlib import Path

import pytest

from aclog.analysis.rule_tests.case import parse_resource
from aclog.analysis.rule_tests.expectations import NoNewAccess, SameAs
from aclog.authorizer.acl import FileOrigin
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import MetadataError
from aclog.sources.named_source import NamedSource
from aclog.sources.rule_tests import AccessesFile, SourcePolicy

ORIGIN = FileOrigin(file="tests.yaml", line=1)


def rule(name: str, principal: str = "User:a") -> str:
    row = {"resourceType": "TOPIC", "resourceName": name, "patternType": "LITERAL", "principal": principal}
    return json.dumps({**row, "host": "*", "operation": "READ", "permissionType": "ALLOW"})


def access(name: str, principal: str = "User:a") -> str:
    row = {"principal": principal, "host": "10.0.0.1", "operation": "READ"}
    return json.dumps({**row, "resourceType": "TOPIC", "resourceName": name})


def other(path: Path, *rules: str) -> SourcePolicy:
    path.write_text("".join(f"{each}\n" for each in rules))
    return SourcePolicy(source=NamedSource(kind="acls", value=str(path), place="tests.yaml:1"))


def test_accesses_are_decided_as_by_another_source(tmp_path: Path) -> None:
    old, new = other(tmp_path / "old", rule("t"), rule("u")), other(tmp_path / "new", rule("t"), rule("v"))
    accesses = tmp_path / "accesses.jsonl"
    accesses.write_text("\n".join((access("t"), access("t"), access("w"))))
    file = AccessesFile(path=str(accesses), place="tests.yaml:1")
    case = SameAs(test="", origin=ORIGIN, other=old, accesses=file)
    assert case.run(new.policy(Settings())).passed
    accesses.write_text("\n".join((access("u"), access("u"), access("v"))))
    case = SameAs(test="", origin=ORIGIN, other=old, accesses=AccessesFile(path=str(accesses), place=""))
    found = sorted(failure.actual for failure in case.run(new.policy(Settings())).failures)
    assert len(found) == 2
    assert "(2 times) is denied, but was allowed" in found[0]
    assert "is allowed, but was denied" in found[1]


def test_no_new_access_but_in_the_sandbox(tmp_path: Path) -> None:
    old = other(tmp_path / "old", rule("t"))
    but = (parse_resource("topic:sandbox.*"),)
    case = NoNewAccess(test="", origin=ORIGIN, than=old, but=but)
    assert case.run(other(tmp_path / "a", rule("sandbox.x")).policy(Settings())).passed
    outcome = case.run(other(tmp_path / "b", rule("t"), rule("sandbox.x"), rule("sandbox")).policy(Settings()))
    (failure,) = outcome.failures
    assert failure.request is not None
    assert failure.request.resource_name == "sandbox"


def test_what_cannot_be_read_is_trouble_and_never_a_pass(tmp_path: Path) -> None:
    there = other(tmp_path / "there", rule("t"))
    missing = SourcePolicy(source=NamedSource(kind="acls", value=str(tmp_path / "none"), place="tests.yaml:3"))
    with pytest.raises(MetadataError, match=r"tests\.yaml:3: .*no such file"):
        NoNewAccess(test="", origin=ORIGIN, than=missing).run(there.policy(Settings()))
    broken = tmp_path / "broken.jsonl"
    for text, complaint in (("", "no access"), (f"{access('t')}\n{{}}", "1 lines or rows are not accesses")):
        broken.write_text(text)
        case = SameAs(
            test="", origin=ORIGIN, other=there, accesses=AccessesFile(path=str(broken), place="tests.yaml:4")
        )
        with pytest.raises(MetadataError, match=complaint):
            case.run(there.policy(Settings()))
