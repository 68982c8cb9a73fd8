"""Files and directories of rules: which format reads them, what is left out, and where each rule stands."""

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import origin_text
from aclog.metalog.errors import ConfigError
from aclog.sources import choice
from aclog.sources.choice import AclsSource
from aclog.sources.formats import rule as rule_module
from aclog.sources.formats.rule import DirectoryTree, SourceFile
from aclog.sources.read_options import ReadOptions

_RULE = (
    '{"resourceType":"TOPIC","resourceName":"%s","patternType":"LITERAL","principal":"User:a","host":"*",'
    '"operation":"READ","permissionType":"ALLOW"}\n'
)


def _places(source: AclsSource) -> dict[str, list[str]]:
    rules = sorted(source.image().acls, key=lambda rule: rule.acl.resource_name)
    return {rule.acl.resource_name: [origin_text(each) for each in source.origins.of(rule.acl)] for rule in rules}


def test_a_file_of_json_lines_tells_the_line_of_each_rule(tmp_path: Path) -> None:
    path = tmp_path / "rules.jsonl"
    path.write_text("\n" + _RULE % "a" + "\n" + _RULE % "b")
    assert _places(AclsSource(str(path))) == {"a": [f"{path}:2"], "b": [f"{path}:4"]}


def test_gzip_is_read_and_told_by_the_lines_inside(tmp_path: Path) -> None:
    path = tmp_path / "rules.gz"
    path.write_bytes(gzip.compress((_RULE % "a" + _RULE % "b").encode()))
    assert _places(AclsSource(str(path))) == {"a": [f"{path}:1"], "b": [f"{path}:2"]}


@given(st.text(st.sampled_from("\n\ra\u2028\N{GRINNING FACE}")))
def test_the_line_of_a_position_is_one_more_than_the_line_feeds_before_it(text: str) -> None:
    file = SourceFile(DirectoryTree("d"), "a.json")
    vars(file).update(content=text.encode())
    for position in range(len(text) + 1):
        assert file.line_at(position) == text.count("\n", 0, position) + 1


