"""A patch of files of rules: applied by git, it leaves the rules of the draft, and no other line is touched."""

import json
import subprocess
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, object_of_rule
from aclog.authorizer.acls_image import RuleChange
from aclog.console.pages.draft import patch_file
from aclog.console.pages.page import BadParameterError, Links, Parameters
from aclog.console.patch import _hunks, patch_lines
from aclog.metalog.errors import ConfigError
from aclog.sources.choice import AclsSource
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.writers import write_rules
from aclog.terminal.columns import json_text
from tests.support.builders.acls import acl
from tests.support.web.consoles import console_of, view
from tests.support.web.points import HeldSource, image_of

ALICE, BOB, ODD = acl("orders", "User:alice"), acl("billing", "User:bob"), acl("a\u2028b", "User:alice")
NEW, OTHER = acl("news", "User:alice"), acl("news", "User:carol")


def source_of(path: Path | str) -> AclsSource:
    """Files that were read once, as a console reads them."""
    source = AclsSource(str(path))
    source.image()
    return source


def patch_of(source: AclsSource, *changes: RuleChange) -> str:
    return "".join(patch_lines(changes, source, [rule.acl for rule in source.image().acls]))


def removal(rule: StandardAcl) -> RuleChange:
    return RuleChange(added=False, acl=rule)


def addition(rule: StandardAcl) -> RuleChange:
    return RuleChange(added=True, acl=rule)


def write(folder: Path, files: dict[str, list[StandardAcl]], end: str = "\n") -> None:
    for name, rules in files.items():
        text = "\n".join(json.dumps(object_of_rule(each), ensure_ascii=False) for each in rules)
        (folder / name).write_bytes(f"{text}{end}".encode())


def rules_in(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_bytes().decode().split("\n") if line]


@pytest.mark.process
@pytest.mark.parametrize("end", ["\n", ""])
def test_git_applies_it_and_only_the_changes_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    write(tmp_path, {"a.jsonl": [ALICE, ODD], "b.jsonl": [BOB, ALICE]}, end)
    patch = patch_of(source_of("."), removal(ALICE), addition(NEW), addition(OTHER))
    subprocess.run(["git", "apply", "--unidiff-zero", "-"], input=patch.encode(), cwd=tmp_path, check=True)
    assert rules_in(tmp_path / "a.jsonl") == [object_of_rule(each) for each in (ODD, NEW, OTHER)]
    assert rules_in(tmp_path / "b.jsonl") == [object_of_rule(BOB)]


@pytest.mark.process
@pytest.mark.parametrize("kind", ["beside", "above", "absolute", "linked"])
def test_git_applies_it_at_the_root_for_a_console_in_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    root, below = tmp_path / "root", tmp_path / "root" / "some rules"
    below.mkdir(parents=True)
    (tmp_path / "link").symlink_to(root)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    write(root, {"up.jsonl": [ALICE, BOB]})
    write(below, {"rules.jsonl": [ALICE, BOB]})
    monkeypatch.chdir(below)
    names = {"above": "../up.jsonl", "absolute": str(root / "up.jsonl"), "linked": str(tmp_path / "link" / "up.jsonl")}
    source = AclsSource(names.get(kind, "rules.jsonl"))
    console = evolve(console_of(source), origins=source.origins, files=source)
    patch = patch_file(console, Parameters({"rules": "- ALLOW User:bob READ on TOPIC billing"})).content
    for flags in (("--check",), ()):
        subprocess.run(["git", "apply", "--unidiff-zero", *flags, "-"], input=patch.encode(), cwd=root, check=True)
    assert rules_in(root / "up.jsonl" if kind in names else below / "rules.jsonl") == [object_of_rule(ALICE)]


def test_a_file_in_no_repository_or_in_another_one_is_refused(tmp_path: Path) -> None:
    one, other, none = (tmp_path / each for each in ("both/one", "both/other", "none"))
    for folder in (one, other, none):
        folder.mkdir(parents=True)
        write(folder, {"a.jsonl": [ALICE]})
    for folder in (one, other):
        (folder / ".git").mkdir()
    with pytest.raises(ConfigError, match=r"none/a\.jsonl: not in a git repository"):
        patch_of(source_of(none), removal(ALICE))
    with pytest.raises(ConfigError, match=r"other/a\.jsonl: not in the git repository of .*one/a\.jsonl"):
        patch_of(source_of(tmp_path / "both"), removal(ALICE))


@pytest.mark.parametrize("start", ["", "\ufeff \n"])
def test_an_array_is_patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    lines = ",\n".join(json.dumps(object_of_rule(each)) for each in (ALICE, BOB))
    (tmp_path / "rules.json").write_text(f"{start}[\n{lines}\n]\n", encoding="utf-8")
    patch = patch_of(source_of("rules.json"), removal(ALICE), addition(NEW))
    changed = [line for line in patch.splitlines()[2:] if line[0] in "+-"]
    assert changed == [
        f"-{json.dumps(object_of_rule(ALICE))},", f"-{json.dumps(object_of_rule(BOB))}",
        f"+{json.dumps(object_of_rule(BOB))},", f"+{json_text(object_of_rule(NEW))}",
    ]  # fmt: skip


