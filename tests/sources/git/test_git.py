"""Files as of a commit or of the index: real repositories, and what may not be read from them."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from aclog.metalog.errors import ConfigError
from aclog.sources.git import GitTree, changed_files, file_content, parse_git_place
from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(made.path)
    return made


def tree(text: str) -> GitTree:
    return GitTree(place=parse_git_place(text))


def contents(text: str) -> dict[str, str]:
    with tree(text) as found:
        return {path: found.read(path).decode() for path in found.paths()}


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        contents(text)
    return str(caught.value)


def test_a_directory_is_read_as_of_a_commit_whatever_the_work_tree_holds(repository: Repository) -> None:
    repository.commit({"kafka/a.yaml": "old\n", "kafka/team/b.yaml": "b\n", "kafka/.ci/c.yaml": "c\n", "x": "x\n"})
    repository.git("tag", "-a", "-m", "first", "v1")
    repository.commit({"kafka/a.yaml": "new\n"})
    repository.write({"kafka/a.yaml": "not committed\n"})
    first = {"a.yaml": "old\n", "team/b.yaml": "b\n"}
    assert contents("main:kafka") == {**first, "a.yaml": "new\n"}
    for ref in (
        "main~1",
        "HEAD~1",
        "HEAD^",
        "v1",
        repository.git("rev-parse", "HEAD~1"),
        "main@{1}",
        ":/first"[:0] + "v1^{}",
    ):
        assert contents(f"{ref}:kafka/") == first, ref
    assert contents("v1:kafka/team/../a.yaml") == {"a.yaml": "old\n"}
    assert set(contents("v1:")) == set(contents("v1:.")) == {"kafka/a.yaml", "kafka/team/b.yaml", "x"}
    with tree("v1:kafka/team") as found:
        assert (found.name, found.display("b.yaml")) == ("v1:kafka/team", "v1:kafka/team/b.yaml")
        assert (found.read("../../x"), found.display("../../x")) == (b"x\n", "v1:x")
        assert (found.is_file("b.yaml"), found.is_file("../team"), found.is_file("none")) == (True, False, False)
        assert (found.entries(".."), found.entries("b.yaml"), found.entries("none")) == (
            [".ci", "a.yaml", "team"],
            [],
            [],
        )


def test_the_index_is_what_the_next_commit_will_hold(repository: Repository) -> None:
    repository.commit({"kafka/a.yaml": "old\n", "kafka/b.yaml": "b\n"})
    repository.write({"kafka/a.yaml": "staged\n", "kafka/new/c.yaml": "c\n"})
    repository.git("add", "kafka")
    repository.git("rm", "-q", "--cached", "kafka/b.yaml")
    repository.write({"kafka/a.yaml": "not staged\n"})
    assert contents(":kafka") == {"a.yaml": "staged\n", "new/c.yaml": "c\n"}
    assert contents(":kafka/a.yaml") == {"a.yaml": "staged\n"}
    assert refusal(":kafka/b.yaml") == ":kafka/b.yaml: no such file or directory in the index"


def test_a_merge_that_is_not_resolved_has_no_index_to_read(repository: Repository) -> None:
    repository.commit({"kafka/a.yaml": "1\n"})
    repository.git("switch", "-q", "-c", "other")
    repository.commit({"kafka/a.yaml": "2\n"})
    repository.git("switch", "-q", "main")
    repository.commit({"kafka/a.yaml": "3\n"})
    repository.git("merge", "other", may_fail=True)
    assert refusal(":kafka") == ":kafka/a.yaml: a merge that is not resolved yet: resolve it, and git add it"


def test_dots_in_front_begin_at_the_working_directory(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit({"team/kafka/a.yaml": "a\n", "b": "b\n"})
    monkeypatch.chdir(repository.path / "team")
    assert contents("main:./kafka") == contents("main:team/kafka") == {"a.yaml": "a\n"}
    assert contents("main:../b") == {"b": "b\n"}
    assert contents(":./kafka") == {"a.yaml": "a\n"}
    assert refusal("main:../../b") == "main:../../b: leads out of the repository"
    assert refusal("main:kafka") == "main:kafka: no such file or directory in main"


def test_links_are_followed_within_the_repository_only(repository: Repository) -> None:
    repository.commit({"modules/acl/main.tf": "m\n", "kafka/a.tf": "a\n"})
    links = {"kafka/modules": "../modules", "kafka/a2.tf": "a.tf", "kafka/back": "../kafka", "kafka/acl": "modules/acl"}
    for path, target in links.items():
        (repository.path / path).symlink_to(target)
    repository.git("add", ".")
    repository.git("commit", "-qm", "links")
    assert contents("main:kafka") == {"a.tf": "a\n", "a2.tf": "a\n", "modules/acl/main.tf": "m\n", "acl/main.tf": "m\n"}
    assert contents("main:kafka/modules/acl") == {"main.tf": "m\n"}


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("/etc/passwd", "main:kafka/link: a symbolic link to /etc/passwd, which is not in the repository"),
        ("../../passwd", "main:kafka/link: leads out of the repository"),
        ("none", "main:kafka/link: a symbolic link to none: path not found"),
        ("link", "main:kafka/link: a symbolic link to link, which leads to more than 40 others"),
        ("sub/x", "main:kafka/sub: a submodule: its files are in another repository"),
    ],
)
def test_a_link_that_leads_elsewhere_is_refused(repository: Repository, target: str, complaint: str) -> None:
    repository.commit({"kafka/a": "a\n"})
    (repository.path / "kafka/link").symlink_to(target)
    repository.git("add", ".")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{repository.git('rev-parse', 'HEAD')},kafka/sub")
    repository.git("commit", "-qm", "link")
    repository.git("update-index", "--force-remove", "kafka/link" if "sub" in target else "kafka/sub")
    repository.git("commit", "-qm", "one of them")
    assert refusal("main:kafka") == complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("main", "no path in the repository: expected GITREF:PATH"),
        ("--output=x:kafka", "is no branch, tag or commit"),
        ("^main:kafka", "is no branch, tag or commit"),
        ("main..other:kafka", "'main..other' is a range of commits"),
        ("main...other:kafka", "is a range of commits"),
        ("main^!:kafka", "is a range of commits"),
        ("main:/etc", "an absolute path: expected one from the top of the repository"),
        ("main:a\nb", "expected GITREF:PATH"),
        ("none:kafka", "no branch, tag or commit 'none' in this clone"),
        ("main:../x", "leads out of the repository"),
        ("main:a/../../x", "leads out of the repository"),
        ("main:kafka/a/b", "main:kafka/a/b: no such file or directory in main"),
        ("main@{1990-01-01 10:00}:kafka", "this clone does not have main@{1990-01-01 10:00}"),
        ("main@{7}:kafka", "this clone does not have main@{7}"),
    ],
)
def test_what_is_no_place_in_a_repository_is_refused(repository: Repository, text: str, complaint: str) -> None:
    repository.commit({"kafka/a": "a\n"})
    assert complaint in refusal(text)


def test_a_name_for_two_things_is_refused(repository: Repository) -> None:
    repository.commit({"kafka/a": "a\n"})
    repository.git("tag", "main")
    assert refusal("main:kafka") == "main:kafka: 'main' is ambiguous: expected refs/heads/... or refs/tags/..."
    assert contents("refs/heads/main:kafka") == {"a": "a\n"}


def test_pointers_to_content_elsewhere_are_no_rules(repository: Repository) -> None:
    repository.commit({"lfs/a": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"})
    assert refusal("main:lfs") == "main:lfs/a: a pointer to Git LFS, which has its content"


def test_names_that_are_hard_to_write_are_read(repository: Repository) -> None:
    repository.commit({"kafka/ü \t'\".yaml": "a\n", "kafka/x\ny": "b\n"})
    assert contents("main:kafka") == contents(":kafka") == {"x\ny": "b\n", "ü \t'\".yaml": "a\n"}


def test_bare_repositories_and_work_trees_are_read(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"kafka/a": "a\n"})
    repository.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    repository.git("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    monkeypatch.chdir(tmp_path / "tree")
    assert contents("other:kafka") == contents(":kafka") == {"a": "a\n"}
    monkeypatch.chdir(tmp_path / "bare")
    assert contents("main:kafka") == {"a": "a\n"}
    assert refusal(":kafka") == ":kafka: no such file or directory in the index"
    monkeypatch.chdir(tmp_path)
    problem = "not in a git repository: commits are read from the one around the working directory"
    assert refusal("main:kafka") == f"{tmp_path}: {problem}"


def test_sha_256_repositories_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Repository.create(tmp_path / "repository", "--object-format=sha256")
    made.commit({"kafka/a": "a\n"})
    monkeypatch.chdir(made.path)
    assert contents("main:kafka") == {"a": "a\n"}


@pytest.mark.parametrize("more", [(), ("--single-branch", "--branch", "other")])
def test_a_shallow_clone_says_how_to_fetch_the_base_and_that_works(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    repository.commit({"kafka/a": "1\n"})
    repository.commit({"kafka/a": "2\n"})
    repository.git("switch", "-q", "-c", "other")
    repository.commit({"kafka/a": "3\n"})
    repository.git(
        "clone", "-q", "--depth=1", "--single-branch", *more, f"file://{repository.path}", str(tmp_path / "c")
    )
    monkeypatch.chdir(tmp_path / "c")
    assert contents("HEAD:kafka") == {"a": "3\n"}
    missing = "origin/main:kafka: no branch, tag or commit 'origin/main' in this clone; fetch it: "
    said = refusal("origin/main:kafka")
    assert said == f"{missing}git fetch origin main:refs/remotes/origin/main"
    subprocess.run([*said.removeprefix(missing).split(), "-q"], check=True)
    assert contents("origin/main:kafka") == {"a": "2\n"}
    assert "did you mean origin/main:kafka?" in refusal("main:kafka")
    deep = refusal("HEAD~2:kafka")
    assert deep.endswith("the clone is shallow, fetch its history: git fetch --unshallow origin")
    assert refusal(f"{'0' * 40}:kafka").endswith(f"fetch it: git fetch origin {'0' * 40}")


def test_a_partial_clone_fetches_nothing_by_itself(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"kafka/a": "a\n"})
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.git(
        "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{repository.path}", str(tmp_path / "c")
    )
    monkeypatch.chdir(tmp_path / "c")
    said = refusal("origin/main:kafka")
    assert said.startswith("origin/main:kafka/a: not in this clone, which is a partial one; fetch it: git archive ")
    subprocess.run(said.split("fetch it: ")[1], shell=True, check=True)
    assert contents("origin/main:kafka") == {"a": "a\n"}


def test_nothing_that_the_repository_names_is_run(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"kafka/a": "a\n", ".gitattributes": "* filter=evil diff=evil text=auto\n"})
    (repository.path / ".git/hooks").mkdir()
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    evil.chmod(0o755)
    keys = (
        "core.pager",
        "core.fsmonitor",
        "core.sshCommand",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
    )
    for key in (*keys, "core.editor", "pager.rev-parse", "pager.cat-file", "core.alternateRefsCommand"):
        repository.git("config", key, str(evil))
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (repository.path / ".git/hooks" / hook).symlink_to(evil)
    assert contents("main:kafka") == contents(":kafka") == {"a": "a\n"}
    (repository.path / "kafka/a").write_text("b\n")
    repository.git("config", "filter.evil.clean", str(evil))
    repository.git("config", "filter.evil.required", "true")
    (tmp_path / "ran").unlink(missing_ok=True)
    assert changed_files("main", None) == {"kafka/a"}
    assert not (tmp_path / "ran").exists()


def test_a_git_that_does_not_end_is_ended(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit({"kafka/a": "a\n"})
    os.mkfifo(repository.path / "pipe")
    repository.git("config", "include.path", str(repository.path / "pipe"))
    monkeypatch.setattr("aclog.sources.git._PATIENCE_S", 0.5)
    assert "git rev-parse has not ended within 0.5 s" in refusal("main:kafka")


def test_objects_that_a_small_pack_makes_large_are_not_read(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"kafka/a": "a" * 5000})
    monkeypatch.setattr("aclog.sources.git.LARGEST", 4000)
    with pytest.raises(ConfigError, match="main:kafka/a: 5,000 bytes: expected at most 4,000"):
        file_content("main", "kafka/a")
    monkeypatch.setattr("aclog.sources.git._LARGEST", {b"blob": 4000, b"tree": 20})
    assert "expected at most 20" in refusal("main:kafka")


def test_replaced_objects_are_read_as_they_were_committed(repository: Repository) -> None:
    repository.commit({"kafka/a": "a\n", "kafka/b": "b\n"})
    repository.git("replace", *(repository.git("rev-parse", f"main:kafka/{name}") for name in "ab"))
    assert contents("main:kafka") == {"a": "a\n", "b": "b\n"}


def test_without_git_the_error_says_so(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert refusal("main:kafka").startswith("git is not on the PATH")


def test_a_tree_of_two_thousand_files_takes_two_processes(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({f"kafka/{i % 40}/{i}.yaml": f"{i}\n" for i in range(2000)})
    started: list[object] = []
    start: Callable[..., None] = subprocess.Popen.__init__

    def counted(process: "subprocess.Popen[bytes]", *arguments: object, **named: object) -> None:
        started.append(arguments)
        start(process, *arguments, **named)

    monkeypatch.setattr(subprocess.Popen, "__init__", counted)
    assert len(contents("main:kafka")) == 2000
    assert len(started) == 2


def test_the_process_ends_with_the_tree(repository: Repository) -> None:
    repository.commit({"kafka/a": "a\n"})
    with tree("main:kafka") as found:
        found.read("a")
        process = found._files._objects._process
        assert process is not None
    assert process.returncode is not None
    assert not Path(f"/proc/{process.pid}").exists()


def test_links_that_multiply_directories_end(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aclog.sources.git.MOST_FILES", 1000)
    repository.commit({f"kafka/{level}/f": "f\n" for level in range(12)})
    for level in range(11):
        for name in "ab":
            (repository.path / f"kafka/{level}/{name}").symlink_to(f"../{level + 1}")
    repository.commit({})
    assert refusal("main:kafka/0") == "main:kafka/0: more than 1,000 files"


def test_a_tree_that_stands_in_many_places_ends(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few small objects are 10**12 directories, and no file."""
    monkeypatch.setattr("aclog.sources.git.MOST_FILES", 1000)
    repository.commit({"x": "x\n"})
    found = hash_tree(repository, "")
    for _ in range(12):
        found = hash_tree(repository, "".join(f"040000 tree {found}\tkafka{digit}\n" for digit in range(10)))
    bomb = repository.git("commit-tree", "-m", "bomb", found)
    assert refusal(f"{bomb}:kafka0") == f"{bomb}:kafka0: more than 1,000 files"


