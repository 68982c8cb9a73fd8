"""`aclog test --record`: tests of what is decided today, which hold, read well, and kill every mutant."""

import json
from pathlib import Path
from random import Random

import jsonschema
import pytest
import yaml

from aclog.authorizer.settings import Settings
from tests.support.analysis.policies import distinct, random_rule, random_settings
from tests.support.cli.command import aclog
from tests.support.sources.round_trip import json_line

RULES = """\
READ PREFIXED bill. User:billing * ALLOW
READ LITERAL pii.card User:audit 10.0.0.9 ALLOW
ALL PREFIXED pii. User:billing * DENY
DESCRIBE LITERAL * User:* * ALLOW
"""


def rows(text: str) -> str:
    lines = []
    for line in text.splitlines():
        operation, pattern, name, principal, host, permission = line.split()
        row = {"resourceType": "TOPIC", "resourceName": name, "patternType": pattern, "principal": principal}
        lines.append(json.dumps({**row, "host": host, "operation": operation, "permissionType": permission}))
    return "\n".join(lines) + "\n"


@pytest.fixture
def acls(tmp_path: Path) -> Path:
    path = tmp_path / "acls.jsonl"
    path.write_text(rows(RULES))
    return path


def test_a_state_reads_as_who_can_only_do_what(acls: Path, tmp_path: Path) -> None:
    out = tmp_path / "recorded.yaml"
    aclog("test", "--record", out, "--acls", acls).ok()
    head, *lines = out.read_text().splitlines()
    assert head.startswith("# Recorded by aclog ")
    assert lines == [
        "rules: acls.jsonl",
        "tests:",
        "- name: what is denied to others",
        "  who_can:",
        "    READ topic:pii.*: [User:audit]",
        "- name: User:audit",
        "  principal: User:audit",
        "  can_only:",
        "    DESCRIBE: [topic:*]",
        "    READ:",
        "    - topic: pii.card",
        "      from: [10.0.0.9]",
        "- name: User:billing",
        "  principal: User:billing",
        "  can_only:",
        "    DESCRIBE:",
        "    - topic: '*'",
        "      except: [pii.*]",
        "    READ: [topic:bill.*]",
        "  cannot:",
        "    ALL: [topic:pii.*]",
        "- name: everyone else",
        "  principal: User:*",
        "  except: [User:audit, User:billing]",
        "  can_only:",
        "    DESCRIBE: [topic:*]",
    ]
    aclog("test", out).ok()
    assert aclog("test", out, "--acls", tmp_path / "none").code == 2


