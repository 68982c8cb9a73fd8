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
        assert f"aclog: note: cluster {name}: skipped: check" in found.err
    rows = [json.loads(line) for line in aclog("lint", "--format", "jsonl").lines]
    assert {(row["cluster"], row["lint"]) for row in rows} >= {("dev", "13"), ("prod 1", "05")}
    assert json.loads(aclog("lint", "--format", "json").out) == rows
    for row in rows:
        jsonschema.validate(row, schema_of("finding"))
    runs = json.loads(aclog("lint", "--format", "sarif").out)["runs"]
    assert [run["automationDetails"]["id"] for run in runs] == ["aclog/dev", "aclog/prod 1"]
    assert aclog("lint", "--format", "markdown").lines[0] == "## cluster dev"
    assert aclog("lint", "--acls", "dev").ok().lines[0].startswith("warning [13 ")
    assert "one of the clusters of aclog.toml" in aclog("lint", "--fix", "fix.jsonl").complaint


def test_each_cluster_is_reviewed_by_itself(repository: Repository) -> None:
    """What one gains and another loses does not cancel out, as it would in a union."""
    write_files(
        Path(), {"dev/a.jsonl": ONE_RULE.replace('"one"', '"two"'), "prod/b.jsonl": ONE_RULE.replace('"one"', '"x"')}
    )
    found = aclog("review", "--base", "HEAD").ok()
    heads = [found.lines[number + 1] for number, line in enumerate(found.lines) if line.startswith("cluster ")]
    verdict = "aclog review: no condition of --fail-on is met; "
    assert len(heads) == 2
    assert heads[0].startswith(f"{verdict}access gained: 1 row, lost: 1 row")
    assert heads[1].startswith(f"{verdict}access gained: 1 row, lost: 0 rows")
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