@pytest.mark.parametrize("ref", ["main", ""])
def test_more_levels_than_people_make_are_refused(repository: Repository, ref: str) -> None:
    deep = "/".join(["d"] * 1500)
    repository.commit({"kafka/a": "a\n", "kafka/d/a": "a\n"})
    blob = repository.git("rev-parse", "HEAD:kafka/a")
    repository.git("update-index", "--add", "--cacheinfo", f"100644,{blob},deep/{deep}/a")
    repository.git("commit", "-qm", "deep")
    assert set(contents(f"{ref}:kafka")) == {"a", "d/a"}
    assert refusal(f"{ref}:deep").endswith("d: more than 200 levels of directories")


def hash_tree(repository: Repository, lines: str) -> str:
    command = ["git", "-C", str(repository.path), "mktree"]
    return subprocess.run(command, input=lines, check=True, capture_output=True, text=True).stdout.strip()


def test_links_that_double_with_each_name_are_refused(repository: Repository) -> None:
    repository.commit({"kafka/a": "a\n"})
    for level in range(39):
        (repository.path / f"kafka/l{level}").symlink_to(f"l{level + 1}/l{level + 1}")
    (repository.path / "kafka/l39").symlink_to(".")
    repository.commit({})
    assert refusal("main:kafka").endswith("which leads to more than 40 others")


