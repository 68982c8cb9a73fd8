"""`open_log(context=...)`: the source and the settings that a context names, and the zone of times."""

from pathlib import Path

import pytest

import aclog

LOG = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"


@pytest.fixture(autouse=True)
def contexts(tmp_path, monkeypatch):
    file = tmp_path / "config.toml"
    file.write_text(
        f'current = "plain"\n[contexts.plain]\nlog = "{LOG}"\n'
        f'[contexts.night]\nlog = "{LOG}"\nsuper-users = "User:admin;User:ops"\ntimezone = "Europe/Berlin"\n'
        'allow-everyone-if-no-acl-found = true\n[contexts.prod]\nbootstrap-controller = "h:1"\n'
        f'[contexts.rules]\nacls = "{LOG.parent}/expected/acls.jsonl"\nacls-format = "jsonl"\n'
    )
    file.chmod(0o600)
    monkeypatch.setenv("ACLOG_CONFIG", str(file))


def test_a_context_decides_what_is_not_given():
    with aclog.open_log(context="night") as log:
        image = log.image()
        assert log.name == str(LOG)
    assert log.notes[0].startswith("context night: decided with super.users=User:admin;User:ops, allow.everyone")
    asked = ("User:ops", "ALTER", aclog.cluster())
    assert image.authorizer().check(*asked).rule == "SuperUser"
    assert repr(image.authorizer()).endswith("['User:admin', 'User:ops'], allow_everyone_if_no_acl_found=True)")
    assert not image.authorizer(super_users="User:other").check(*asked)
    assert repr(image.authorizer(super_users="", allow_everyone_if_no_acl_found=False)) == "Authorizer(acls=68)"
    with aclog.open_log(context="plain") as plain:
        assert repr(plain.image().authorizer()) == "Authorizer(acls=68)"
        assert plain.notes == []


def test_its_time_zone():
    for options, count in (
        ({"context": "night"}, 31),
        ({"context": "night", "timezone": "UTC"}, 68),
        ({"context": "plain"}, 68),
        ({"path": LOG, "timezone": "+01:00"}, 31),
        ({"path": LOG}, 68),
    ):
        with aclog.open_log(**options) as log:
            assert len(log.image(as_of="2026-11-21 03:24:30")) == count


def test_files_of_rules():
    with aclog.open_log(context="rules") as log:
        rule = next(log.image().acls(name="payments."))
        assert log.image().origins.of(rule.acl)[0].line == 50


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"context": "nihgt"}, "no context 'nihgt' in .*: did you mean night\\?"),
        ({"context": ""}, "context '': expected the name of a context"),
        ({"context": 3}, "context 3: expected text, such as 'prod'"),
        ({"context": "night", "path": LOG}, "expected either a context, or a path or a running cluster"),
        ({"context": "night", "max_age": 3}, "context night: max_age: the state of a path has no age"),
        ({"path": LOG, "timezone": "Mars"}, "unknown time zone 'Mars'"),
        ({}, "or context='NAME'"),
    ],
)
def test_what_is_refused(given, said):
    with pytest.raises(aclog.ConfigError, match=said):
        aclog.open_log(**given)


def test_a_cluster_is_opened_when_it_is_asked():
    aclog.open_log(context="prod", max_age=3).close()
