"""aclog.toml: what it may say, where it is found, and that everything else is refused with file, line and key."""

import re
from datetime import date
from pathlib import Path

import attrs
import pytest

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.rule import repository_root
from aclog.sources.repository import (
    AuthorizerSettings,
    LintSettings,
    RepositorySettings,
    ReviewSettings,
    SourceSettings,
    TestSettings,
    find_settings_file,
    load_repository_settings,
    read_suppressions,
)
from aclog.sources.toml import read_toml

PAGE = Path(__file__).parents[2] / "docs/repository.md"
WHOLE = """
# what is checked
[source]
acls = "kafka"
format = "strimzi"
topics = "topics.txt"
groups = "lists/groups.txt"
accesses = "/var/accesses"

[source.modules]
"git::https://git.example/acl.git" = "modules/acl"

[authorizer]
super-users = ["User:admin", "User:root"]
allow-everyone-if-no-acl-found = true
semantics = "documented"
cidr = false

[lint]
broker-version = "3.9.1"
broker-principals = ["User:broker-1"]
separators = "._"
principal-types = ["User", "Group"]
select = ["01", "08"]
fail-on = "warning"

[[lint.ignore]]
lint = "08"
principal = "User:a"
resourceName = "*"
file = "kafka/*.yaml"
reason = "kept for the old consumers"
expires = 2027-01-31

[test]
files = ["tests/*.yaml"]
min-coverage = 90

[review]
fail-on = ["lint", "tests"]
"""


@pytest.fixture
def write(tmp_path):
    """Return a function that writes aclog.toml, and returns its path."""

    def write(text, name="aclog.toml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_every_setting(write, tmp_path):
    write("", "tests/b.yaml")
    write("", "tests/a.yaml")
    found = load_repository_settings(write(WHOLE))
    assert found.source.acls == str(tmp_path / "kafka")
    assert found.source.format == "strimzi"
    assert found.source.modules == (f"git::https://git.example/acl.git={tmp_path / 'modules/acl'}",)
    assert found.source.accesses == "/var/accesses"
    assert found.source.groups == str(tmp_path / "lists/groups.txt")
    assert found.authorizer.super_users == "User:admin;User:root"
    assert (found.authorizer.allow_everyone, found.authorizer.semantics, found.authorizer.cidr) == (
        True,
        "documented",
        False,
    )
    assert found.lint.broker_version == "3.9.1"
    assert found.lint.broker_principals == ("User:broker-1",)
    assert found.lint.separators == "._"
    assert found.lint.select == ("01", "08")
    assert found.lint.fail_on == "warning"
    [ignore] = found.lint.ignore
    assert ignore.lints == {"08"}
    assert ignore.fields == {"principal": "User:a", "resourceName": "*"}
    assert ignore.expires == date(2027, 1, 31)
    assert ignore.where == f"{tmp_path / 'aclog.toml'}:28"
    assert found.test.files == (str(tmp_path / "tests/a.yaml"), str(tmp_path / "tests/b.yaml"))
    assert found.test.min_coverage == 90
    assert found.review.fail_on == ("lint", "tests")
    assert str(found.error("review", "fail-on", what="no such word")).endswith(
        "aclog.toml:40: review.fail-on: no such word"
    )


def test_an_empty_file_sets_nothing_but_itself(write):
    path = write("\ufeff# nothing\r\n")
    found = load_repository_settings(path)
    assert found.file == path
    assert (found.source, found.lint) == (RepositorySettings().source, RepositorySettings().lint)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[lint]\nfail_on = 'error'", ":2: unknown key 'fail_on' in [lint]: did you mean fail-on?"),
        ("[lints]\n", ":1: unknown key 'lints': did you mean lint?"),
        ("secret = 1", ":1: unknown key 'secret': expected authorizer, clusters, lint, review, s"),
        ("\n[lint]\n# fail-on = 3\nfail-on = 'often'", ":4: lint.fail-on: 'often' is not one of error, warning, never"),
        ("[authorizer]\ncidr = 'yes'", ":2: authorizer.cidr: expected true or false, not a string"),
        ("[authorizer]\nsuper-users = 3", ":2: authorizer.super-users: expected a string or an array of strings"),
        ("[lint]\nselect = ['08', 8]", ":2: lint.select: expected strings in the array, not a number"),
        ("[source]\nacls = ['a']", ":2: source.acls: expected a string, not an array"),
        ("[source]\nacls = ''", ":2: source.acls: expected a path, not an empty string"),
        ("source = 1", ":1: source: expected a table, not a number"),
        ("[source.modules]\nm = 1", ":2: source.modules.m: expected a string, not a number"),
        ("[test]\nfiles = 'no/*.yaml'", ":2: test.files: no file matches 'no/*.yaml'"),
        ("[test]\nfiles = '/etc/*'", ":2: test.files: '/etc/*': expected a glob relative to this file"),
        ("[test]\nmin-coverage = 101", ":2: test.min-coverage: expected a number from 0 to 100, not 101"),
        ("[test]\nmin-coverage = nan", ":2: test.min-coverage: expected a number from 0 to 100, not nan"),
        ("[test]\nmin-coverage = true", ":2: test.min-coverage: expected a number, not true or false"),
        ("[lint]\nignore = 3", ":2: lint.ignore: expected [[lint.ignore]], an array of tables"),
        ("[[lint.ignore]]\nreason = 'x'", ":2: lint.ignore[1]: expected the key lint with an id"),
        ("[[lint.ignore]]\nlint = '08'", ":2: lint.ignore[1]: expected the key reason: why this finding is accepted"),
        ("[[lint.ignore]]\nlint = '08'\nreason = ' '", ":2: lint.ignore[1]: expected the key reason"),
        (
            "[[lint.ignore]]\nlint='08'\nreason='a'\n\n[[lint.ignore]]\nlint='09'\nreason='b'\nexpires='2027-01-01'",
            ":8: lint.ignore[2].expires: expected a date without quotes, such as 2027-01-31, not a string",
        ),
        (
            "[[lint.ignore]]\nlint='08'\nreason='a'\nexpires=2027-01-01T00:00:00Z",
            ":4: lint.ignore[1].expires: expected a date without quotes",
        ),
        ("[[lint.ignore]]\nlint='08'\nreason='a'\ntopic='t'", ":4: unknown key 'topic' in [lint.ignore[1]]"),
        ("[lint]\nselect = [", ": not TOML: Invalid value"),
        ("[lint]\nx = = 1\n", ":2: not TOML: Invalid value at column 5"),
        ("[lint]\n[lint]\n", ":2: not TOML: Cannot declare"),
        (b"[lint]\nseparators = '\xff'", ":2: byte 21 of the file is not UTF-8"),
        ("x = " + "[" * 3000, ": nested too deeply"),
        ("x = " + "9" * 5000, ": not TOML: "),
        (b"\x00", ":1: not TOML: "),
        (b"#" * (1 << 21), ": larger than 1,048,576 bytes"),
    ],
)
def test_what_is_refused(write, text, said):
    with pytest.raises(ConfigError) as refused:
        load_repository_settings(write(text))
    message = str(refused.value)
    assert f"aclog.toml{said}" in message
    assert len(message) < 500