@pytest.mark.process
def test_a_file_with_a_byte_order_mark_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    write(tmp_path, {"a.jsonl": [ALICE, BOB]})
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    patch = patch_of(source_of("a.jsonl"), removal(ALICE))
    subprocess.run(["git", "apply", "--unidiff-zero", "-"], input=patch.encode(), cwd=tmp_path, check=True)
    assert file.read_bytes() == f"\ufeff{json.dumps(object_of_rule(BOB))}\n".encode()


ROLES = """\
apiVersion: kafka.jikkou.io/v1
kind: KafkaPrincipalRole
metadata: {name: reader}
spec:
  acls:
    - resource: {type: topic, pattern: orders, patternType: LITERAL}
      type: ALLOW
      operations: [READ]
      host: "*"
---
apiVersion: kafka.jikkou.io/v1
kind: KafkaPrincipalAuthorization
metadata: {name: "User:alice"}
spec: {roles: [reader]}
---
apiVersion: kafka.jikkou.io/v1
kind: KafkaPrincipalAuthorization
metadata: {name: "User:bob"}
spec: {roles: [reader]}
"""


def test_what_a_role_states_for_others_as_well_is_not_patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "roles.yaml").write_text(ROLES, encoding="utf-8")
    source = source_of("roles.yaml")
    with pytest.raises(ConfigError, match=r"not patched, as the patched files? .*User:bob"):
        patch_of(source, removal(ALICE))
    with pytest.raises(ConfigError, match=r"roles\.yaml: no entry states rules of User:alice only"):
        patch_of(source, addition(NEW))


def test_the_page_links_and_serves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    write(tmp_path, {"a.jsonl": [ALICE, BOB]})
    source = AclsSource("a.jsonl")
    console = evolve(console_of(source), origins=source.origins, files=source)
    rules = "- ALLOW User:bob READ on TOPIC billing"
    page = view(console, "/draft", rules=rules)
    [saving] = [part for part in page.parts if isinstance(part, Links) and part.key == "saving"]
    [link] = [cell.url for cell in saving.links if "patch" in cell.text]
    assert link is not None
    file = patch_file(console, Parameters.of(link.partition("?")[2]))
    assert file.name == "draft.patch"
    assert file.content.splitlines()[:2] == ["--- a/a.jsonl", "+++ b/a.jsonl"]
    changed = [line for line in file.content.splitlines()[3:] if line[0] in "+-"]
    assert changed == [f"-{json.dumps(object_of_rule(BOB))}"]
    held = console_of(HeldSource(image_of(ALICE, BOB)))
    page = view(held, "/draft", rules=rules)
    [saving] = [part for part in page.parts if isinstance(part, Links) and part.key == "saving"]
    assert not [cell for cell in saving.links if "patch" in cell.text]
    with pytest.raises(BadParameterError, match="a patch needs rules in files"):
        patch_file(held, Parameters({"rules": rules}))


def test_a_format_that_is_not_edited_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "main.tf").write_text(write_rules(AclsFormat.TERRAFORM, [ALICE]), encoding="utf-8")
    source = source_of("main.tf")
    console = evolve(console_of(source), origins=source.origins, files=source)
    rules = "- ALLOW User:alice READ on TOPIC orders"
    [saving] = [
        part for part in view(console, "/draft", rules=rules).parts if isinstance(part, Links) and part.key == "saving"
    ]
    [cell] = [each for each in saving.links if "patch" in each.text]
    assert cell.url is None
    with pytest.raises(BadParameterError, match=r"main\.tf:1: .* is stated by a file of the format terraform"):
        patch_file(console, Parameters({"rules": rules}))


@pytest.mark.parametrize("name", ["tab\there.jsonl", "cr\r.jsonl", "z\n--- a/ci.sh\n+++ b/ci.sh\n@@ -1 +1 @@\n.jsonl"])
def test_a_name_that_would_be_several_lines_of_a_patch_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    write(tmp_path, {name: [ALICE, BOB]})
    with pytest.raises(ConfigError, match=r"a name with unprintable characters") as caught:
        patch_of(source_of("."), removal(ALICE))
    assert str(caught.value).isprintable()


def test_two_names_of_one_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    write(tmp_path, {"a.jsonl": [ALICE, BOB]})
    Path("b.jsonl").symlink_to("a.jsonl")
    with pytest.raises(ConfigError, match=r"b\.jsonl: the same file as a\.jsonl"):
        patch_of(source_of("."), removal(ALICE))


USER = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: alice}
spec:
  authentication: {type: scram-sha-512}  # hunter2
  authorization:
    type: simple
    acls:
    - {resource: {type: topic, name: orders}, operations: [Read]}
    - {resource: {type: topic, name: bills}, operations: [Read]}