def test_a_link_whose_target_is_no_path_is_refused(repository: Repository) -> None:
    repository.commit({"kafka/a": "a\n"})
    (repository.path / "target").write_text("x/../" * 1000)
    blob = repository.git("hash-object", "-w", "target")
    repository.git("update-index", "--add", "--cacheinfo", f"120000,{blob},kafka/link")
    repository.git("commit", "-qm", "link")
    assert refusal("main:kafka") == "main:kafka/link: a symbolic link of more than 4,096 bytes"


def hash_object(repository: Repository, kind: str, data: bytes) -> bytes:
    """Write an object that git would not write; return its id in binary."""
    command = ["git", "-C", str(repository.path), "hash-object", "-w", "-t", kind, "--literally", "--stdin"]
    return bytes.fromhex(subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode())


@pytest.mark.parametrize(
    ("mode", "name", "problem"),
    [
        (b"\xff00644", b"a", "an entry 'a', mode \ufffd00644"),
        (b"", b"a", "an entry 'a', mode , which"),
        (b"777777", b"a", "an entry 'a', mode 777777"),
        (b"100644", b"", "an entry '', mode 100644"),
        (b"40000", b"..", "an entry '..', mode 40000"),
        (b"40000", b".GIT", "an entry '.GIT', mode 40000"),
        (b"100644", b"a/b", "an entry 'a/b', mode 100644"),
        (b"100644", b"twice", "an entry 'twice', twice in its directory"),
    ],
)
def test_entries_that_git_does_not_check_out_are_refused(
    repository: Repository, mode: bytes, name: bytes, problem: str
) -> None:
    """What is reviewed would not be what is deployed."""
    repository.commit({"kafka/twice": "x\n"})
    blob = bytes.fromhex(repository.git("rev-parse", "main:kafka/twice"))
    tree = hash_object(repository, "tree", b"100644 twice\0" + blob + mode + b" " + name + b"\0" + blob)
    top = hash_object(repository, "tree", b"40000 kafka\0" + tree)
    said = refusal(f"{top.hex()}:kafka")
    assert problem in said
    assert said.endswith("which git does not write: try git fsck")


