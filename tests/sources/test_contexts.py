"""The file of contexts: where it is, whose it may be, what it may say, and how it is changed."""

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aclog.metalog.errors import ConfigError
from aclog.sources.contexts import (
    ChosenBy,
    add_context,
    choose_context,
    config_file,
    read_context_file,
    remove_context,
    rename_context,
    shown_value,
    use_context,
)
from aclog.sources.named_source import selection_of

TEXT = """\
# of the team
current = "night"

[contexts.prod]
bootstrap-server = "a:9092,b:9092"
command-config = "prod.properties"  # beside this file
super-users = ["User:admin", "User:CN=ops,O=x"]
allow-everyone-if-no-acl-found = true
timezone = "Europe/Berlin"

[contexts.night]  # a copy
log = "~/backup"
"""


@pytest.fixture
def path(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    monkeypatch.setenv("ACLOG_CONFIG", str(path))
    return path


def write(path: Path, text: str = TEXT) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def refused(path: Path, name: str = "prod") -> str:
    with pytest.raises(ConfigError) as found:
        read_context_file(path).context(name)
    assert "\n" not in str(found.value)
    return str(found.value)


def test_a_context_has_whole_paths_and_the_settings_of_brokers(path):
    prod = read_context_file(write(path)).context("prod")
    assert prod.address == "--bootstrap-server a:9092,b:9092"
    assert prod.command_config == path.parent / "prod.properties"
    assert prod.super_users == "User:admin;User:CN=ops,O=x"
    assert list(prod.decides().values()) == [
        "super.users=User:admin;User:CN=ops,O=x",
        "allow.everyone.if.no.acl.found=true",
    ]
    assert prod.place == f"{path}:4"
    night = read_context_file().context("night")
    assert night.value == str(Path.home() / "backup")
    assert selection_of(night).log == Path.home() / "backup"


def test_a_zookeeper_is_selected_by_the_properties_of_its_authorizer(path):
    (path.parent / "zk.properties").write_text("zookeeper.session.timeout.ms=7000\n")
    write(path, '[contexts.old]\nzookeeper = "z:2181/kafka"\nzookeeper-config = "zk.properties"\n')
    found = selection_of(read_context_file().context("old"))
    assert found.authorizer_properties == ("zookeeper.connect=z:2181/kafka", "zookeeper.session.timeout.ms=7000")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[contexts.prod\n", ":1: not TOML"),
        ("contexts = 1\n", ":1: contexts: expected a table, not a number"),
        ("[contexts]\nprod = 1\n", ":2: contexts.prod: expected a table, not a number"),
        ("[context.prod]\nlog = 'a'\n", ":1: unknown key 'context': did you mean contexts?"),
        ("[contexts.prod]\nlogg = 'a'\n", ":2: unknown key 'logg' in [contexts.prod]: did you mean log?"),
        ("[contexts.prod]\n", "context prod has no source: expected exactly one of log, snapshot"),
        ("[contexts.prod]\nlog = 'a'\nacls = 'b'\n", ":3: context prod has log and acls: expected exactly one"),
        ("[contexts.prod]\nlog = 7\n", ":2: contexts.prod.log: expected a string, not a number"),
        ("[contexts.prod]\nlog = ''\n", ":2: contexts.prod.log: expected a path, not an empty string"),
        ("[contexts.prod]\nacls = '-'\n", ":2: contexts.prod.acls: expected a path: stdin is another one each time"),
        ("[contexts.prod]\nlog = 'a'\ncommand-config = 'b'\n", ":3: contexts.prod.command-config: only together with"),
        ("[contexts.prod]\nlog = 'a'\nsemantics = 'x'\n", ":3: contexts.prod.semantics: 'x' is not one of kafka"),
        ("[contexts.prod]\nlog = 'a'\nformat = 'x'\n", ":3: contexts.prod.format: 'x' is not one of text, table"),
        ("[contexts.prod]\nbootstrap-server = ''\n", ":2: contexts.prod.bootstrap-server: expected HOST:PORT"),
        (
            "[contexts.prod]\nbootstrap-server = 'a:1'\nsasl.jaas.config = 'password=\"hidden\"'\n",
            ":3: 'sasl' of context prod: client properties belong in a file with its own permissions: expected ",
        ),
        (
            "[contexts.prod]\nbootstrap-server = 'a:1'\n'ssl.key.password' = 'hidden'\n",
            ":3: 'ssl.key.password' of context prod: client properties belong in a file",
        ),
    ],
)
def test_what_a_file_cannot_say_is_told_with_its_line(path, text, said):
    told = refused(write(path, text))
    assert said in told
    assert told.startswith(str(path))
    assert "hidden" not in told