_SERVERS = 'provider "kafka" {\n  bootstrap_servers = ["%s"]\n}\n'
_CONFLUENT = """\
resource "confluent_kafka_acl" "%s" {
  kafka_cluster {
    id = "%s"
  }
  resource_name = "%s"
  resource_type = "TOPIC"
  pattern_type = "LITERAL"
  principal = "User:a"
  host = "*"
  operation = "READ"
  permission = "ALLOW"
}
"""
_NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata: {name: n%s, cluster: %s}
spec: {kafkaUser: u%s}
---
apiVersion: v1
kind: AccessControlEntry
metadata: {name: e%s, namespace: n%s}
spec: {resourceType: TOPIC, resource: t%s, resourcePatternType: LITERAL, permission: READ, grantedTo: n%s}
"""
_JIKKOU = """\
apiVersion: kafka.jikkou.io/v1beta2
kind: KafkaPrincipalAuthorization
metadata: {name: "User:a", annotations: {jikkou.io/provider: %s}}
spec: {acls: [{resource: {type: topic, pattern: x, patternType: LITERAL}, type: ALLOW, operations: [READ], host: "*"}]}
"""
_KUSTOMIZATION = "resources: [../../base]\n"
_STATE = json.dumps(
    {
        "version": 4,
        "lineage": "x",
        "terraform_version": "1.9.0",
        "resources": [
            {
                "mode": "managed",
                "type": "kafka_acl",
                "name": "a",
                "instances": [
                    {
                        "attributes": {
                            "resource_name": "%s",
                            "resource_type": "Topic",
                            "resource_pattern_type_filter": "Literal",
                            "acl_principal": "User:a",
                            "acl_host": "*",
                            "acl_operation": "Read",
                            "acl_permission_type": "Allow",
                        }
                    }
                ],
            }
        ],
    }
)
TWO_ROOTS = {"a/m.tf": _ACL % "x", "b/m.tf": _ACL % "z"}


def _namespace(number: int, cluster: str) -> str:
    return _NAMESPACE % (number, cluster, *[number] * 5)


@pytest.mark.parametrize(
    ("files", "clusters"),
    [
        (TWO_ROOTS, "root module: a, b"),
        ({"u.yaml": USER % ("c", "x") + "---\n" + USER % ("d", "z")}, "label strimzi.io/cluster: c, d"),
        (
            {"a/u.yaml": USER % ("c", "x"), "b/u.yaml": USER % ("c", "z")},
            "directories with different users of one name: a, b",
        ),
        ({"u.yaml": USER % ("c", "x"), "b/u.yaml": USER % ("c", "z")}, "of one name: ., b"),
        ({"dev/a.jsonl": ONE_RULE, "prod/a.jsonl": ONE_RULE}, "names of directories and files: dev, prod"),
        ({"acls-stg.jsonl": ONE_RULE, "acls-prd.jsonl": ONE_RULE}, "directories and files: acls-prd, acls-stg"),
        ({"x/clusters/eu/a.jsonl": ONE_RULE, "x/clusters/us/a.jsonl": ONE_RULE}, "directories and files: eu, us"),
        (
            {"env/eu/dev/a.jsonl": ONE_RULE, "env/eu/prod/a.jsonl": ONE_RULE, "env/us/dev/a.jsonl": ONE_RULE},
            "3 clusters by names of directories and files: eu/dev, eu/prod, us",
        ),
        (
            {
                "base/u.yaml": USER % ("c", "x"),
                "base/kustomization.yaml": "resources: [u.yaml]\n",
                "over/eu/kustomization.yaml": _KUSTOMIZATION,
                "over/us/kustomization.yaml": _KUSTOMIZATION,
            },
            "kustomizations that take the same files: over/eu, over/us",
        ),
        (
            {"m.tf": _CONFLUENT % ("a", "lkc-1", "x") + _CONFLUENT % ("b", "lkc-2", "x")},
            "kafka_cluster.id of Terraform: lkc-1, lkc-2",
        ),
        (
            {
                "m.tf": (_SERVERS % "a.example.com:9092")
                + (_SERVERS % "b.example.com:9092").replace("{\n", '{\n  alias = "eu"\n')
                + 'module "m" {\n  source = "./m"\n}\n'
                + 'module "n" {\n  source = "./m"\n  providers = { kafka = kafka.eu }\n}\n',
                "m/m.tf": _ACL % "x",
            },
            "bootstrap_servers of a provider of Terraform: a.example.com:9092, b.example.com:9092",
        ),
        (
            {f"{each}/m.tf": _SERVERS % "kafka.svc.cluster.local:9092" + _ACL % "x" for each in ("dev", "prod")},
            "bootstrap_servers of a provider of Terraform: dev, prod",
        ),
        ({"n.yaml": _namespace(1, "eu") + "---\n" + _namespace(2, "us")}, "metadata.cluster of ns4kafka: eu, us"),
        ({"j.yaml": _JIKKOU % "eu" + "---\n" + _JIKKOU % "us"}, "annotation jikkou.io/provider: eu, us"),
        ({"a.tfstate": _STATE % "x", "b.tfstate": _STATE % "x"}, "plan or state of Terraform: a.tfstate, b.tfstate"),
        # one cluster
        ({"a/m.tf": _ACL % "x", "b/m.tf": "locals {}\n"}, None),
        ({"a/m.tf": 'module "b" {\n  source = "../b"\n}\n', "b/m.tf": _ACL % "x"}, None),
        ({"a/u.yaml": USER % ("c", "x"), "b/u.yaml": USER % ("c", "x")}, None),
        ({"dev/a.jsonl": ONE_RULE, "development/a.jsonl": ONE_RULE}, None),
        ({"dev-tools/a.jsonl": ONE_RULE, "lab/a.jsonl": ONE_RULE, **{f"t{n}.jsonl": ONE_RULE for n in "abc"}}, None),
        ({f"teams/{each}/m.tf": _SERVERS % "k.example.com:9092" + _ACL % each for each in "abc"}, None),
        ({"m.tf": _CONFLUENT % ("a", "lkc-1", "x") + _CONFLUENT % ("b", "lkc-1", "y")}, None),
        ({"clusters/eu/a.jsonl": ONE_RULE}, None),
    ],
)
def test_rules_of_several_clusters_are_never_put_together_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], clusters: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, files)
    noted = [line for line in aclog("acls", "list", "--acls", ".").ok().err.splitlines() if "clusters" in line]
    linted = aclog("lint", "--acls", ".", "--fail-on", "never").ok()
    heads = [line.removeprefix("cluster ") for line in linted.lines if line.startswith("cluster ")]
    if clusters is None:
        assert not noted
        assert not heads
    else:
        assert len(noted) == 1
        assert "rules of several clusters are read as those of one" in noted[0]
        assert f"{clusters}: give the files of one, or state them: a table for each in aclog.toml" in noted[0]
        assert ", ".join(heads) == clusters.rpartition(": ")[2]
        assert ": a section for each of " in linted.err
        assert "read as those of one" not in linted.err


def test_each_cluster_without_a_table_has_its_own_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that another cluster's implies is not redundant, and a fix is of the files of one cluster only."""
    monkeypatch.chdir(tmp_path)
    describing = ONE_RULE.replace("READ", "DESCRIBE")
    write_files(tmp_path, {"dev/a.jsonl": ONE_RULE, "prod/a.jsonl": describing})
    found = aclog("lint", "--acls", ".", "--select", "11")
    assert found.ok().lines == ["cluster dev", "no findings in 1 rule", "cluster prod", "no findings in 1 rule"]
    guess = 'a guess: if it is wrong, write a table for each in aclog.toml ([clusters.dev], acls = "dev"), or one table'
    assert guess in found.err
    assert found.err.count("skipped: check") <= 1
    assert "--fix: expected the files of one cluster" in aclog("lint", "--acls", ".", "--fix", "fix.jsonl").complaint
    write_files(tmp_path, {"aclog.toml": '[clusters.all]\nacls = "."\n'})
    stated = aclog("lint", "--select", "11").ok()
    assert "11 implied" in stated.out
    assert "clusters" not in stated.err