def test_an_existing_file_is_never_overwritten(acls: Path, tmp_path: Path) -> None:
    out = tmp_path / "there.yaml"
    out.write_text("mine")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "nowhere")
    for path in (out, tmp_path / "link.yaml"):
        result = aclog("test", "--record", path, "--acls", acls)
        assert result.code == 2
        assert "it exists already" in result.complaint
    assert out.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_what_a_log_removed_stays_denied(acls: Path, tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "recorded.yaml"
    aclog("import", acls, "--log", log).ok()
    bob = ("--allow-principal", "User:bob", "--operation", "READ", "--topic", "pay")
    aclog("acls", "add", "--log", log, *bob).ok()
    aclog("acls", "remove", "--log", log, *bob, "--force").ok()
    aclog("test", "--record", out, "--log", log).ok()
    assert "- name: taken from User:bob, last at offset " in out.read_text()
    aclog("test", out).ok()
    aclog("acls", "add", "--log", log, *bob).ok()
    failed = aclog("test", out, "--run", "taken from User:bob*")
    assert failed.code == 1
    assert "User:bob cannot READ topic:pay" in failed.out


def test_accesses_are_recorded_as_they_are_decided_and_folded(acls: Path, tmp_path: Path) -> None:
    out, accesses = tmp_path / "recorded.yaml", tmp_path / "accesses.jsonl"
    asked = [("User:billing", "READ", f"bill.{n}", "10.0.0.1") for n in range(5)]
    asked += [("User:billing", "READ", "pii.card", "10.0.0.1"), ("User:audit", "READ", "pii.card", "10.0.0.9")]
    asked += [("User:audit", "READ", "pii.card", "10.0.0.1"), ("User:audit", "WRITE", "t", "10.0.0.1")]
    keys = ("principal", "operation", "resourceName", "host")
    lines = (json.dumps({**dict(zip(keys, each, strict=True)), "resourceType": "TOPIC"}) for each in asked)
    accesses.write_text("\n".join(lines))
    aclog("test", "--record", out, "--acls", acls, "--accesses", accesses).ok()
    assert out.read_text().splitlines()[3:] == [
        "- name: User:audit",
        "  principal: User:audit",
        "  cannot:",
        "    WRITE: [topic:t]",
        "- name: User:audit from 10.0.0.1",
        "  principal: User:audit",
        "  host: 10.0.0.1",
        "  cannot:",
        "    READ: [topic:pii.card]",
        "- name: User:audit from 10.0.0.9",
        "  principal: User:audit",
        "  host: 10.0.0.9",
        "  can:",
        "    READ: [topic:pii.card]",
        "- name: User:billing",
        "  principal: User:billing",
        "  can:",
        "    READ: [topic:bill.*]",
        "  cannot:",
        "    READ: [topic:pii.card]",
    ]
    aclog("test", out).ok()


def test_names_that_forge_lines_or_turn_them_around_are_escaped(tmp_path: Path) -> None:
    acls, out = tmp_path / "acls.jsonl", tmp_path / "recorded.yaml"
    row = {"resourceType": "TOPIC", "resourceName": "a\u202eb\n- name: x", "patternType": "LITERAL"}
    row |= {"principal": "User:\x1b[31m", "host": "*", "operation": "READ", "permissionType": "ALLOW"}
    acls.write_text(json.dumps(row))
    aclog("test", "--record", out, "--acls", acls).ok()
    assert out.read_text().replace("\n", "").isprintable()
    aclog("test", out).ok()


def settings_flags(settings: Settings) -> list[str]:
    flags = ["--super-users", ";".join(sorted(settings.super_users))] if settings.super_users else []
    flags += ["--allow-everyone-if-no-acl-found"] if settings.allow_everyone else []
    flags += ["--semantics", "documented"] if settings.documented else []
    return [*flags, "--cidr" if settings.cidr else "--no-cidr"]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.sample(5)
def test_every_mutant_fails_a_recorded_test(seed: int, tmp_path: Path) -> None:
    random = Random(f"record {seed}")
    cidr = random.random() < 0.3
    rules = distinct([random_rule(random, cidr=cidr) for _ in range(10)])
    acls, out = tmp_path / "acls.jsonl", tmp_path / "recorded.yaml"
    acls.write_text("".join(map(json_line, rules)))
    flags = settings_flags(random_settings(random, cidr=cidr, plain=0.4))
    aclog("test", "--record", out, "--acls", acls, *flags).ok()
    jsonschema.validate(yaml.safe_load(out.read_text()), json.loads(aclog("test", "--schema").ok().out))
    judged = aclog("test", out, "--mutate")  # the file has the settings
    assert judged.code == 0, judged


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--record", "out.yaml"), "which rules"),
        (("--accesses", "a.jsonl"), "--accesses: only together with --record"),
        (("--record", "out.yaml", "--acls", "a.jsonl", "tests.yaml"), "--record writes tests: expected no FILE"),
        (("--record", "none/out.yaml", "--acls", "a.jsonl"), "no such directory"),
        (("--webhook", "http://h/x", "tests.yaml"), "--webhook: only together with --follow"),
        (("--exit-on-red", "tests.yaml"), "--exit-on-red: only together with --follow"),
        (("--http", "h:1", "tests.yaml"), "--http: only together with --follow"),
    ],
)
def test_flags_that_do_not_go_together(
    flags: tuple[str, ...], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = aclog("test", *flags)
    assert result.code == 2
    assert complaint in result.complaint
