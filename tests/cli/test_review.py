"""`aclog review` by its own command line, on a repository with pull requests: accidents, formats, exit codes."""

import json
from pathlib import Path

import jsonschema
import pytest

from aclog.cli.schema import schema_of
from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository
from tests.support.review.comments import shown_text
from tests.support.review.pull_requests import ACCIDENTS, MODULES, PULL_REQUESTS, PullRequest, apply, write_main

CHECKED = ("kafka", "--base", "main", "--tests", "tests/rules.yaml", "--topics", "topics.txt")
"""As most of the tests review."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return a repository whose main branch has been reviewed, in the working directory."""
    made = write_main(tmp_path / "repository")
    for name in ("GITHUB_SERVER_URL", "CI_PROJECT_URL", "BITBUCKET_GIT_HTTP_ORIGIN", "GITHUB_BASE_REF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(made.path)
    return made


@pytest.mark.parametrize("request_", PULL_REQUESTS, ids=lambda each: each.name)
def test_an_accident_is_in_the_first_five_lines(repository: Repository, request_: PullRequest) -> None:
    apply(request_, Path())
    result = aclog("review", *CHECKED, "--accesses", "accesses.jsonl")
    first = "\n".join(result.lines[:5])
    for part in request_.expected:
        assert part in first, result.out + result.err
    assert result.code == ("FAILS" in result.lines[0])


@pytest.mark.parametrize("request_", [*PULL_REQUESTS, *ACCIDENTS], ids=lambda each: each.name)
def test_a_comment_shows_the_accident_before_what_is_folded(repository: Repository, request_: PullRequest) -> None:
    repository.commit(MODULES)
    apply(request_, Path())
    result = aclog("review", *CHECKED, "--accesses", "accesses.jsonl", "--format", "markdown")
    assert result.out.isprintable() or set(filter(lambda each: not each.isprintable(), result.out)) == {"\n"}
    text = shown_text(result.out.partition("<details>")[0])
    for part in request_.in_comment or request_.expected:
        assert part in text, result.out + result.err
    heads = [line for line in result.lines if line.startswith("### ")]
    assert result.code == any("FAILS" in line for line in heads)
    assert len(result.lines) <= 45


def test_accesses_that_can_be_read_only_once_are_refused(repository: Repository) -> None:
    result = aclog("review", *CHECKED, "--accesses", "-", stdin=Path("accesses.jsonl").read_bytes())
    assert result.code == 2
    assert "stdin: a review reads the accesses twice" in result.err


def test_a_change_that_is_committed_is_reviewed_by_its_name_and_so_is_the_working_tree(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--create", "change")
    apply(PULL_REQUESTS[0], Path())
    working = aclog("review", "kafka", "--base", "main").lines
    repository.git("commit", "--quiet", "--all", "--message", "change")
    committed = aclog("review", "kafka", "--base", "main", "--head", "change").lines
    assert committed[:3] == working[:3]
    assert "for example User:orders-etl" in "\n".join(working)
    assert aclog("review", "kafka", "--base", "change", "--head", "change").lines[0].endswith("no effective change")


def test_what_came_to_the_base_since_is_not_the_change(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--create", "change")
    repository.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
    repository.git("switch", "--quiet", "main")
    apply(PULL_REQUESTS[1], Path())
    repository.git("commit", "--quiet", "--all", "--message", "moves on")
    repository.git("switch", "--quiet", "change")
    nothing = "aclog review: no condition of --fail-on is met; no effective change"
    assert aclog("review", "kafka", "--base", "main").ok().lines[0] == nothing


def test_a_path_that_only_one_side_has(repository: Repository) -> None:
    repository.git("mv", "kafka", "acls")
    gained = aclog("review", "acls", "--base", "main")
    assert "main" in gained.err
    assert "does not have it, so it has no rules" in gained.err
    assert "lost: 0 rows" in gained.lines[0]
    lost = aclog("review", "kafka", "--base", "main")
    assert "gained: 0 rows" in lost.lines[0]
    nowhere = aclog("review", "kafkaa", "--base", "main")
    assert nowhere.code == 2
    assert "neither" in nowhere.err


def test_what_must_not_change_is_proved_or_refuted(repository: Repository) -> None:
    Path("aclog.toml").write_text('[review]\nuntouched = ["topic:billing.pii.*", "cluster"]\n')
    result = aclog("review", "kafka", "--base", "main")
    assert result.ok().lines[2:] != []
    assert "PROVED: topic:billing.pii.* is decided as before" in result.out
    apply(PULL_REQUESTS[1], Path())
    result = aclog("review", "kafka", "--base", "main")
    assert result.code == 1
    assert result.lines[1] == "- refuted: topic:billing.pii.* is decided differently for at least one request"
    assert "PROVED: cluster is decided as before" in result.out


PAYMENTS = '[review]\nno-gain = ["topic:payments.*", "cluster"]\n'
GRANT = "User:{},Topic,LITERAL,{},Read,{},*\n"
NO_GAIN = "no principal gains access to topic:payments.*"
A_GAIN = "at least one principal gains access to topic:payments.*"


@pytest.fixture
def payments(repository: Repository) -> Path:
    """Return a file whose two rules are the only ones on topics that begin with payments."""
    path = Path("kafka/payments.csv")
    head = Path("kafka/audit.csv").read_text().splitlines(keepends=True)[0]
    repository.commit({"aclog.toml": PAYMENTS, str(path): head + GRANT.format("app", "payments.eu", "Allow")})
    return path


def test_access_that_is_gained_on_a_protected_resource_fails(payments: Path) -> None:
    payments.write_text(payments.read_text() + GRANT.format("mallory", "payments.us", "Allow"))
    result = aclog("review", "kafka", "--base", "main", "--fail-on", "proofs")
    assert result.code == 1
    assert result.lines[1] == f"- refuted: {A_GAIN}"
    proofs = result.lines[result.lines.index("Proofs:") + 1 :]
    assert proofs[0] == f"  REFUTED: {A_GAIN}"
    assert proofs[1].startswith("    GAINED  User:mallory: READ, DESCRIBE on TOPIC payments.us")
    assert "  PROVED: no principal gains access to cluster" in proofs
    comment = aclog("review", "kafka", "--base", "main", "--format", "markdown").out
    assert f"REFUTED: `{A_GAIN}`" in comment
    assert "PROVED: `no principal gains access to cluster`" in comment
    lines = map(json.loads, aclog("review", "kafka", "--base", "main", "--format", "jsonl").lines)
    validator = jsonschema.Draft202012Validator(schema_of("review"))
    proved = [line for line in lines if line["kind"] == "proof" and not list(validator.iter_errors(line))]
    assert [(each["setting"], each["resource"], each["holds"]) for each in proved] == [
        ("no-gain", "topic:payments.*", False),
        ("no-gain", "cluster", True),
    ]


def test_a_deny_that_is_removed_is_a_gain(repository: Repository, payments: Path) -> None:
    text = payments.read_text()
    payments.write_text(text + GRANT.format("app", "payments.eu", "Deny"))
    aclog("review", "kafka", "--base", "main").ok()
    repository.git("commit", "--quiet", "--all", "--message", "deny")
    payments.write_text(text)
    assert aclog("review", "kafka", "--base", "main").lines[1] == f"- refuted: {A_GAIN}"


def test_access_that_is_lost_or_gained_elsewhere_is_no_gain(payments: Path) -> None:
    (head, *_) = payments.read_text().splitlines(keepends=True)
    payments.write_text(head + GRANT.format("app", "payment", "Allow"))
    result = aclog("review", "kafka", "--base", "main").ok()
    assert "access gained: 1 row, lost: 1 row" in result.lines[0]
    assert f"PROVED: {NO_GAIN}" in result.out
    Path("aclog.toml").write_text(PAYMENTS.replace("no-gain", "untouched"))
    assert (
        "refuted: topic:payments.* is decided differently for at least one request"
        in aclog("review", "kafka", "--base", "main").out
    )


def test_a_setting_that_opens_resources_without_rules_is_a_premise_of_no_gain(
    repository: Repository, payments: Path
) -> None:
    payments.write_text(payments.read_text().replace("Topic", "TransactionalId").replace("Read", "Write"))
    repository.git("commit", "--quiet", "--all", "--message", "transactions")
    Path("aclog.toml").write_text('[review]\nno-gain = ["transactional-id:payments.*"]\n')
    payments.unlink()
    asked = ("review", "kafka", "--base", "main")
    claim = "no principal gains access to transactional-id:payments.*"
    assert f"PROVED: {claim}" in aclog(*asked).ok().out
    assert (
        f"- refuted: {claim.replace('no principal', 'at least one principal')}"
        in aclog(*asked, "--allow-everyone-if-no-acl-found").lines
    )


@pytest.mark.parametrize("key", ["untouched", "no-gain"])
def test_a_protected_resource_that_is_none_is_refused_with_its_line(repository: Repository, key: str) -> None:
    for text, complaint in (("topics:pay", "'topics:pay' is not a resource"), ("topic:", "'topic:' has no name")):
        Path("aclog.toml").write_text(f'[review]\n{key} = ["{text}"]\n')
        refused = aclog("review", "kafka", "--base", "main")
        assert refused.code == 2
        assert f"aclog.toml:2: review.{key}: {complaint}" in refused.complaint


def test_a_change_of_the_checks_is_told(repository: Repository) -> None:
    Path("tests/rules.yaml").write_text(
        Path("tests/rules.yaml").read_text().replace("- who_can", "- name: w\n  who_can")
    )
    result = aclog("review", *CHECKED).ok()
    assert "- the change modifies the checks themselves: tests/rules.yaml" in result.lines[:5]


def _set_up(repository: Repository, settings: str) -> None:
    repository.commit({"aclog.toml": settings})


def test_checks_that_a_change_deletes_are_told(repository: Repository) -> None:
    _set_up(repository, '[source]\nacls = "kafka"\n[test]\nfiles = ["tests/*.yaml"]\n')
    repository.commit({"tests/more.yaml": Path("tests/rules.yaml").read_text()})
    Path("tests/more.yaml").unlink()
    told = "- the change modifies the checks themselves: "
    assert f"{told}tests/more.yaml (deleted)" in aclog("review", "--base", "main").ok().lines[:5]
    failing = aclog("review", "--base", "main", "--fail-on", "checks", "--format", "jsonl")
    assert failing.code == 1
    assert json.loads(failing.lines[0])["checksChanged"] == ["tests/more.yaml (deleted)"]
    Path("aclog.toml").unlink()
    lines = aclog("review", "kafka", "--base", "main").ok().lines
    assert lines[0] == "aclog review: no condition of --fail-on is met; no effective change, 2 check files changed"
    assert f"{told}aclog.toml (deleted), tests/more.yaml (deleted)" in lines[:5]
    repository.git("commit", "--quiet", "--all", "--message", "weaker")
    assert (
        f"{told}aclog.toml (deleted), tests/more.yaml (deleted)"
        in (aclog("review", "kafka", "--base", "main~1", "--head", "main").ok().lines[:5])
    )


def test_a_suppression_in_the_change_is_told(repository: Repository) -> None:
    rule = "User:x,Topic,LITERAL,orders.*,Read,Allow,*\n"
    Path("kafka/teams/orders.csv").write_text(Path("kafka/teams/orders.csv").read_text() + rule)
    suppressed = '[[lint.ignore]]\nlint = "02"\nprincipal = "User:x"\nreason = "because"\n'
    Path("aclog.toml").write_text(suppressed)
    lines = aclog("review", "kafka", "--base", "main").lines
    assert "1 finding suppressed" in lines[0]
    assert any(line.startswith("- suppressed lint finding [02 glob-in-name]: ALLOW User:x") for line in lines[:5])


def test_a_fixed_finding_has_no_fix(repository: Repository) -> None:
    rule = "User:x,Topic,LITERAL,orders.*,Read,Allow,*\n"
    path = Path("kafka/teams/orders.csv")
    before = path.read_text()
    path.write_text(before + rule)
    repository.git("commit", "--quiet", "--all", "--message", "glob")
    path.write_text(before)
    lines = aclog("review", "kafka", "--base", "HEAD").lines
    fixed = lines[lines.index("Fixed lint findings:") + 1 :]
    assert fixed[0].startswith("  02 glob-in-name: ALLOW User:x")
    assert not any(line.startswith("    fix:") for line in fixed[: fixed.index("")])


def test_no_effective_change_is_about_what_was_read(repository: Repository) -> None:
    Path("kafka/teams/new.properties").write_text("x=1\n")
    Path("kafka/README.md").write_text("x\n")
    assert aclog("review", "kafka", "--base", "main").ok().lines[0].endswith("; no effective change")
    Path("kafka/teams/new.tf").write_text('resource "rhoas_acl" "a" {}\n')
    head = (
        "aclog review: no condition of --fail-on is met; no effective change in what was read, 1 changed object not "
        "read (fails with --fail-on unread)"
    )
    listed = "- changed, but not read, so it may change rules: terraform:rhoas_acl 1 ({}kafka/teams/new.tf:1)"
    assert aclog("review", "kafka", "--base", "main").ok().lines[:2] == [head, listed.format("")]
    repository.git("add", ".")
    repository.git("commit", "--quiet", "--message", "new")
    lines = aclog("review", "kafka", "--base", "main~1", "--head", "main").ok().lines
    assert lines[:2] == [head, listed.format("main:")]


def test_what_makes_a_review_doubtful_is_in_it(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.git("commit", "--quiet", "--message", "no history")
    assert (
        aclog("review", "kafka", "--base", "main")
        .lines[1]
        .startswith("- main: this clone does not have the commit at which HEAD parted from it")
    )
    repository.git("mv", "kafka", "acls")
    lines = aclog("review", "kafka", "--base", "HEAD").lines
    assert lines[1] == "- kafka: the working tree does not have it, so it has no rules"


def test_super_users_that_are_hardly_meant_are_warned_of_once(repository: Repository) -> None:
    said = aclog("review", "kafka", "--base", "main", "--super-users", "User:a,User:b").err
    assert said.count("warning: --super-users: ") == 1


def test_settings_say_how_to_read_files(repository: Repository) -> None:
    _set_up(repository, '[source]\nacls = "kafka"\nformat = "terraform"\n')
    assert aclog("review", "--base", "main").ok().lines[-1].startswith("the working tree: 6 rules")


def test_without_a_base_the_default_branch_is_compared_with(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--create", "change")
    apply(PULL_REQUESTS[0], Path())
    repository.git("commit", "--quiet", "--all", "--message", "change")
    assert aclog("review", "kafka").lines == aclog("review", "kafka", "--base", "main").lines
    repository.git("update-ref", "refs/remotes/origin/trunk", "change")
    repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert "; origin/trunk (" in aclog("review", "kafka").ok().out
    assert aclog("review", "kafka").lines[0].endswith("no effective change")


def test_the_error_on_a_missing_base_names_the_default_branch(repository: Repository) -> None:
    repository.git("branch", "--quiet", "--move", "main", "master")
    missing = aclog("review", "kafka", "--base", "main")
    assert (missing.code, missing.complaint) == (
        2,
        "main: this clone has no such commit; the default branch is 'master'",
    )
    repository.git("update-ref", "refs/remotes/origin/trunk", "master")
    repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert "; the default branch is 'origin/trunk'" in aclog("review", "kafka", "--base", "main").complaint
    repository.git("branch", "--quiet", "--move", "master", "work")
    repository.git("symbolic-ref", "--delete", "refs/remotes/origin/HEAD")
    assert aclog("review", "kafka", "--base", "main").complaint == "main: this clone has no such commit"


def test_a_job_has_its_target_branch(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.git("update-ref", "refs/remotes/origin/release", "main")
    apply(PULL_REQUESTS[0], Path())
    monkeypatch.setenv("GITHUB_BASE_REF", "release")
    assert "; origin/release (" in aclog("review", "kafka").out


def test_a_clone_without_a_default_branch_needs_a_base(repository: Repository) -> None:
    repository.git("branch", "--quiet", "--move", "main", "work")
    result = aclog("review", "kafka")
    assert (result.code, result.complaint) == (
        2,
        "no default branch in this clone (origin/HEAD, main, master): name the commit with --base",
    )


@pytest.mark.parametrize(
    ("remote", "environment", "address"),
    [
        ("git@github.com:acme/rules.git", {}, "https://github.com/acme/rules/blob/{}/kafka/audit.csv#L2"),
        ("https://u:p@gitlab.com/a/b/c.git", {}, "https://gitlab.com/a/b/c/-/blob/{}/kafka/audit.csv#L2"),
        ("ssh://git@gitlab.acme.example:2222/a/b", {}, "https://gitlab.acme.example/a/b/-/blob/{}/kafka/audit.csv#L2"),
        ("https://bitbucket.org/a/b", {}, "https://bitbucket.org/a/b/src/{}/kafka/audit.csv#lines-2"),
        ("https://codeberg.org/a/b.git", {}, "https://codeberg.org/a/b/src/commit/{}/kafka/audit.csv#L2"),
        (
            "/srv/rules.git",
            {"GITHUB_SERVER_URL": "https://git.acme.example", "GITHUB_REPOSITORY": "a/b"},
            "https://git.acme.example/a/b/blob/{}/kafka/audit.csv#L2",
        ),
        (
            "/srv/rules.git",
            {"CI_PROJECT_URL": "https://git.acme.example/a/b"},
            "https://git.acme.example/a/b/-/blob/{}/kafka/audit.csv#L2",
        ),
        ("/srv/rules.git", {}, None),
        ("https://example.com/a/b.git", {}, None),
        ("git@github.com:acme/rules)[x](http://evil", {}, None),
        ("https://notgithub.com/a/b.git", {}, None),
    ],
)
def test_a_comment_links_lines_at_their_commit(
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    remote: str,
    environment: dict[str, str],
    address: str | None,
) -> None:
    repository.git("remote", "add", "origin", remote)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    repository.git("switch", "--quiet", "--create", "change")
    apply(ACCIDENTS[0], Path())
    plain = "| `kafka/audit.csv:2` |"
    assert plain in aclog("review", "kafka", "--base", "main", "--format", "markdown").out  # not committed
    repository.git("commit", "--quiet", "--all", "--message", "change")
    commit = repository.git("rev-parse", "HEAD").strip()
    out = aclog("review", "kafka", "--base", "main", "--format", "markdown").out
    assert (plain if address is None else f"| [`kafka/audit.csv:2`]({address.format(commit)}) |") in out
    assert aclog("review", "kafka", "--base", "main", "--head", "change", "--format", "markdown").out.count(
        commit
    ) == out.count(commit)
    lost = aclog("review", "kafka", "--base", "change", "--head", "main", "--format", "markdown").out
    assert address is None or commit not in lost  # the merge base is main: nothing changed


def test_a_comment_links_removed_rules_at_the_base(repository: Repository) -> None:
    repository.git("remote", "add", "origin", "git@github.com:acme/rules.git")
    commit = repository.git("rev-parse", "HEAD").strip()
    apply(ACCIDENTS[7], Path())
    out = aclog("review", "kafka", "--base", "main", "--format", "markdown").out
    assert f"https://github.com/acme/rules/blob/{commit}/kafka/teams/billing.csv#L" in out


def test_a_base_that_the_clone_lacks_can_be_fetched(repository: Repository) -> None:
    repository.git("remote", "add", "origin", "elsewhere")
    assert "fetch it: git fetch origin main:refs/remotes/origin/main" in (
        aclog("review", "kafka", "--base", "origin/main").err
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [((), 0), (("--fail-on", "gained"), 1), (("--fail-on", "lost,gained"), 1), (("--fail-on", "lost"), 0)],
)
def test_what_fails_is_the_repositorys_choice(repository: Repository, arguments: tuple[str, ...], code: int) -> None:
    apply(PULL_REQUESTS[0], Path())
    assert aclog("review", "kafka", "--base", "main", "--topics", "topics.txt", *arguments).code == code


def test_a_review_that_passes_names_the_flag_that_fails_on_what_is_gained(repository: Repository) -> None:
    apply(PULL_REQUESTS[0], Path())
    asked = ("review", "kafka", "--base", "main", "--topics", "topics.txt")
    way = "to fail on gained access as well: --fail-on "
    passed = aclog(*asked).ok()
    assert passed.lines[-1] == f"{way}gained,breaks,everyone,proofs,tests,lint-error"
    assert "--fail-on replaces" not in passed.err
    failed = aclog(*asked, "--fail-on", passed.lines[-1].removeprefix(way))
    assert (failed.code, way in failed.out, "--fail-on replaces" in failed.err) == (1, False, False)
    alone = aclog(*asked, "--fail-on", "gained,tests")
    assert (alone.code, "leaves out breaks, everyone, proofs, lint-error" in alone.err) == (1, True)
    assert "leaves out" not in aclog(*asked, "--fail-on", "never").ok().err


def test_the_first_page_of_help_has_what_makes_a_review_fail() -> None:
    brief = aclog("review", "--help").ok().out.partition("More flags")
    assert "--fail-on KINDS" in brief[0]
    assert "--fail-on" not in brief[2]
    words = "".join(aclog("review", "--help-all").ok().out.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", "").split())
    assert "Default:breaks,everyone,proofs,tests,lint-error" in words


def test_a_change_that_gives_something_to_everyone_fails_unless_it_is_accepted(repository: Repository) -> None:
    path = Path("kafka/audit.csv")
    path.write_text(path.read_text() + "User:*,Topic,LITERAL,orders.placed,Read,Allow,*\n")
    result = aclog("review", "kafka", "--base", "main")
    assert result.code == 1
    assert result.lines[0].startswith("aclog review: FAILS: access gained: 1 row, lost: 0 rows, everyone gains access")
    verdict = json.loads(aclog("review", "kafka", "--base", "main", "--format", "jsonl").lines[0])
    assert ("everyone" in verdict["found"], "everyone" in verdict["failOn"]) == (True, True)
    accepted = aclog("review", "kafka", "--base", "main", "--fail-on", "breaks,proofs,tests,lint-error").ok()
    assert accepted.lines[0].startswith(
        "aclog review: no condition of --fail-on is met; access gained: 1 row, lost: 0 rows, everyone gai"
    )


def test_files_get_other_formats(repository: Repository) -> None:
    apply(PULL_REQUESTS[8], Path())
    result = aclog("review", *CHECKED, "--out", "markdown=r.md", "--out", "sarif=r.sarif", "--out", "jsonl=r.jsonl")
    assert result.code == 1
    assert Path("r.md").read_text().startswith("### \N{LARGE RED CIRCLE} aclog review: FAILS: ")
    assert Path("r.md").read_text().endswith("<!-- aclog review -->\n")
    (run,) = json.loads(Path("r.sarif").read_text())["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(ids)) == len(ids)
    assert {each["ruleId"] for each in run["results"]} <= set(ids)
    assert all("ruleIndex" not in each or ids[each["ruleIndex"]] == each["ruleId"] for each in run["results"])
    glob = next(each for each in run["results"] if each["ruleId"] == "02")
    place = glob["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "kafka/teams/orders.csv"
    assert place["region"]["startLine"] == 4
    found = [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()]
    jsonschema.validate(found, {"items": schema_of("review")})
    assert json.loads(aclog("review", *CHECKED, "--format", "json").out) == found
    kinds = [each["kind"] for each in found]
    assert kinds[0] == "verdict"
    assert {"difference", "finding"} <= set(kinds)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("kafka", "--base", "gone"), "gone: this clone has no such commit"),
        (("kafka", "--base", "--upload-pack=x"), "is no branch, tag or commit"),
        (("kafka", "--base", "main..main"), "is a range of commits"),
        (("kafka", "--base", "main", "--fail-on", "all"), "'all' is not one of gained, lost, breaks"),
        (("kafka", "--base", "main", "--out", "pdf=x"), "expected FORMAT=FILE"),
        (("/", "--base", "main"), "not in the repository"),
        (("--base", "main"), "no rules are named: expected PATH, or source.acls in aclog.toml"),
        (("kafka", "--base", "main", "--tests", "gone.yaml"), "gone.yaml"),
    ],
)
def test_what_cannot_be_reviewed_is_refused(repository: Repository, arguments: tuple[str, ...], complaint: str) -> None:
    result = aclog("review", *arguments)
    assert result.code == 2
    assert complaint in result.err
    assert not result.out


def test_a_malformed_file_of_either_side_ends_it_with_its_line(repository: Repository) -> None:
    path = Path("kafka/audit.csv")
    text = path.read_text()
    path.write_text(text + "User:x,Topic\n")
    result = aclog("review", "kafka", "--base", "main")
    assert (result.code, result.out) == (2, "")
    assert result.complaint.startswith("kafka/audit.csv:5: ")
    repository.git("commit", "--quiet", "--all", "--message", "broken")
    path.write_text(text)
    result = aclog("review", "kafka", "--base", "HEAD")
    assert result.code == 2
    assert result.complaint.startswith("HEAD:kafka/audit.csv:5: ")


def test_a_subdirectory_of_the_repository_will_do(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("kafka")
    nothing = "aclog review: no condition of --fail-on is met; no effective change"
    assert aclog("review", ".", "--base", "main").ok().lines[:2] == [nothing, ""]
    apply(PULL_REQUESTS[3], Path(".."))
    for path in (".", repository.path / "kafka"):
        lines = aclog("review", path, "--base", "main").ok().lines
        assert lines[1] == "- 5 rules moved from kafka/teams/billing.csv to kafka/finance/billing.csv"


def test_names_cannot_move_the_cursor(repository: Repository) -> None:
    rule = '{"resourceType":"TOPIC","resourceName":"a\\u001b[2Jb","patternType":"LITERAL","principal":"User:a",'
    rule += '"host":"*","operation":"READ","permissionType":"ALLOW"}\n'
    Path("kafka/x.jsonl").write_text(rule)
    for form in ("text", "markdown", "sarif", "jsonl"):
        result = aclog("review", *CHECKED, "--format", form)
        assert "2J" in result.out
        assert "\x1b" not in result.out + result.err


def test_a_file_of_tests_has_its_own_settings_and_rules(repository: Repository) -> None:
    root = "super-users: [User:root]\n{}tests:\n- {{principal: User:root, can: {{ALL: [topic:pii.*]}}}}\n"
    Path("t.yaml").write_text(root.format(""))
    assert aclog("review", "kafka", "--base", "main", "--tests", "t.yaml").code == 0
    assert aclog("review", "kafka", "--base", "main", "--tests", "t.yaml", "--super-users", "").code == 1
    Path("t.yaml").write_text(root.format("rules: kafka/\n"))
    assert "left out" not in aclog("review", "kafka/", "--base", "main", "--tests", "t.yaml").ok().out
    Path("t.yaml").write_text(root.format("rules: kafka/teams\n"))
    left = aclog("review", "kafka", "--base", "main", "--tests", "t.yaml", "--super-users", "").ok()
    assert "t.yaml: left out: its tests are of kafka/teams, not of kafka" in left.out