def test_a_context_that_is_not_there_is_told_with_those_that_are(path):
    assert refused(write(path), "prd") == f"no context 'prd' in {path}: did you mean prod? it has prod, night"
    path.unlink()
    assert refused(path) == f"no context 'prod': {path} has none: `aclog context add prod` makes it"


def test_a_damaged_context_does_not_keep_others_from_being_used(path):
    write(path, f"{TEXT}[contexts.bad]\nnothing = 1\n")
    assert read_context_file().context("night").kind == "log"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(path, mode):
    write(path).chmod(mode)
    assert refused(path) == f"{path}: others may write it (mode 0{mode:o}): chmod go-w {path}"


def test_a_file_of_another_user_is_refused(path, monkeypatch):
    write(path)
    found = path.stat()
    monkeypatch.setattr("aclog.sources.contexts.os.getuid", lambda: 1234)
    if found.st_uid == 0:  # root's file is anybody's to use
        assert read_context_file().names == ("prod", "night")
        other = os.stat_result((*found[:4], 4321, *found[5:10]))
        monkeypatch.setattr("aclog.sources.contexts.Path.stat", lambda _: other)
    assert "it belongs to another user (uid" in refused(path)


def test_the_file_is_the_users_own_wherever_a_command_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACLOG_CONFIG", "config.toml")
    with pytest.raises(ConfigError, match=r"ACLOG_CONFIG=config\.toml: expected an absolute path"):
        config_file()
    monkeypatch.delenv("ACLOG_CONFIG")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/me")
    assert config_file() == Path("/etc/me/aclog/config.toml")
    for relative in ("here", ".", ""):
        monkeypatch.setenv("XDG_CONFIG_HOME", relative)
        assert config_file() == Path("/home/me/.config/aclog/config.toml")
    for home in ("", "here"):
        monkeypatch.setenv("HOME", home)
        assert config_file() is None or config_file().is_absolute()
        assert not config_file().is_relative_to(tmp_path)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}[0])
    assert config_file() is None
    assert choose_context() is None
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("HOME", "/Users/me")
    assert config_file().is_absolute()


def test_the_name_wins_over_the_variable_and_this_over_the_current_one(path, monkeypatch):
    monkeypatch.delenv("ACLOG_CONTEXT", raising=False)
    assert choose_context() is None
    write(path)

    def chosen(name: str | None = None) -> tuple[str, ChosenBy] | None:
        found = choose_context(name)
        return None if found is None else (found.context.name, found.by)

    assert chosen() == ("night", ChosenBy.CURRENT)
    monkeypatch.setenv("ACLOG_CONTEXT", "prod")
    assert chosen() == ("prod", ChosenBy.VARIABLE)
    assert chosen("night") == ("night", ChosenBy.NAME)
    assert chosen("") is None
    monkeypatch.setenv("ACLOG_CONTEXT", "")
    assert chosen() is None
    monkeypatch.setenv("ACLOG_CONTEXT", "nihgt")
    with pytest.raises(ConfigError, match=r"did you mean night\? .*\(it is named by ACLOG_CONTEXT\)"):
        choose_context()