@pytest.mark.parametrize("is_populated", [False, True])
@pytest.mark.parametrize("url", ["ext::sh -c {evil}", "--upload-pack={evil}", "{outside}", "file://{outside}"])
def test_submodules_are_not_read_and_run_nothing(
    repository: Repository, tmp_path: Path, url: str, is_populated: bool
) -> None:
    """Their addresses, their settings and those of the repository name programs and directories outside."""
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    evil.chmod(0o755)
    outside = Repository.create(tmp_path / "outside")
    commit = outside.commit({"acls.jsonl": "secret\n"})
    base = repository.commit({"kafka/acls.jsonl": rule("a")})
    address = url.format(evil=evil, outside=outside.path)
    modules = f'[submodule "sub"]\n\tpath = kafka/sub\n\turl = {address}\n\tupdate = !{evil}\n\tignore = none\n'
    repository.write({".gitmodules": modules})
    repository.git("add", ".gitmodules")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},kafka/sub")
    repository.git("commit", "-qm", "sub")
    settings = {
        "submodule.recurse": "true",
        "diff.submodule": "log",
        "diff.ignoreSubmodules": "none",
        "submodule.sub.update": f"!{evil}",
        "submodule.sub.url": address,
        "submodule.sub.active": "true",
        "submodule.sub.ignore": "none",
        "protocol.ext.allow": "always",
    }
    if is_populated:
        repository.git("clone", "-q", str(outside.path), "kafka/sub")
        inner = Repository(repository.path / "kafka/sub")
        inner.write({".gitattributes": "* filter=evil diff=evil\n", "acls.jsonl": "changed\n"})
        for key in ("core.fsmonitor", "filter.evil.clean", "diff.external"):
            inner.git("config", key, str(evil))
        (inner.path / ".git").rename(tmp_path / "elsewhere.git")
        (inner.path / ".git").write_text(f"gitdir: {tmp_path}/elsewhere.git\n")
    for key, value in settings.items():
        repository.git("config", key, value)
    assert changed_files(base, None) == {".gitmodules"}
    assert changed_files(base, "main") == {".gitmodules", "kafka/sub"}
    refused = "kafka/sub: a submodule: its files are in another repository"
    for arguments, code, message in (
        (("acls", "list", "--ref", "main:kafka"), 0, "not read, which may hold rules: link 1 (main:kafka/sub:1)"),
        (("lint", "--ref", "main:kafka/sub"), 2, refused),
        (("lint", "--ref", ":kafka", "--fail-on", "unread"), 1, "link 1 (:kafka/sub:1)"),
        (("diff", "--ref", f"{base}:kafka", "--to-ref", "main:kafka"), 1, "unless rules in content that was not read"),
        (("review", "kafka", "--base", base), 2, refused),
        (("review", "kafka", "--base", base, "--head", "main"), 0, "changed, but not read, so it may change rules"),
        (("review", "kafka", "--base", base, "--head", "main", "--fail-on", "unread"), 1, "FAILS"),
    ):
        result = aclog(*arguments)
        assert (result.code, message in result.out + result.err) == (code, True), result
        assert "secret" not in result.out + result.err
    assert not (tmp_path / "ran").exists()


def rule(name: str) -> str:
    """Return a line of rules."""
    return (
        f'{{"resourceType":"TOPIC","resourceName":"{name}","patternType":"LITERAL","principal":"User:a","host":"*",'
        '"operation":"READ","permissionType":"ALLOW"}\n'
    )


def test_a_repository_of_somebody_else_says_what_git_says(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"kafka/a": "a\n"})
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    said = refusal("main:kafka")
    assert said.startswith("git refuses to read this repository: detected dubious ownership in repository at ")
    assert said.endswith(f"git config --global --add safe.directory {repository.path}")


def test_damage_is_no_partial_clone(repository: Repository) -> None:
    repository.commit({"kafka/a": "a\n"})
    id_ = repository.git("rev-parse", "main:kafka/a")
    (repository.path / ".git/objects" / id_[:2] / id_[2:]).unlink()
    assert refusal("main:kafka") == "main:kafka/a: not in this clone, which is damaged: try git fsck"
    (repository.path / ".git/index").write_text("junk")
    assert refusal(":kafka") == "no index (:PATH): .git/index: index file smaller than expected"
    with (repository.path / ".git/config").open("a") as config:
        config.write("[core\n")
    assert refusal("main:kafka").startswith("main:kafka: git rev-parse: bad config line ")
