"""Names that are not UTF-8, and plans whose head has something else: refused in one line, and nothing is changed."""

import json
import os
from hashlib import sha256

import pytest
from attrs import evolve

from aclog.planning.journal import read_journal
from aclog.terminal.columns import json_text
from tests.cli.planning.test_plan_and_apply import A, B, Source, held
from tests.support.cli.command import aclog

ODD = os.fsdecode(b"odd\xff")


@pytest.fixture
def source(tmp_path):
    found = Source(tmp_path)
    found.make(A)
    found.want(A, B)
    return found


@pytest.mark.parametrize("which", ["journal", "log"])
def test_a_path_that_is_not_utf8_is_refused_in_one_line(tmp_path, which):
    source = Source(tmp_path)
    source.want(A)
    setattr(source, which, tmp_path / ODD)
    refused = source.plan()
    assert refused.code == 2
    assert r"odd\udcff': not UTF-8, which a plan cannot contain" in refused.complaint
    assert not source.plan_file.exists()


def test_a_user_whose_name_is_not_utf8_plans_and_applies(source, monkeypatch):
    monkeypatch.setenv("LOGNAME", ODD)
    assert source.plan().code == 1
    source.apply().ok()
    assert held(source.log) == {A, B}
    last = read_journal(source.journal, str, print).entries[-1]
    assert last.who.startswith(r"odd\udcff@")


def changed_plan(source: Source, *keys: str, value: object) -> None:
    """Change a field of the head, and the digest to fit."""
    first, *rest = source.plan_file.read_text().splitlines()
    head = json.loads(first)
    head.pop("digest")
    at = head
    for key in keys[:-1]:
        at = at[key]
    assert keys[-1] in at
    at[keys[-1]] = value
    text = "\n".join([json_text(head), *rest]).encode(errors="surrogatepass")
    head["digest"] = sha256(text).hexdigest()
    source.plan_file.write_text("\n".join([json.dumps(head), *rest]) + "\n")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("base.rules", "x"), ("base.rules", -1), ("base.rules", True), ("base.exists", 1), ("base.touched", []),
        ("base.touched.digest", 5), ("place.value", 5), ("place.value", "a\0b"), ("place.value", "a\udcffb"),
        ("place.kind", "elsewhere"), ("place.properties", 5), ("place.properties", {"a": 1}),
        ("place.commandConfig", 5), ("place.id", 5), ("place.batching", None), ("journal", 5), ("journal.path", 7),
        ("journal.path", "a\0b"), ("journal.entries", "0"), ("otherJournals", [5]), ("settings.superUsers", "User:a"),
        ("settings.allowEveryone", 0), ("adopt", [5]), ("adopt", [{}]), ("unowned", None), ("transient", 5),
        ("who", None), ("git", 5),
    ],
)  # fmt: skip
def test_a_head_with_something_else_is_refused(source, path, value):
    assert source.plan().code == 1
    before = source.journal.read_bytes()
    changed_plan(source, *path.split("."), value=value)
    refused = aclog("apply", source.plan_file, "--yes")
    assert refused.code == 2
    assert refused.complaint.startswith(f"{source.plan_file}: ")
    assert held(source.log) == {A}
    assert source.journal.read_bytes() == before


def test_a_text_that_no_record_holds_is_named_by_its_line(source, tmp_path):
    source.want(A, evolve(A, resource_name="x" * 32_768))
    refused = source.plan()
    assert refused.code == 2
    assert f"a rule ({source.rules}:2): a string of 32768 bytes" in refused.complaint
    changes = tmp_path / "changes"
    rules = source.rules.read_text().splitlines()
    changes.write_text("".join(f'{{"action":"ADD","rule":{rule}}}\n' for rule in rules))
    refused = aclog("plan", "--log", source.log, "--change", changes, "--journal", source.journal)
    assert refused.code == 2
    assert f"{changes}: line 2: a string of 32768 bytes" in refused.complaint