def test_what_belongs_to_no_cluster_has_a_section_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {f"{each}/a.jsonl": ONE_RULE for each in ("dev", "prod", "shared")})
    write_files(tmp_path, {"prod/b.yaml": "{{ x }}\nkind: KafkaUser\nprincipal: a\noperation: b\ntopic: c\n"})
    rows = [json.loads(line) for line in aclog("lint", "--acls", ".", "--format", "jsonl").lines]
    assert {row["cluster"] for row in rows} == {"dev", "prod", "unassigned"}
    assert [row["cluster"] for row in rows if "unread" in row] == ["prod"]


def test_names_of_clusters_are_untrusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are of labels in files: neither markup nor escapes of a terminal, and one may be that of the rest."""
    monkeypatch.chdir(tmp_path)
    names = ('"a\\u001b[31mb"', '"<b>@me</b>"', '""', '"unassigned"')
    users = [USER.replace("name: app", f"name: u{at}") % (name, "x") for at, name in enumerate(names)]
    write_files(tmp_path, {"u.yaml": "---\n".join(users)})
    found = aclog("lint", "--acls", ".").ok()
    heads = [line.removeprefix("cluster ") for line in found.lines if line.startswith("cluster ")]
    assert heads == ["<b>@me</b>", "a\\x1b[31mb", "unassigned", "unassigned'"]
    assert "\x1b" not in found.err
    assert "<b>" not in aclog("lint", "--acls", ".", "--format", "markdown").ok().out


def test_topics_of_one_cluster_are_not_those_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    topic = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: x, labels: {strimzi.io/cluster: %s}}\n"
    users = [USER % ("c", "x"), USER % ("d", "x"), topic % "c", (topic % "d").replace("name: x", "name: y")]
    write_files(tmp_path, {"u.yaml": "---\n".join(users)})
    rows = [json.loads(line) for line in aclog("lint", "--acls", ".", "--select", "18", "--format", "jsonl").lines]
    assert [row["cluster"] for row in rows] == ["d"]


def test_a_suppression_that_one_cluster_uses_is_not_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ignored = '[[lint.ignore]]\nlint = "05"\nprincipal = "one"\nreason = "r"\n'
    write_files(tmp_path, {"aclog.toml": f'[source]\nacls = "k"\n{ignored}{ignored.replace("one", "two")}'})
    write_files(tmp_path, {"k/dev/a.jsonl": ONE_RULE, "k/prod/a.jsonl": TYPELESS})
    found = aclog("lint", "--select", "05").ok()
    assert "1 suppressed" in found.out
    assert "aclog.toml:4" not in found.err
    assert "aclog.toml:8: the suppression of 05 is stale" in found.err


def test_a_review_without_a_table_has_a_section_for_each_cluster(repository: Repository) -> None:
    repository.commit({"tf/a/m.tf": _ACL % "x", "tf/b/m.tf": _ACL % "y", "tf/c/m.tf": _ACL % "x"})
    write_files(Path(), {"tf/a/m.tf": _ACL % "y", "tf/b/m.tf": _ACL % "x"})
    found = aclog("review", "tf", "--base", "HEAD").ok()
    heads = [found.lines[number + 1] for number, line in enumerate(found.lines) if line.startswith("cluster ")]
    assert ["gained: 1 row, lost: 1 row" in each for each in heads] == [True, True, False]
    assert "tf: a section for each of 3 clusters by root module: a, b, c; a guess" in found.out
    comment = aclog("review", "tf", "--base", "HEAD", "--format", "markdown").ok().lines
    assert [line for line in comment if line.startswith("## ")] == ["## cluster a", "## cluster b"]
    assert "- no effective change in 1 more cluster: `c`" in comment
    rows = [json.loads(line) for line in aclog("review", "tf", "--base", "HEAD", "--format", "jsonl").ok().lines]
    assert [row["cluster"] for row in rows if row["kind"] == "verdict"] == ["a", "b", "c"]
    runs = json.loads(aclog("review", "tf", "--base", "HEAD", "--format", "sarif").ok().out)["runs"]
    assert [run["automationDetails"]["id"] for run in runs] == ["aclog/a", "aclog/b", "aclog/c"]


def test_a_review_refuses_a_root_module_that_the_change_breaks(repository: Repository) -> None:
    """Its rules would seem to be revoked; one that was broken before is unread."""
    repository.commit(
        {"tf/a/m.tf": _ACL % "x", "tf/b/m.tf": _ACL % "y", "tf/c/m.tf": (_ACL % "z").replace("Read", "Raed")}
    )
    assert "broken:root-module" in aclog("review", "tf", "--base", "HEAD").ok().out
    write_files(Path(), {"tf/b/m.tf": (_ACL % "y").replace("Allow", "Alow")})
    assert "a root module has an error" in aclog("review", "tf", "--base", "HEAD").complaint


def test_a_cluster_that_a_change_adds_is_told_from_the_first(repository: Repository) -> None:
    """One side alone has no two clusters: names are those of both sides."""
    repository.commit({"k/dev/a.jsonl": ONE_RULE})
    write_files(Path(), {"k/prod/a.jsonl": ONE_RULE.replace('"one"', '"two"')})
    rows = [json.loads(line) for line in aclog("review", "k", "--base", "HEAD", "--format", "jsonl").ok().lines]
    assert next((row["cluster"], row["found"]) for row in rows if row["kind"] == "verdict") == ("dev", [])
    assert {row["cluster"] for row in rows if row["kind"] == "difference"} == {"prod"}


def test_tests_of_rules_run_once_on_all_clusters(repository: Repository) -> None:
    case = "tests:\n- name: t\n  principal: User:one\n  can: {WRITE: [topic:other]}\n"
    repository.commit({"k/dev/a.jsonl": ONE_RULE, "k/prod/a.jsonl": ONE_RULE, "t.yaml": case})
    found = aclog("review", "k", "--base", "HEAD", "--tests", "t.yaml")
    assert found.code == 1
    assert "run once, on the rules of all clusters together" in found.out


def test_a_difference_has_a_section_for_each_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one loses and the other gains would cancel out."""
    monkeypatch.chdir(tmp_path)
    other = ONE_RULE.replace("User:one", "User:two")
    write_files(tmp_path, {"old/dev/a.jsonl": ONE_RULE, "old/prod/a.jsonl": other})
    write_files(tmp_path, {"new/dev/a.jsonl": other, "new/prod/a.jsonl": ONE_RULE})
    found = aclog("diff", "old", "new")
    assert found.code == 1
    assert [line for line in found.lines if line.startswith("cluster ")] == ["cluster dev", "cluster prod"]
    assert found.out.count("1 gained, 1 lost") == 2
    rows = [json.loads(line) for line in aclog("diff", "old", "new", "--format", "jsonl").lines]
    assert [row["cluster"] for row in rows] == ["dev", "dev", "prod", "prod"]
    for row in rows:
        jsonschema.validate(row, schema_of("difference"))
    runs = json.loads(aclog("diff", "old", "new", "--format", "sarif").out)["runs"]
    assert [run["automationDetails"]["id"] for run in runs] == ["aclog/dev", "aclog/prod"]
    assert aclog("diff", "old", "new", "--format", "markdown").lines[0] == "## cluster dev"
    assert aclog("diff", "old", "old").code == 0