"""
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData:\n  password: hunter2\n"
FLOW = '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"stringData":{"password":"hunter2"}}'
BESIDE = {
    "the next line": f"{USER}--- {FLOW}\n",
    "around": f"{SECRET}---\n{USER}---\n{SECRET}",
    "below the rules": f"{USER}  quotas: {{producerByteRate: 1}}  # hunter2\n",
    "comments": f"# hunter2\n{USER}# hunter2\n",
}
BILLS = acl("bills", "User:alice")


@pytest.mark.process
@pytest.mark.parametrize("place", BESIDE)
@pytest.mark.parametrize("change", [removal(BILLS), removal(ALICE), addition(NEW)])
def test_a_patch_has_no_text_beside_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, change: RuleChange
) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    Path("user.yaml").write_text(BESIDE[place], encoding="utf-8")
    patch = patch_of(source_of("user.yaml"), change)
    assert "hunter2" not in patch
    assert [line for line in patch.splitlines() if line.startswith(" ")]  # which git finds if lines above have changed
    Path("user.yaml").write_text(f"# a line\n{BESIDE[place]}", encoding="utf-8")
    subprocess.run(["git", "apply", "--unidiff-zero", "-"], input=patch.encode(), check=True)
    acls = {rule.acl for rule in source_of("user.yaml").image().acls}
    assert acls == ({ALICE, BILLS, NEW} if change.added else {ALICE, BILLS} - {change.acl})


def test_a_line_of_json_with_more_than_rules_is_not_patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    rules = [{"resource": {"type": "topic", "name": "bills"}, "operations": ["Read", "Write"]}]
    user = {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaUser",
        "metadata": {"name": "alice"},
        "spec": {"authorization": {"type": "simple", "acls": rules}},
    }
    both = {"apiVersion": "v1", "kind": "List", "items": [json.loads(FLOW), user]}
    Path("a.yaml").write_text(json.dumps(both), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"a\.yaml:1: the line holds more than rules") as caught:
        patch_of(source_of("a.yaml"), removal(BILLS))
    assert "hunter2" not in str(caught.value)
    Path("a.yaml").write_text(json.dumps(both, indent=1), encoding="utf-8")
    patch = patch_of(source_of("a.yaml"), removal(BILLS))
    assert "bills" in patch
    assert "hunter2" not in patch


def patched(before: list[str], patch: list[str]) -> list[str]:
    """The lines after the hunks of a patch, of which each has the numbers of its lines before."""
    after, at = list[str](), 0
    while patch:
        begin, count = map(int, patch.pop(0).split()[1].lstrip("-").split(","))
        begin -= count > 0
        after += before[at:begin]
        at = begin
        while patch and not patch[0].startswith("@@"):
            line = patch.pop(0)
            if line.startswith("\\"):
                continue
            if line[0] != "+":
                assert before[at].rstrip("\n") == line[1:-1]
                at += 1
            after += [] if line[0] == "-" else [line[1:]]
        assert at == begin + count
    return after + before[at:]


@given(st.data())
def test_hunks_make_the_change_and_show_known_lines_only(data: st.DataObject) -> None:
    before = [f"{each}\n" for each in data.draw(st.lists(st.sampled_from("abcdefgh"), max_size=30))]
    gone = data.draw(st.sets(st.integers(0, len(before))))
    new = data.draw(st.dictionaries(st.integers(0, len(before)), st.lists(st.sampled_from(["x\n", "a\n"]), max_size=3)))
    after = [
        line
        for number, each in enumerate([*before, ""])
        for line in (*new.get(number, ()), *([each] if each and number not in gone else []))
    ]
    known = {number + 1 for number in gone} | data.draw(st.sets(st.integers(1, len(before) + 1)))
    try:
        patch = list(_hunks("f", before, after, known))
    except ConfigError:  # other lines are taken for those that go
        return
    shown = {line for line in patch if line[0] in " -"}
    assert {line[1:] for line in shown} <= {before[number - 1] for number in known if number <= len(before)}
    assert patched(before, patch) == after


@pytest.mark.parametrize("now", ['["x"]', "[null]", '{"a": [1]}', "[" * 3000, "", '[{"principal": 1}]'])
def test_an_array_that_is_none_of_rules_any_more_is_not_patched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    file = Path("rules.json")
    file.write_text(json.dumps([object_of_rule(each) for each in (ALICE, BOB)]), encoding="utf-8")
    source = source_of("rules.json")
    file.write_text(now, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"rules\.json: the file has changed since it was read"):
        patch_of(source, removal(ALICE))


@pytest.mark.parametrize("now", [[BOB, ALICE], [BOB]])
def test_a_file_that_has_changed_since_is_not_patched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: list[StandardAcl]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    write(tmp_path, {"a.jsonl": [ALICE, ODD]})
    source = source_of("a.jsonl")
    write(tmp_path, {"a.jsonl": now})
    with pytest.raises(ConfigError, match=r"a\.jsonl: the file has changed since it was read"):
        patch_of(source, removal(ALICE))


def test_a_file_whose_rules_are_on_other_lines_is_not_patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line that was known to be of a rule may be any text now."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    write(tmp_path, {"a.jsonl": [ALICE, BOB]})
    source, file = source_of("a.jsonl"), Path("a.jsonl")
    file.write_text(f"\n{file.read_text()}")
    with pytest.raises(ConfigError, match=r"a\.jsonl: the file has changed since it was read"):
        patch_of(source, addition(NEW))