def test_changes_keep_comments_and_what_else_is_there(path):
    write(path)
    add_context(path, "new", {"log": "/x"}, replace=False)
    rename_context(path, "night", "day")
    remove_context(path, "prod")
    assert path.read_text() == (
        '# of the team\ncurrent = "day"\n\n[contexts.new]\nlog = "/x"\n\n[contexts.day]  # a copy\nlog = "~/backup"\n'
    )
    remove_context(path, "day")
    use_context(path, "new")
    assert read_context_file().current == "new"
    use_context(path, None)
    assert read_context_file().current is None
    with pytest.raises(ConfigError, match="context new exists already: --replace replaces it"):
        add_context(path, "new", {"log": "/y"}, replace=False)
    add_context(path, "new", {"log": "/y"}, replace=True)
    assert read_context_file().context("new").value == "/y"
    rename_context(path, "new", "last")
    remove_context(path, "last")
    assert (read_context_file().names, path.read_text()) == ((), "# of the team\n")


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", "\r\n"),
        "contexts.prod.log = 'a'\n",
        "contexts = {prod = {log = 'a'}}\n",
        "[contexts]\nprod = {log = 'a'}\n",
        "[contexts]\nprod.log = 'a'\n[contexts.night]\nlog = 'b'\n",
        "",
    ],
)
def test_every_way_to_write_a_table_is_changed_whole_or_not_at_all(path, text):
    path.write_bytes(text.encode())
    path.chmod(0o600)
    before = set(read_context_file().names)
    try:
        add_context(path, "new", {"log": "/x"}, replace=False)
        use_context(path, "new")
    except ConfigError:  # it would disturb something else: make it with an editor
        assert set(read_context_file().names) in (before, before | {"new"})
    else:
        assert set(read_context_file().names) == before | {"new"}
        assert read_context_file().current == "new"


def test_a_change_that_fails_writes_nothing(path):
    write(path)
    for change in (
        lambda: add_context(path, "bad", {"log": "/x", "acls": "/y"}, replace=False),
        lambda: rename_context(path, "prod", "night"),
        lambda: remove_context(path, "none"),
        lambda: use_context(path, "none"),
    ):
        with pytest.raises(ConfigError):
            change()
    assert path.read_text() == TEXT
    assert {each.name for each in path.parent.iterdir()} == {"config.toml", ".config.toml.lock"}


def test_a_new_file_is_nobody_elses_and_a_link_stays_one(tmp_path):
    path = tmp_path / "new" / "aclog" / "config.toml"
    add_context(path, "a", {"log": "/x"}, replace=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    kept = tmp_path / "dotfiles.toml"
    path.rename(kept)
    path.symlink_to(kept)
    add_context(path, "b", {"log": "/y"}, replace=False)
    assert path.is_symlink()
    assert read_context_file(path).names == read_context_file(kept).names == ("a", "b")


def test_a_pipe_is_not_replaced_by_a_file(path):
    os.mkfifo(path)
    # Whoever would read it reads that it is empty.
    threading.Thread(target=lambda: [path.write_text("") for _ in range(9)], daemon=True).start()
    with pytest.raises(ConfigError, match=f"{path}: not a regular file: expected one that can be changed"):
        add_context(path, "a", {"log": "/x"}, replace=False)
    assert [(each.name, each.is_fifo()) for each in path.parent.iterdir()] == [(path.name, True)]


def test_changes_at_the_same_time_lose_none(path):
    with ThreadPoolExecutor(4) as pool:  # each takes the lock with a descriptor of its own, as a process does
        list(pool.map(_add_some, [path] * 4, range(4)))
    assert set(read_context_file().names) == {f"{worker}-{number}" for worker in range(4) for number in range(5)}


def _add_some(path: Path, worker: int) -> None:
    for number in range(5):
        add_context(path, f"{worker}-{number}", {"log": "/x"}, replace=False)


@pytest.mark.parametrize(
    "key",
    [
        "ssl.key.password", "sasl.jaas.config", "ssl.keystore.key", "oauth.client.secret", "basic.auth.user.info",
        "sasl.oauthbearer.assertion.private.key.passphrase", "ssl.keystore.certificate.chain", "sasl.login.other",
        "delegation.token.secret.key", "x", "ssl.secret.location",
    ],
)  # fmt: skip
def test_what_may_be_a_secret_is_never_shown(key):
    assert shown_value(key, "hidden") == "***"


@pytest.mark.parametrize(
    "key",
    ["security.protocol", "sasl.mechanism", "ssl.truststore.location", "request.timeout.ms", "client.id",
     "ssl.endpoint.identification.algorithm", "zookeeper.connect", "zookeeper.ssl.client.enable"],
)  # fmt: skip
def test_what_is_no_secret_is_shown(key):
    assert shown_value(key, "value") == "value"
