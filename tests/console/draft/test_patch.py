"""A patch of files of rules: applied by git, it leaves the rules of the draft, and no other line is touched."""

import json
import subprocess
from pathlib import Path

import pytest
from attrs import evolve, frozen

from aclog.authorizer.acl import FileOrigin, StandardAcl, object_of_rule
from aclog.authorizer.acls_image import RuleChange
from aclog.console.pages.draft import patch_file
from aclog.console.pages.page import BadParameterError, Links, Parameters
from aclog.console.patch import patch_lines
from aclog.metalog.errors import ConfigError
from aclog.sources.choice import AclsSource
from tests.support.builders.acls import acl
from tests.support.web.consoles import console_of, view
from tests.support.web.points import HeldSource, image_of

ALICE, BOB, ODD = acl("orders", "User:alice"), acl("billing", "User:bob"), acl("a\u2028b", "User:alice")
NEW, OTHER = acl("news", "User:alice"), acl("news", "User:carol")


@frozen
class Stated:
    """Rules, each on a line of its own of some files."""

    files: dict[str, list[StandardAcl]]
    form: str | None = None

    def of(self, rule: StandardAcl) -> tuple[FileOrigin, ...]:
        return tuple(
            FileOrigin(file=file, line=number, form=self.form)
            for file, rules in self.files.items()
            for number, each in enumerate(rules, 1)
            if each == rule
        )


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
    files = {"a.jsonl": [ALICE, ODD], "b.jsonl": [BOB, ALICE]}
    write(tmp_path, files, end)
    changes = [RuleChange(added=False, acl=ALICE), RuleChange(added=True, acl=NEW), RuleChange(added=True, acl=OTHER)]
    patch = "".join(patch_lines(changes, Stated(files), [ALICE, BOB, ODD]))
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
    console = evolve(console_of(source), origins=source.origins)
    patch = patch_file(console, Parameters({"rules": "- ALLOW User:bob READ on TOPIC billing"})).content
    for flags in (("--check",), ()):
        subprocess.run(["git", "apply", *flags, "-"], input=patch.encode(), cwd=root, check=True)
    assert rules_in(root / "up.jsonl" if kind in names else below / "rules.jsonl") == [object_of_rule(ALICE)]


def test_a_file_in_no_repository_or_in_another_one_is_refused(tmp_path: Path) -> None:
    one, other, none = (tmp_path / each for each in ("one", "other", "none"))
    for folder in (one, other, none):
        folder.mkdir()
        write(folder, {"a.jsonl": [ALICE]})
    for folder in (one, other):
        (folder / ".git").mkdir()
    changes = [RuleChange(added=False, acl=ALICE)]
    with pytest.raises(ConfigError, match=r"none/a\.jsonl: not in a git repository"):
        list(patch_lines(changes, Stated({str(none / "a.jsonl"): [ALICE]}), [ALICE]))
    both = {str(each / "a.jsonl"): [ALICE] for each in (one, other)}
    with pytest.raises(ConfigError, match=r"other/a\.jsonl: not in the git repository of .*one/a\.jsonl"):
        list(patch_lines(changes, Stated(both), [ALICE]))


@pytest.mark.parametrize("start", ["", "\ufeff \n"])
def test_an_array_is_not_patched_and_not_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    lines = ",\n".join(json.dumps(object_of_rule(each)) for each in (ALICE, BOB))
    (tmp_path / "rules.json").write_text(f"{start}[\n{lines}\n]\n", encoding="utf-8")
    source = AclsSource("rules.json")
    console = evolve(console_of(source), origins=source.origins)
    page = view(console, "/draft", rules="ALLOW User:alice READ on TOPIC news")
    [saving] = [part for part in page.parts if isinstance(part, Links) and part.key == "saving"]
    assert not [cell for cell in saving.links if "patch" in cell.text]
    with pytest.raises(ConfigError, match=r"rules\.json: a JSON array: only JSON lines are patched"):
        list(patch_lines([RuleChange(added=True, acl=NEW)], Stated({"rules.json": [ALICE, BOB]}), [ALICE]))


def test_the_page_links_and_serves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    write(tmp_path, {"a.jsonl": [ALICE, BOB]})
    source = AclsSource("a.jsonl")
    console = evolve(console_of(source), origins=source.origins)
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
    plain = evolve(held, origins=Stated({"a.yaml": [ALICE, BOB]}, form="strimzi"))
    page = view(plain, "/draft", rules=rules)
    [saving] = [part for part in page.parts if isinstance(part, Links) and part.key == "saving"]
    assert not [cell for cell in saving.links if "patch" in cell.text]
    with pytest.raises(BadParameterError, match="only such files are patched"):
        patch_file(plain, Parameters({"rules": rules}))


def test_a_file_that_has_changed_since_is_not_patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    write(tmp_path, {"a.jsonl": [BOB, ALICE]})
    with pytest.raises(ConfigError, match=r"a\.jsonl:1: the file has changed"):
        list(patch_lines([RuleChange(added=False, acl=ALICE)], Stated({"a.jsonl": [ALICE]}), [ALICE]))
    with pytest.raises(ConfigError, match="no file of JSON lines"):
        list(patch_lines([RuleChange(added=True, acl=NEW)], Stated({}), [ALICE]))