def test_a_line_is_that_of_the_key_and_of_no_text_like_it(write):
    text = '''
[lint]
# fail-on = 1
separators = """
fail-on = 2
[[lint.ignore]]
"""
principal-types = ["fail-on"]   # fail-on
"fail-on" = "x"
'''
    with pytest.raises(ConfigError, match=r"aclog\.toml:9: lint\.fail-on"):
        load_repository_settings(write(text))


def test_an_inline_table_has_a_line_too(write):
    document = read_toml(write("lint.ignore = [\n  {lint = 'a'},\n  {reason = 'b', lint = 'c'},\n]"))
    assert [document.line(("lint", "ignore", place, "lint")) for place in (0, 1, 2)] == [2, 3, None]
    assert document.line(("lint", "ignore", 1)) == 3


def test_the_nearest_file_up_to_the_root_of_the_repository(write, tmp_path):
    inner = write("", "outer/repo/a/b/x").parent
    top = write("", "outer/aclog.toml")
    assert find_settings_file(inner) is None
    assert find_settings_file(top.parent) == top
    (tmp_path / "outer/repo/.git").mkdir()
    assert find_settings_file(inner) is None  # that of the repository's parent is a stranger's
    assert repository_root(inner) == tmp_path / "outer/repo"
    root = write("", "outer/repo/aclog.toml")
    assert find_settings_file(inner) == root
    near = write("", "outer/repo/a/aclog.toml")
    assert find_settings_file(inner) == near


def test_a_link_out_of_the_repository_is_refused_and_one_within_is_not(write, tmp_path):
    (tmp_path / "repo/.git").mkdir(parents=True)
    write("secret = 1", "elsewhere.toml")
    write("", "repo/settings.toml")
    link = tmp_path / "repo/aclog.toml"
    link.symlink_to("../elsewhere.toml")
    with pytest.raises(ConfigError, match="a symbolic link out of the repository"):
        find_settings_file(tmp_path / "repo")
    link.unlink()
    link.symlink_to("settings.toml")
    assert find_settings_file(tmp_path / "repo") == link
    link.unlink()
    link.symlink_to("aclog.toml")
    assert find_settings_file(tmp_path / "repo") is None


def test_the_documented_file_is_one(write):
    write("", "tests/a.yaml")
    [example] = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found = load_repository_settings(write(example))
    assert found.lint.ignore[0].lints == {"08"}
    known = {line.split(" = ")[0] for line in example.splitlines() if " = " in line and not line.startswith(("#", '"'))}
    settings = (SourceSettings, AuthorizerSettings, LintSettings, TestSettings, ReviewSettings)
    fields = {each.name.replace("_", "-") for kind in settings for each in attrs.fields(kind)}
    renamed = {"allow-everyone": "allow-everyone-if-no-acl-found", "variables": "vars"}
    assert {renamed.get(name, name) for name in fields} - {"modules", "ignore", "fail-on-unread", "table"} <= known