def test_a_difference_with_one_of_the_clusters_is_not_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"old/dev/a.jsonl": ONE_RULE, "old/prod/a.jsonl": ONE_RULE})
    found = aclog("diff", "old", "old/prod")
    assert found.code == 0
    assert "old: rules of several clusters are read as those of one" in found.err


def test_users_of_one_name_in_one_directory_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": USER % ("c", "x"), "b.yaml": USER % ("c", "y")})
    assert "one would replace the other in a cluster" in aclog("acls", "list", "--acls", tmp_path).complaint


def test_a_root_module_that_was_not_read_is_not_a_clean_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lint of the others passes, and its first lines state what was not read, in each format."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {f"{each}/m.tf": _ACL % "x" for each in "ab"} | {"c/m.tf": (_ACL % "x").replace("Read", "")})
    found = aclog("lint", "--acls", ".", "--select", "11").ok()
    assert found.lines[0].startswith("1 object in 1 file not read, which may hold rules: broken:root-module 1 (c/m.tf:")
    assert found.lines[2:] == [
        *("cluster a", "no findings in 1 rule", "cluster b", "no findings in 1 rule", "cluster unassigned"),
        "not judged: no rule was read, and 1 object not read, which may hold rules",
    ]
    markdown = aclog("lint", "--acls", ".", "--select", "11", "--format", "markdown").ok()
    assert markdown.lines[0].startswith("**1 object in 1 file not read, which may hold rules")
    rows = [json.loads(line) for line in aclog("lint", "--acls", ".", "--format", "jsonl").ok().lines]
    assert ["unread" in row for row in rows] == [True, False, False]
    runs = json.loads(aclog("lint", "--acls", ".", "--format", "sarif").ok().out)["runs"]
    assert [[each["ruleId"] for each in run["results"]] for run in runs] == [["13"], ["13"], ["content-not-read"]]
    assert aclog("lint", "--acls", ".", "--select", "11", "--fail-on", "error,unread").code == 1


