"""The broker of an unread line: what the line or the path of its file states, and never what a user chose."""

import json
from datetime import UTC
from pathlib import Path

import pytest

from aclog.usage.accesses.access_log import find_accesses, read_part
from aclog.usage.accesses.brokers import broker_of_line, broker_of_path
from aclog.usage.window import HOUR, UnreadAccesses
from tests.usage.accesses.forms import BODIES, TEXTS

BODY = BODIES["4.0"]
POD = "my-cluster-kafka-0"
ID = "0123456789ab" + "c" * 52


@pytest.mark.parametrize(
    ("line", "broker"),
    [
        (TEXTS["kubectl prefix"](BODY), POD),
        (TEXTS["docker compose"](BODY), "kafka-1"),
        (TEXTS["docker compose colours"](BODY), "kafka-1"),
        (TEXTS["syslog 3164"](BODY), "broker1"),
        (TEXTS["syslog 5424"](BODY), "broker1"),
        (TEXTS["journald iso"](BODY), "broker1"),
        (TEXTS["rsyslog forwarded"](BODY), "broker1"),
        (TEXTS["gelf"](BODY), "b1"),
        (TEXTS["fluent bit"](BODY), "kafka-0"),
        (TEXTS["fluent bit"](BODY)[60:], "kafka-0"),  # torn
        (json.dumps({"_HOSTNAME": "h1", "MESSAGE": BODY}), "h1"),
        (json.dumps({"host": {"id": 1, "name": "h2"}, "message": BODY}), "h2"),
        (json.dumps({"message": BODY, "host.name": "h3", "kubernetes": {"pod": {"name": POD}}}), POD),
        (json.dumps({"logStream": "kafka-prod-Broker-1", "message": BODY}), "kafka-prod-Broker-1"),
        # the host of the client
        ('{"principal":"User:a","host":"10.0.0.1","resourceName":5,"broker":"7"}', "7"),
        ('"host":"10.0.0.1","operation":"READ"}', None),
        # no statement of the log
        (TEXTS["apache"](BODY), None),
        (TEXTS["cri"](BODY), None),
        (TEXTS["spring"](BODY), None),
        (TEXTS["docker json"](BODY), None),
        ("", None),
        ("\0" * 99, None),
        # names that users chose
        (TEXTS["apache"](BODY.replace("böb", 'x","host":"forged')), None),
        (TEXTS["apache"](BODY.replace("böb", "[pod/forged/kafka] ")), None),
        (TEXTS["docker json"](BODY.replace("böb", 'x","host":"forged')), None),
        (json.dumps({"message": BODY.replace("böb", '"pod_name":"forged"'), "host": "h1"}), "h1"),
    ],
)  # fmt: skip
def test_a_line_names_its_broker_outside_of_its_message(line: str, broker: str | None) -> None:
    assert broker_of_line(line) == broker


@pytest.mark.parametrize(
    ("path", "broker"),
    [
        (f"/var/log/containers/{POD}_ns_kafka-{'a' * 64}.log", POD),
        (f"/var/log/pods/ns_{POD}_11-22/kafka/0.log", POD),
        (f"/var/lib/docker/containers/{ID}/{ID}-json.log", ID[:12]),
        ("/var/log/kafka-1/kafka-authorizer.log", "kafka-1/kafka-authorizer.log"),
        ("/var/log/kafka-1/kafka-authorizer.log.2026-11-21-10", "kafka-1/kafka-authorizer.log"),
        ("/var/log/kafka-1/kafka-authorizer.log.3.gz", "kafka-1/kafka-authorizer.log"),
        ("s3a://bucket/b1/kafka-authorizer.log-20261121.zst", "b1/kafka-authorizer.log"),
        ("file:///logs/a%20b/x.log", "a b/x.log"),
        ("kafka-authorizer.log", "kafka-authorizer.log"),
        (".1", ".1"),
    ],
)
def test_a_path_names_a_broker(path: str, broker: str) -> None:
    assert broker_of_path(path) == broker


def test_a_hostile_line_is_searched_quickly() -> None:
    for text in ("[pod/" * 99_999, '{"host":{' * 99_999, '"pod":{' + "a" * 999_999, "Mar  1 " * 99_999):
        assert broker_of_line(text) is None


def _unread(*paths: Path) -> UnreadAccesses:
    parts = find_accesses([str(path) for path in paths], UTC).parts
    return UnreadAccesses.sum_of(batch.unread for part in parts for batch in read_part(part))


@pytest.mark.parametrize("form", ["strimzi", "apache", "kubectl prefix", "docker json", "ecs", "fluent bit", "logback"])
def test_a_torn_line_has_the_hours_of_its_neighbours(tmp_path: Path, form: str) -> None:
    whole = [TEXTS[form](BODY).replace("10:00:00", f"{hour}:00:00") for hour in (10, 11, 12)]
    if "json" in form or form == "fluent bit":
        whole = [line.replace("1772359200.123", f"{1772359200 + 3600 * at}.123") for at, line in enumerate(whole)]
    torn = whole[1][len(whole[1]) // 2 :]
    folder = tmp_path / "kafka-7"
    folder.mkdir()
    (folder / "kafka-authorizer.log").write_text("\n".join([whole[0], torn, *whole[1:]]) + "\n", encoding="utf-8")
    found = _unread(folder / "kafka-authorizer.log")
    ((key, span),) = found.spans.items()
    assert span.first is not None
    assert span.last is not None
    assert [(time // HOUR) % 24 for time in span[1:]] == [10, 11]
    named = {"kubectl prefix": None, "fluent bit": "kafka-0"}
    assert key.broker in {named.get(form), "kafka-7/kafka-authorizer.log"}


def test_a_line_at_the_border_of_blocks_has_the_times_of_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aclog.usage.accesses.lines._BLOCK", 600)
    lines = [TEXTS["apache"](BODY).replace("10:00:00", f"{hour:02}:00:00") for hour in range(20)]
    expected = set()
    for at in range(1, 19):
        lines[at : at + 1] = [lines[at], lines[at][:3] + lines[at][200:]] if at % 3 == 0 else [lines[at]]
        expected.add(at)
    (tmp_path / "kafka-authorizer.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = _unread(tmp_path / "kafka-authorizer.log")
    assert found.total > 3
    assert None not in {key.hour for key in found.spans}
    assert all(span.first is not None and span.last is not None for span in found.spans.values())