def test_it_says_which_file_it_took(write, tmp_path, monkeypatch, capsys):
    write("[source]\nacls = 'kafka'\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep/down").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep/down")
    found = load_repository_settings()
    assert found.source.acls == "../../kafka"
    assert capsys.readouterr().err == "aclog: note: settings are those of ../../aclog.toml\n"
    assert found.file == Path("../../aclog.toml")


def test_none_is_no_error_and_a_missing_one_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert load_repository_settings() == RepositorySettings()
    assert capsys.readouterr().err == ""
    with pytest.raises(OSError, match="nowhere"):
        load_repository_settings(tmp_path / "nowhere.toml")


def test_a_file_of_suppressions(write):
    path = write("[[ignore]]\nlint = ['08', '11']\nreason = 'x'\nhost = '*'\n", "ignore.toml")
    [found] = read_suppressions(path)
    assert found.lints == {"08", "11"}
    assert not found.has_expired(date(2100, 1, 1))
    with pytest.raises(ConfigError, match=r"ignore\.toml:1: unknown key 'lint': did you mean|expected ignore"):
        read_suppressions(write("[lint]\n", "ignore.toml"))


def test_a_suppression_covers_what_it_names():
    from aclog.analysis.lint_report import PlacedRule, Suppression

    one = Suppression(
        lints=frozenset({"08"}),
        fields={"principal": "User:a", "resourceName": "*"},
        file="kafka/*",
        reason="r",
        expires=date(2027, 1, 1),
        where="f:1",
    )
    fields = {"principal": "User:a", "resourceName": "*", "host": "*"}
    rule = PlacedRule(fields=fields, files=("kafka/a/b.yaml",))
    assert one.covers("08", [rule])
    assert not one.covers("09", [rule])
    assert not one.covers("08", [PlacedRule(fields=fields, files=("other/b.yaml",))])
    assert not one.covers("08", [PlacedRule(fields=fields)])
    assert not one.covers("08", [PlacedRule(fields=fields | {"resourceName": "t"}, files=("kafka/a",))])
    assert one.covers("08", [PlacedRule(fields={}), PlacedRule(fields=fields, files=("x", "kafka/a"))])
    assert [one.has_expired(date(*day)) for day in ((2026, 12, 31), (2027, 1, 1))] == [False, True]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[source]\ntopics = '/proc/self/environ'",
            ":2: source.topics: '/proc/self/environ' leads out of the repository",
        ),
        ("[source]\nacls = '../secret'", ":2: source.acls: '../secret' leads out of the repository"),
        ("[source]\ngroups = 'link'", ":2: source.groups: 'link' leads out of the repository"),
        ("[source]\naccesses = 'links/secret'", ":2: source.accesses: 'links/secret' leads out of the repository"),
        ("[source]\ntopics = '.git/config'", ":2: source.topics: '.git/config' leads into .git"),
        ("[source]\ntopics = 'git'", ":2: source.topics: 'git' leads into .git"),
        ("[source.modules]\nm = '..'", ": source.modules: '..' leads out of the repository"),
        ("[test]\nfiles = ['../secret']", ":2: test.files: '../secret' leads out of the repository"),
        ("[test]\nfiles = ['../sec*']", ":2: test.files: '../secret' leads out of the repository"),
        ("[test]\nfiles = ['lin*']", ":2: test.files: 'link' leads out of the repository"),
        ("[test]\nfiles = ['.git/*']", ":2: test.files: '.git/config' leads into .git"),
        ("[test]\nfiles = ['**/**/*.yaml']", ":2: test.files: '**/**/*.yaml': more than one **"),
    ],
)
def test_a_file_that_was_found_names_nothing_outside_of_its_repository(tmp_path, monkeypatch, text, said):
    """In a job for pull requests a stranger may have written it, and reads what the job prints."""
    top = tmp_path / "top"
    (top / ".git").mkdir(parents=True)
    (top / ".git/config").write_text("token\n")
    (tmp_path / "secret").write_text("secret\n")
    for name, target in {"link": "../secret", "links": "..", "git": ".git/config"}.items():
        (top / name).symlink_to(target)
    (top / "aclog.toml").write_text(text)
    monkeypatch.chdir(top)
    with pytest.raises(ConfigError) as caught:
        load_repository_settings()
    assert said in str(caught.value)
    if "**" not in text:
        load_repository_settings(Path("aclog.toml"))  # whoever names the file knows it


def test_a_file_that_was_found_names_what_is_in_its_repository(tmp_path, monkeypatch):
    (tmp_path / "top/.git").mkdir(parents=True)
    (tmp_path / "top/teams/a").mkdir(parents=True)
    (tmp_path / "top/topics.txt").write_text("t\n")
    (tmp_path / "top/teams/aclog.toml").write_text("[source]\ntopics = '../topics.txt'\naccesses = 'none/yet'\n")
    monkeypatch.chdir(tmp_path / "top/teams/a")
    found = load_repository_settings().source
    assert (found.topics, found.accesses) == ("../../topics.txt", "../none/yet")