def test_lint_counts_what_was_not_read_beside_what_it_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"k/a.jsonl": ONE_RULE, "k/b.yaml": "kind: KafkaUser\nspec: {{ x }}\n"})
    found = aclog("lint", "--acls", "k", "--select", "11").ok()
    assert found.lines[-1] == "no findings in 1 rule; 1 object not read, which may hold rules"


def test_the_sarif_of_a_difference_has_what_neither_side_read(repository: Repository) -> None:
    """Once for both sides, in the run of its cluster."""
    broken = {"tf/c/m.tf": (_ACL % "x").replace("Read", "")}
    repository.commit({f"tf/{each}/m.tf": _ACL % "x" for each in "ab"} | broken)
    found = aclog("diff", "HEAD:tf", "tf", "--format", "sarif")
    assert found.code == 1
    runs = json.loads(found.out)["runs"]
    results = {run["automationDetails"]["id"]: [each["ruleId"] for each in run["results"]] for run in runs}
    assert results == {"aclog/a": [], "aclog/b": [], "aclog/unassigned": ["content-not-read"]}
    assert "content-not-read" in [each["id"] for each in runs[-1]["tool"]["driver"]["rules"]]


def test_lint_reads_the_accesses_of_stdin_once_for_all_clusters(repository: Repository) -> None:
    rule = json.loads(ONE_RULE.splitlines()[0])
    access = {key: rule[key] for key in ("principal", "operation", "resourceType", "resourceName")} | {"host": "::1"}
    Path("accesses.jsonl").write_text(json.dumps(access))
    words = ("lint", "--select", "06", "--format", "jsonl", "--accesses")
    of_file, of_stdin = aclog(*words, "accesses.jsonl"), aclog(*words, "-", stdin=json.dumps(access).encode())
    assert "skipped: check" not in of_file.err
    assert (of_stdin.code, of_stdin.out, of_stdin.err) == (of_file.code, of_file.out, of_file.err)


@pytest.mark.parametrize(
    "words",
    [
        ("lint", "--select", "18", "--format", "jsonl", "--topics"),
        ("review", "--base", "HEAD", "--format", "markdown", "--topics"),
        ("review", "--base", "HEAD", "--format", "jsonl", "--topics"),
    ],
)
def test_topics_of_stdin_are_read_once_for_all_clusters(repository: Repository, words: tuple[str, ...]) -> None:
    second = ONE_RULE.replace('"one"', '"two"')
    write_files(Path(), dict.fromkeys(("dev/a.jsonl", "prod/a.jsonl"), f"{ONE_RULE}{second}"))
    text = "one\ntwo\n"
    Path("../topics.txt").write_text(text)  # outside of what is reviewed
    of_file, of_stdin = aclog(*words, "../topics.txt"), aclog(*words, "-", stdin=text.encode())
    assert of_file.out != aclog(*words, "-", stdin=b"").out
    assert (of_stdin.code, of_stdin.out, of_stdin.err) == (of_file.code, of_file.out, of_file.err)


def test_groups_of_stdin_are_read_once_for_all_clusters(repository: Repository) -> None:
    group = ONE_RULE.replace("TOPIC", "GROUP")
    write_files(Path(), dict.fromkeys(("dev/a.jsonl", "prod/a.jsonl"), group))
    Path("groups.txt").write_text("one\n")
    words = ("lint", "--select", "18", "--format", "jsonl", "--groups")
    of_file, of_stdin = aclog(*words, "groups.txt"), aclog(*words, "-", stdin=b"one\n")
    assert of_file.out != aclog(*words, "-", stdin=b"").out
    assert (of_stdin.code, of_stdin.out, of_stdin.err) == (of_file.code, of_file.out, of_file.err)