@pytest.mark.parametrize("unit", [b"a: 1\n", b"\n", b" \n"])
def test_a_small_file_that_decompresses_to_more_than_is_read_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: bytes
) -> None:
    for module in (choice, rule_module):
        monkeypatch.setattr(module, "LARGEST", 1 << 20)
    path = tmp_path / "rules.yaml.gz"
    path.write_bytes(gzip.compress(unit * (16 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match=f"{path}: larger than 1 MiB"):
            AclsSource(str(path)).image()
        assert tracemalloc.get_traced_memory()[1] < 300 << 20, "as a whole it takes more"
    finally:
        tracemalloc.stop()


def test_all_members_of_a_gzip_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "d" / "rules.jsonl.gz"
    path.parent.mkdir()
    members = [gzip.compress((_RULE % name).encode()) for name in "ab"]
    path.write_bytes(b"".join(members) + b"\0\0")
    assert _places(AclsSource(str(path.parent))) == {"a": [f"{path}:1"], "b": [f"{path}:2"]}
    for rest, what in ((b"xyz", "damaged"), (members[0][:9], "truncated")):
        path.write_bytes(members[0] + rest)
        with pytest.raises(ConfigError, match=f"{path}: {what} gzip file"):
            AclsSource(str(path.parent)).image()


def test_a_directory_is_read_through_and_a_rule_stated_twice_has_two_places(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "x.jsonl").write_text(_RULE % "a")
    (tmp_path / "team" / "y.jsonl").write_text(_RULE % "b" + _RULE % "a")
    (tmp_path / ".git" / "z.jsonl").write_text("not a rule")
    (tmp_path / "README.md").write_text("about")
    notes: list[str] = []
    source = AclsSource(str(tmp_path), notify=notes.append)
    assert _places(source) == {
        "a": [f"{tmp_path}/team/y.jsonl:2", f"{tmp_path}/x.jsonl:1"],
        "b": [f"{tmp_path}/team/y.jsonl:1"],
    }
    assert notes == [
        f"{tmp_path}: 2 rules in 2 files (2 jsonl)",
        f"{tmp_path}: ignored, as they cannot make rules: other file 1",
    ]


def test_one_is_counted_as_one(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(_RULE % "a")
    notes: list[str] = []
    AclsSource(str(tmp_path), notify=notes.append).image()
    assert notes == [f"{tmp_path}: 1 rule in 1 file (1 jsonl)"]


def test_a_directory_without_any_file_of_rules_is_no_empty_state(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("about")
    with pytest.raises(ConfigError, match="its only file is not of a known format"):
        AclsSource(str(tmp_path)).image()


_SCRIPT = "#!/bin/sh\nkafka-acls.sh --add --allow-principal User:a --operation Read --topic t\n"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("acls.sh", _SCRIPT.encode(), "a shell script with commands of kafka-acls: --acls-format shell reads it"),
        ("p.tfvars", b"a = 1\n", "values of Terraform's variables: expected the module's directory, and --var-file {}"),
        ("x.bin", b"a\0b", "a binary file, or text that is not UTF-8"),
    ],
)
def test_what_a_file_without_rules_is(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    expected = f"{file}: {reason.format(file)}"
    with pytest.raises(ConfigError) as alone:
        AclsSource(str(file)).image()
    assert str(alone.value) == expected
    with pytest.raises(ConfigError) as inside:
        AclsSource(str(tmp_path)).image()
    assert f"; {expected}" in str(inside.value)


def test_excluded_files_are_the_reason(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(_RULE % "a")
    with pytest.raises(ConfigError, match="all of its files are left out: excluded file 1: expected files of rules"):
        AclsSource(str(tmp_path), options=ReadOptions(exclude=("*.jsonl",))).image()


def test_a_malformed_line_in_a_directory_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(_RULE % "a" + "{}\n")
    with pytest.raises(ConfigError, match=r"x.jsonl: line 2: key resourceType is missing"):
        AclsSource(str(tmp_path)).image()


def test_links_that_lead_back_end_and_pipes_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "back").symlink_to(tmp_path)
    (tmp_path / "sub" / "x.jsonl").write_text(_RULE % "a")
    (tmp_path / "y.jsonl").symlink_to(tmp_path / "sub" / "x.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert DirectoryTree(str(tmp_path)).paths() == ["sub/x.jsonl", "y.jsonl"]


@pytest.mark.parametrize("name", ["x.yaml", "x.tf"])
def test_what_is_in_git_is_not_read_by_a_link_or_a_path(tmp_path: Path, name: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("extraheader = AUTHORIZATION: basic abcdef\n")
    (tmp_path / "acls").mkdir()
    (tmp_path / "acls" / "a.jsonl").write_text(_RULE % "a")
    if name == "x.yaml":
        (tmp_path / "acls" / name).symlink_to("../.git/config")
    else:
        (tmp_path / "acls" / name).write_text(
            'resource "kafka_acl" "a" {\n  resource_name = file("../.git/config")\n  resource_type = "Topic"\n'
            '  acl_principal = "User:a"\n  acl_host = "*"\n  acl_operation = "Read"\n'
            '  acl_permission_type = "Allow"\n}\n'
        )
    with pytest.raises(ConfigError, match=r"leads into .git, which may hold credentials") as caught:
        AclsSource(str(tmp_path / "acls")).image()
    assert "abcdef" not in str(caught.value)


@pytest.mark.parametrize("name", ["x.yaml", "x"])
def test_a_pointer_to_a_file_is_not_left_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.jsonl").write_text(_RULE % "a")
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    source = AclsSource(str(tmp_path))
    source.image()
    (found,) = source.unread
    assert found.text().startswith(f"{tmp_path / name}:1: encoded not read: a pointer to Git LFS")


@pytest.mark.parametrize("in_repository", [True, False])
def test_neither_dots_nor_links_lead_out_of_the_repository_or_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_repository: bool
) -> None:
    (tmp_path / "secret.jsonl").write_text(_RULE % "secret")
    top = tmp_path / "top"
    (top / "rules").mkdir(parents=True)
    (top / "shared.jsonl").write_text(_RULE % "shared")
    if in_repository:
        (top / ".git").mkdir()
    else:
        monkeypatch.chdir(top)
    tree = DirectoryTree(str(top / "rules"))
    assert b"shared" in tree.read("../shared.jsonl")
    with pytest.raises(ConfigError, match=r"leads out of .*top: files outside are not read"):
        tree.read("../../secret.jsonl")
    (top / "rules" / "x.jsonl").symlink_to(tmp_path / "secret.jsonl")
    with pytest.raises(ConfigError, match=r"leads out of .*top"):
        AclsSource(str(top / "rules")).image()
    (top / "y.jsonl").symlink_to(tmp_path / "secret.jsonl")
    assert len(AclsSource(str(top / "y.jsonl")).image().acls) == 1, "a file that the user names is his"


def test_directories_out_of_the_repository_are_not_even_listed(tmp_path: Path) -> None:
    """A pull request with a link to / would make the checker walk its machine, and repeat names of files in errors."""
    (tmp_path / "outside" / "private").mkdir(parents=True)
    (tmp_path / "outside" / "private" / "gone").symlink_to("nowhere")
    top = tmp_path / "top"
    (top / ".git").mkdir(parents=True)
    (top / "rules").mkdir()
    (top / "rules" / "a.jsonl").write_text(_RULE % "a")
    (top / "rules" / "up").symlink_to("../../outside")
    with pytest.raises(ConfigError, match=r"rules/up: leads out of .*top: files outside are not read") as caught:
        AclsSource(str(top / "rules")).image()
    assert "private" not in str(caught.value)
    (top / "rules" / "up").unlink()
    (top / "rules" / "git").symlink_to("../.git")
    with pytest.raises(ConfigError, match=r"rules/git: leads into .git"):
        DirectoryTree(str(top / "rules")).paths()


@pytest.mark.parametrize("with_file", [True, False])
def test_links_that_multiply_directories_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_file: bool) -> None:
    monkeypatch.setattr(rule_module, "MOST_FILES", 50)
    for level in range(12):
        (tmp_path / f"d{level}").mkdir()
    for level in range(11):
        for name in "ab":
            (tmp_path / f"d{level}" / name).symlink_to(tmp_path / f"d{level + 1}")
    if with_file:
        (tmp_path / "d11" / "x.jsonl").write_text(_RULE % "a")
    with pytest.raises(ConfigError, match="more than 50 files"):
        DirectoryTree(str(tmp_path)).paths()


def test_more_levels_than_people_make_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(250):
        Path("d").mkdir()
        os.chdir("d")
    with pytest.raises(ConfigError, match="d: more than 200 levels of directories"):
        DirectoryTree(str(tmp_path)).paths()


def test_a_file_of_another_kind_is_not_judged_as_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "deployment.yaml"
    path.write_text("apiVersion: apps/v1\nkind: Deployment\n")
    with pytest.raises(ConfigError, match=r"deployment.yaml: not of a known format: expected one of"):
        AclsSource(str(path)).image()
