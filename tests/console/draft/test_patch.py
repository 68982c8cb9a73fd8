"""A patch of files of rules: applied by git, it leaves the rules of the draft, and no other line is touched."""

import json
import subprocess
from pathlib import Path

import pytest
from attrs import evolve

from aclog.authorizer.acl import StandardAcl, object_of_rule
from aclog.authorizer.acls_image import RuleChange
from aclog.console.pages.draft import patch_file
from aclog.console.pages.page import BadParameterError, Links, Parameters
from aclog.console.patch import patch_lines
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
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=tmp_path, check=True)
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
        subprocess.run(["git", "apply", *flags, "-"], input=patch.encode(), cwd=root, check=True)
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
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=tmp_path, check=True)
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
