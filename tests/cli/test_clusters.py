"""Several clusters in one repository: a section for each that aclog.toml names, and never a silent union."""

import json
from pathlib import Path

import jsonschema
import pytest

from aclog.cli.schema import schema_of
from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository
from tests.support.sources.files_of_rules import ONE_RULE, write_files

TYPELESS = ONE_RULE.replace("User:one", "one")
TOML = '[source]\nacls = "none"\n[clusters.dev]\nacls = "dev"\n[clusters."prod 1"]\nacls = "prod"\n'
USER = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: app, labels: {strimzi.io/cluster: %s}}
spec:
  authorization: {type: simple, acls: [{resource: {type: topic, name: %s}, operations: [Read]}]}
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository.create(tmp_path / "repository")
    monkeypatch.chdir(made.path)
    made.commit({"aclog.toml": TOML, "dev/a.jsonl": ONE_RULE, "prod/a.jsonl": ONE_RULE})
    return made


def test_each_cluster_is_linted_by_itself(repository: Repository) -> None:
    write_files(Path(), {"prod/a.jsonl": TYPELESS})
    found = aclog("lint")
    assert found.code == 1
    heads = [line for line in found.lines if line.startswith("cluster ")]
    assert heads == ["cluster dev", "cluster prod 1"]
    assert found.out.count("principal-without-type") == 1
    for name in ("dev", "prod 1"):
        assert f"aclog: note: cluster {name}: skipped checks: " in found.err
    rows = [json.loads(line) for line in aclog("lint", "--format", "jsonl").lines]
    assert {(row["cluster"], row["lint"]) for row in rows} >= {("dev", "13"), ("prod 1", "05")}
    assert json.loads(aclog("lint", "--format", "json").out) == rows
    for row in rows:
        jsonschema.validate(row, schema_of("finding"))
    runs = json.loads(aclog("lint", "--format", "sarif").out)["runs"]
    assert [run["automationDetails"]["id"] for run in runs] == ["aclog/dev", "aclog/prod 1"]
    assert aclog("lint", "--format", "markdown").lines[0] == "### cluster dev"
    assert aclog("lint", "--acls", "dev").ok().lines[0].startswith("warning 13")
    assert "one of the clusters of aclog.toml" in aclog("lint", "--fix", "fix.jsonl").complaint


def test_each_cluster_is_reviewed_by_itself(repository: Repository) -> None:
    """What one gains and another loses does not cancel out, as it would in a union."""
    write_files(
        Path(), {"dev/a.jsonl": ONE_RULE.replace('"one"', '"two"'), "prod/b.jsonl": ONE_RULE.replace('"one"', '"x"')}
    )
    found = aclog("review", "--base", "HEAD").ok()
    heads = [found.lines[number + 1] for number, line in enumerate(found.lines) if line.startswith("cluster ")]
    verdict = "aclog review: no blocking check failed: "
    assert len(heads) == 2
    assert heads[0].startswith(f"{verdict}1 gained, 1 lost")
    assert heads[1].startswith(f"{verdict}1 gained, 0 lost")
    rows = [json.loads(line) for line in aclog("review", "--base", "HEAD", "--format", "jsonl").ok().lines]
    assert [row["cluster"] for row in rows if row["kind"] == "verdict"] == ["dev", "prod 1"]
    for row in rows:
        jsonschema.validate(row, schema_of("review"))
    assert aclog("review", "--base", "HEAD", "--fail-on", "lost").code == 1
    comment = aclog("review", "--base", "HEAD", "--format", "markdown").ok().lines
    assert [line for line in comment if line.startswith("## ")] == ["## cluster dev", "## cluster prod 1"]
    assert comment.count("<!-- aclog review -->") == 1
    assert comment[-1] == "<!-- aclog review -->"
    runs = json.loads(aclog("review", "--base", "HEAD", "--format", "sarif").ok().out)["runs"]
    assert [run["automationDetails"]["id"] for run in runs] == ["aclog/dev", "aclog/prod 1"]
    assert not any(line.startswith("cluster ") for line in aclog("review", "dev", "--base", "HEAD").ok().lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[clusters.dev]\n", "aclog.toml:1: clusters.dev: expected the key acls"),
        ("[clusters.dev]\nacl = 1\n", "aclog.toml:2: unknown key 'acl' in [clusters.dev]"),
        ('clusters = "dev"\n', "aclog.toml:1: clusters: expected a table"),
        ('[clusters.dev]\nacls = "../.."\n', "aclog.toml:2: clusters.dev.acls: '../..' leads out"),
        ('[clusters.dev]\nacls = "no"\n', "aclog.toml:2: clusters.dev.acls: no: no such file or directory"),
    ],
)
def test_slips_in_the_table_are_named_with_their_line(repository: Repository, text: str, message: str) -> None:
    Path("aclog.toml").write_text(text)
    assert aclog("lint").complaint.startswith(message)


_ACL = (
    'resource "kafka_acl" "a" {\n  resource_name = "%s"\n  resource_type = "Topic"\n  acl_principal = "User:a"\n'
    '  acl_host = "*"\n  acl_operation = "Read"\n  acl_permission_type = "Allow"\n}\n'
)


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"a/m.tf": _ACL % "x", "b/m.tf": _ACL % "z"}, "each root module is a cluster: a, b"),
        (
            {"u.yaml": USER % ("c", "x") + "---\n" + USER % ("d", "z")},
            "each label strimzi.io/cluster is a cluster: c, d",
        ),
        ({"a/u.yaml": USER % ("c", "x"), "b/u.yaml": USER % ("c", "z")}, "each directory is a cluster: a, b"),
        ({"a/m.tf": _ACL % "x", "b/m.tf": "locals {}\n"}, None),
        ({"a/m.tf": 'module "b" {\n  source = "../b"\n}\n', "b/m.tf": _ACL % "x"}, None),
        ({"a/u.yaml": USER % ("c", "x"), "b/u.yaml": USER % ("c", "x")}, None),
    ],
)
def test_rules_of_several_clusters_are_never_put_together_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], names: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, files)
    noted = [line for line in aclog("acls", "list", "--acls", ".").ok().err.splitlines() if "clusters" in line]
    if names is None:
        assert not noted
    else:
        assert len(noted) == 1
        assert f"rules of 2 clusters are read as those of one, if {names}: give the files of one" in noted[0]


def test_a_review_of_several_clusters_at_once_states_so(repository: Repository) -> None:
    repository.commit({"tf/a/m.tf": _ACL % "x", "tf/b/m.tf": _ACL % "y"})
    lines = aclog("review", "tf", "--base", "HEAD").ok().lines
    assert any(line.startswith("tf: rules of 2 clusters are read as those of one") for line in lines[-3:])


def test_users_of_one_name_in_one_directory_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": USER % ("c", "x"), "b.yaml": USER % ("c", "y")})
    assert "one would replace the other in a cluster" in aclog("acls", "list", "--acls", tmp_path).complaint
