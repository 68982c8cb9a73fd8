"""Access logs in the forms that users have: the same accesses as in Apache's layout, or none, and never others."""
# ruff: noqa: E501 - lines of logs

import gzip
import io
import json
import os
import string
import tarfile
import zipfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.audit import Reason
from aclog.metalog.errors import ConfigError
from aclog.pipeline.accesses.kafka_log import split_lines
from aclog.sources.accesses import access_of_line, access_of_row, read_seen_accesses
from aclog.usage.accesses.access_batch import read_kafka_lines
from aclog.usage.accesses.access_log import explain_unread, find_accesses, read_part
from aclog.usage.accesses.layouts import Profile, cleaned, compile_layout, detect
from aclog.usage.accesses.times import epoch_micros, format_of
from tests.support.runs.profiles import examples
from tests.support.spark.access_logs import audit_text, batch_of
from tests.usage.accesses.damage import KINDS, judge_damaged, read_damaged, write_damaged
from tests.usage.accesses.forms import BODIES, PACKINGS, TEXTS, TIME, apache

OWN_TIME = timedelta(milliseconds=1)
SEVERAL_LINES = {"torn head", "stack trace"}


def rows_of(path, zone=UTC, profile=None):
    """Return the accesses of a log, and the counts of other lines."""
    rows, rejects = [], Counter()
    for part in find_accesses([str(path)], zone, None, profile).parts:
        for batch in read_part(part):
            rows += batch.rows.to_pylist()
            rejects += batch.rejects
    return rows, rejects


def wanted(body):
    """Return the access of a message, in Apache's layout."""
    return read_kafka_lines(apache(body).encode(), UTC).rows.to_pylist()[0]


def untimed(row):
    return {key: value for key, value in row.items() if key != "timestamp"}


@pytest.mark.parametrize("form", TEXTS)
def test_each_message_in_each_form_is_the_same_access(tmp_path, form):
    for body in BODIES.values():
        path = tmp_path / "log"
        path.write_bytes(f"{TEXTS[form](body)}\n".encode())
        (row,), rejects = rows_of(path)
        assert untimed(row) == untimed(wanted(body))
        assert abs(row["timestamp"] - TIME) < OWN_TIME
        assert rejects.total() == (0 if form not in SEVERAL_LINES else 1 if form == "torn head" else 2)


@pytest.mark.parametrize("form", sorted(TEXTS.keys() - SEVERAL_LINES))
def test_spark_and_the_reader_without_pyarrow_agree(form):
    for body in BODIES.values():
        line = TEXTS[form](body)
        want = wanted(body)
        batch = split_lines(batch_of([line] * 3))
        assert (batch.accesses.num_rows, batch.rejects.num_rows) == (3, 0)
        (row,) = {tuple(each[name] for name in untimed(want) if name in each) for each in batch.accesses.to_pylist()}
        assert row == tuple(want[name] for name in untimed(want) if name in batch.accesses.schema.names)
        profile = Profile(layouts=tuple(detect([cleaned(line)]))) if not line.startswith("{") else None
        names = ("principal", "host", "operation", "resourceType", "resourceName")
        assert access_of_line(line.encode(), profile=profile) == access_of_row([want[name] for name in names])


@pytest.mark.parametrize("name", PACKINGS)
def test_a_packed_log_is_read_by_its_content(tmp_path, name):
    path = tmp_path / name
    lines = "".join(f"{apache(body)}\n" for body in BODIES.values())
    path.write_bytes(PACKINGS[name](lines.encode()))
    rows, _ = rows_of(path)
    assert rows == [wanted(body) for body in BODIES.values()]
    path.write_bytes(path.read_bytes()[: len(PACKINGS[name](lines.encode())) // 4])
    with pytest.raises(ConfigError, match=r"not a complete \w+ file"):
        rows_of(path)


# Layouts built from log4j's conversion language, with names that a client chose.


FORMATS = {
    "%d": "%Y-%m-%d %H:%M:%S,%f",
    "%d{ISO8601}": "%Y-%m-%dT%H:%M:%S,%f",
    "%d{yyyy-MM-dd HH:mm:ss.SSS}": "%Y-%m-%d %H:%M:%S.%f",
    "%d{yyyy/MM/dd HH:mm:ss,SSS}": "%Y/%m/%d %H:%M:%S,%f",
    "%d{DATE}": "%d %b %Y %H:%M:%S,%f",
    "%d{dd.MM.yyyy HH:mm:ss,SSS}": "%d.%m.%Y %H:%M:%S,%f",
}
FIELDS = {
    "%p": "INFO",
    "%-5p": "INFO ",
    "%c": "kafka.authorizer.logger",
    "%t": "data-plane-kafka-1",
    "%X": "k=v",
    "%pid": "17",
}
LITERALS = [" ", " - ", " [", "] ", "(", ") ", " | ", ": ", "\t", ", ", "%%"]
NAMES = st.one_of(
    st.text(string.printable.replace("\n", "").replace("\r", ""), max_size=12),
    st.lists(
        st.sampled_from([
            " is Allowed operation = ", "Principal = User:x", " is Denied operation = READ from host = 10.0.0.1 on resource = Topic:",
            " for request = Fetch with resourceRefCount = 1", " based on rule DefaultDeny", " (kafka.authorizer.logger)",
            "[2026-03-01 10:00:00,123] INFO ", "LITERAL:", "a", " ", "]", "[t]", "|", "\x00", "é", '"', "\\",
        ]),
        max_size=4,
    ).map("".join),
)  # fmt: skip


@st.composite
def layouts(draw):
    """A pattern, and what it writes before and after a message."""
    time = draw(st.sampled_from(sorted(FORMATS)))
    kinds = st.sampled_from([*sorted(FIELDS), *LITERALS])
    before = [*draw(st.lists(kinds, max_size=3)), time, " ", *draw(st.lists(kinds, max_size=3))]
    after = draw(st.lists(kinds, max_size=3))
    parts = [before, after] if draw(st.booleans()) else [draw(st.lists(kinds, max_size=2)), [" ", time, *after]]
    clock = TIME.strftime(FORMATS[time])[:-3]
    texts = [
        "".join(clock if each == time else FIELDS.get(each, each.replace("%%", "%")) for each in side) for side in parts
    ]
    return f"{''.join(parts[0])}%m{''.join(parts[1])}%n", *texts


@settings(max_examples=examples(150))
@given(layout=layouts(), principal=NAMES, name=NAMES, body=st.sampled_from(sorted(BODIES)))
def test_a_line_of_any_layout_is_its_own_access_or_none(layout, principal, name, body):
    pattern, before, after = layout
    message = BODIES[body].replace("User:bob", f"User:{principal}").replace("orders", name)
    try:
        profile = Profile.of_pattern(pattern)
    except ConfigError:  # two fields run together, such as %p%c
        return
    default = read_kafka_lines(f"{apache(message)}\n".encode(), UTC)
    for read in (Profile(), Profile(layouts=profile.layouts), profile):
        batch = read_kafka_lines(f"{before}{message}{after}\n".encode(), UTC, read)
        rows = batch.rows.to_pylist()
        assert len(rows) + batch.rejects.total() == 1
        if not rows:
            continue
        # the message as it was written is the only one that may be read
        kind, _, rest = message.partition(" on resource = ")[2].partition(":")
        assert kind.upper().replace("_", "") == rows[0]["resourceType"].replace("_", "")
        assert message.startswith(f"Principal = {rows[0]['principal']} is ")
        assert rest.removeprefix("LITERAL:").startswith(rows[0]["resourceName"])
        if default.rows.num_rows:
            assert untimed(rows[0]) == untimed(default.rows.to_pylist()[0])
        assert rows[0]["timestamp"] == TIME


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("%d %p", "expected one %m"),
        ("%m %m", "expected one %m"),
        ("%d %q %m", "%q: expected a conversion"),
        ("%replace{%m}{a}{b}", "%replace: expected a conversion"),
        ("%d %maxLen{%m}{9}", "%maxLen: expected a conversion"),
        ("%d %m %notEmpty{%X}", "%notEmpty: expected a conversion"),
        ("%d %magenta(%m)", "%magenta: expected a conversion"),
        ("%d{jj} %m", "unknown or repeated letter 'j'"),
        ("%d{ISO8601}{Mars} %m", "unknown time zone"),
    ],
)
def test_a_pattern_that_cannot_be_read_back_is_refused(pattern, problem):
    with pytest.raises(ConfigError, match=problem):
        compile_layout(pattern)


def test_a_stated_layout_is_the_only_one(tmp_path):
    path = tmp_path / "log"
    other = f"03/01/2026 11:00:00 INFO {BODIES['3.2']}"
    path.write_text(f"{other}\n{apache(BODIES['3.2'])}\n")
    profile = Profile.of_pattern("%d{MM/dd/yyyy HH:mm:ss}{Europe/Berlin} %p %m%n")
    rows, rejects = rows_of(path, profile=profile)
    assert ([row["timestamp"].hour for row in rows], rejects.total()) == ([10], 1)
    rows, rejects = rows_of(path)  # 03/01 may be a day of March or of January
    assert (len(rows), rejects.total()) == (1, 1)


def test_times():
    berlin = ZoneInfo("Europe/Berlin")
    for text, zone, hour in (("10:00:00,123", berlin, 9), ("10:00:00,123Z", berlin, 10), ("10:00:00,123-05", UTC, 15)):
        (row,) = read_kafka_lines(f"2026-03-01 {text} INFO {BODIES['3.2']}".encode(), zone).rows.to_pylist()
        assert row["timestamp"] == TIME.replace(hour=hour)
    for number in ("1772359200", "1772359200000", "1772359200000000", "1772359200000000000", "1772359200.0"):
        assert epoch_micros(number) == 1_772_359_200_000_000
    # seconds of another century, or milliseconds of 1970
    assert [epoch_micros(number) for number in ("17723592001", "177235920012", "177235920", "0", "-1", "x")] == [
        None
    ] * 6
    assert format_of("dd.MM.yyyy hh:mm:ss a").parse("01.03.2026 01:00:00 PM", UTC) == 1_772_370_000_000_000
    assert format_of("dd.MM.yyyy HH:mm:ss").parse("31.02.2026 01:00:00", UTC) is None


@pytest.mark.parametrize("form", ["strimzi", "docker json", "ecs", "syslog 5424"])
def test_a_log_whose_layout_changes_is_read_in_both(tmp_path, form):
    path = tmp_path / "log"
    old, new = f"{apache(BODIES['2.4'])}\n" * 1200, f"{TEXTS[form](BODIES['4.0'])}\n" * 1200
    path.write_text(old + new)
    rows, rejects = rows_of(path)
    assert (len(rows), rejects.total()) == (2400, 0)
    if form == "strimzi":
        (profile,) = find_accesses([str(path)], UTC).profiles.values()
        assert [layout.pattern for layout in profile.layouts] == ["[%d] %p %m (%c)%n", "%d %p %m (%c) [%t]%n"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"10:00:00,123 INFO {BODIES['3.2']}", Reason.BAD_TIMESTAMP),
        (f"INFO {BODIES['3.2']}", Reason.BAD_TIMESTAMP),
        (f"17723592001 INFO {BODIES['3.2']}", Reason.BAD_TIMESTAMP),
        (json.dumps({"message": BODIES["3.2"], "timestamp": 17723592001}), Reason.BAD_TIMESTAMP),
        (json.dumps({"message": BODIES["3.2"]}), Reason.BAD_TIMESTAMP),
        (json.dumps({"message": BODIES["3.2"][:90], "timestamp": 1772359200123}), Reason.UNREADABLE),
        (f"2026-03-01 10:00:00,123 INFO {BODIES['3.2'][:120]}", Reason.NO_HEAD),
        (
            f"2026-03-01 10:00:00,123 INFO {BODIES['3.2'][:50]}2026-03-01 10:00:00,123 INFO {BODIES['3.2']}",
            Reason.AMBIGUOUS,
        ),
        (f"[2026-03-01 10:00:00,123] INFO {BODIES['3.2']} (com.example.Authorizer)", Reason.OTHER_LOGGER),
    ],
)
def test_a_line_that_cannot_be_read_is_rejected_and_recorded(tmp_path, line, reason):
    path = tmp_path / "log"
    path.write_text(f"{line}\n")
    (part,) = find_accesses([str(path)], UTC).parts
    (batch,) = read_part(part)
    assert (batch.rows.num_rows, batch.rejects, batch.unread.total) == (0, {reason: 1}, 1)


# Damage.


@pytest.mark.parametrize("form", ["apache", "strimzi", "kubectl", "docker"])
def test_nothing_is_invented_in_a_damaged_log_and_nothing_whole_is_missed(tmp_path, form):
    path = tmp_path / "kafka-authorizer.log"
    made = write_damaged(path, 3000, 0.05, 5, form)
    outcome = read_damaged(path, made)
    assert made.kinds.keys() == KINDS.keys()
    assert (outcome.invented, outcome.missed, outcome.judged) == (Counter(), Counter(), [])
    judged = judge_damaged(path, made)
    assert judged.wrong == 0
    assert min(judged.of_whole["NEEDED"], judged.of_lost["NOT_JUDGED"], judged.of_unused["NOT_JUDGED"]) > 0


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_one_damaged_line_is_enough_to_judge_no_rule_that_it_may_have_needed(tmp_path_factory, seed):
    path = tmp_path_factory.mktemp("damage") / "kafka-authorizer.log"
    made = write_damaged(path, 2, 1, seed)
    outcome = read_damaged(path, made)
    read = sum(made.written.values()) - len(made.lost)
    assert (outcome.invented, outcome.missed) == (Counter(), Counter())
    if outcome.read == read:  # otherwise a lost line was read nevertheless
        assert outcome.judged == []


# Files.


def test_files_of_a_directory_are_selected_by_content_and_once(tmp_path):
    deep = tmp_path / "old" / "2026"
    deep.mkdir(parents=True)
    (deep / "kafka-authorizer.log.1.gz").write_bytes(PACKINGS["log.gz"](f"{apache(BODIES['2.4'])}\n".encode()))
    log = tmp_path / "kafka-authorizer.log"
    log.write_text(f"{apache(BODIES['3.2'])}\n")
    (tmp_path / "link.log").symlink_to(log)
    os.link(log, tmp_path / "hard.log")
    others = {
        "kafkaServer-gc.log": b"[0.012s][info][gc] Using G1\n",
        "server.log": b"[2026-03-01 10:00:00,123] INFO started (kafka.server.KafkaServer)\n",
        "app.json": b'{"message": "started"}\n',
        "core": b"\x7fELF\0\0\0\1\2\3" * 50,
    }
    for name, content in others.items():
        (tmp_path / name).write_bytes(content)
    # its only access is far from its beginning
    late = b"started\n" * 20_000 + f"{apache(BODIES['4.0'])}\n".encode()
    (tmp_path / "kafkaServer.out").write_bytes(late)
    for place in (tmp_path, tmp_path / "**" / "*"):
        found = find_accesses([str(place), str(log)], UTC)
        assert {os.path.basename(path) for path in found.skipped} == others.keys()  # noqa: PTH119
        rows = [row for part in found.parts for batch in read_part(part) for row in batch.rows.to_pylist()]
        assert Counter(row["principal"] for row in rows) == Counter(
            wanted(BODIES[body])["principal"] for body in ("2.4", "3.2", "4.0")
        )
    with pytest.raises(ConfigError, match="core: not an access log"):
        find_accesses([str(tmp_path / "core")], UTC)


FOREIGN = {
    "[2020-09-04 06:35:33,509] INFO [DENY] Auth request Write on Topic:t by User u (io.aiven.kafka.auth.AivenAclAuthorizer)": "Aiven",
    json.dumps({"repoType": 9, "repo": "k", "reqUser": "u", "access": "publish", "resource": "t", "result": 0}): "Ranger",
    json.dumps({"decision_id": "4c", "input": {"action": {}}, "result": False}): "Open Policy Agent",
    json.dumps({"eventSource": "kafka-cluster.amazonaws.com", "eventName": "ReadData"}): "CloudTrail",
}  # fmt: skip


@pytest.mark.parametrize("line", FOREIGN)
def test_records_of_other_authorizers_are_refused_by_name(tmp_path, line):
    path = tmp_path / "log"
    path.write_text(f"{line}\n")
    with pytest.raises(ConfigError, match=rf"log: {FOREIGN[line]}.*: not read: "):
        find_accesses([str(path)], UTC)


def test_unread_lines_are_explained_with_their_columns(tmp_path):
    path = tmp_path / "log"
    good = audit_text()
    lines = [good, good[:60], good.replace("operation = READ", "opera"), good.replace("DefaultDeny", "Mood"), "noise"]
    path.write_text("\n".join(lines) + "\n")
    found = explain_unread(find_accesses([str(path)], UTC), 9)
    assert [(each.line, each.text, each.column) for each in found] == [
        (2, lines[1], lines[1].index(" is Denied") + 1),
        (3, lines[2], lines[2].index(" is Denied") + 1),
        (4, lines[3], lines[3].index(" based on rule") + 1),
    ]
    assert len(explain_unread(find_accesses([str(path)], UTC), 1)) == 1


def test_unread_lines_of_json_are_explained_without_columns(tmp_path):
    path = tmp_path / "log"
    good = {"principal": "User:a", "host": "1.1.1.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "t"}
    text = json.dumps(good)
    lines = [text, text[:-5], text, text.replace('"READ"', "READ")]
    path.write_text("\n\n".join(lines) + "\n")
    found = explain_unread(find_accesses([str(path)], UTC), 9)
    assert [(each.line, each.text, each.column) for each in found] == [(3, lines[1], None), (7, lines[3], None)]


def test_the_clock_of_the_forms_is_that_of_the_default():
    assert wanted(BODIES["3.2"])["timestamp"] == TIME == datetime(2026, 3, 1, 10, 0, 0, 123_000, tzinfo=UTC)


# Texts with several messages, with damage, or quoted: each access once, or none.


def message(principal="User:a", name="t"):
    return audit_text(principal=principal, name=name).partition("] INFO ")[2].removesuffix(" (kafka.authorizer.logger)")


def default(principal="User:a", name="t"):
    return audit_text(principal=principal, name=name)


OLD = "Principal = User:b is Allowed Operation = Read from host = 10.0.0.1 on resource = Topic:LITERAL:orders"
WRAPPED = {"@timestamp": "2026-11-21T10:00:00Z"}


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({**WRAPPED, "message": f"{message()}\n{message('User:b')}"}),
        f"2026-11-21T10:00:00Z INFO {message()} INFO {message('User:b')}",
        f"[2026-11-21 10:00:00,123] INFO Principal = User:a is -21 10:00:01,123] INFO {default('User:b')[31:]}",
        f"2026-11-21T10:00:00Z INFO Principal = User:a is 1T10:00:01Z INFO {message('User:b')}",
        default("User:a\0\0\0ice"),
        default(name="t\0\0p"),
        f"2026-11-21T10:00:00Z INFO {message('User:a' + chr(0) + 'ice')}",
        f'  "{default("User:J" + chr(92) + "u00fcrgen")}",',
        f'  "{default("User:CN=" + chr(92) + chr(34) + "a" + chr(92) + chr(34))}",',
        json.dumps(["1763719200000000000", message("User:Jürgen")]),
        "kafka-0 | " + json.dumps({"log": json.dumps({**WRAPPED, "message": message('User:"a"'), "l": "x"})}),
        f'<Event time="2026-11-21T10:00:00Z"><Message>{message("User:R&amp;D")}</Message></Event>',
        f"2026-11-21T10:00:00Z,'{message('User:O' + chr(39) * 2 + 'Brien')}'",
        f"[2026-11-21 10:00:00,123 CET] INFO {message()} (kafka.authorizer.logger)",
        f"2026-11-21 10:00:00,123 PM INFO {message()}",
        f"2026-11-21 10:00:00,123 GMT+2 INFO {message()}",
        f"2026-11-21 10:00:00,123 -12 [t] INFO {message()}",
        f"1728000123 [data-plane-0] INFO kafka.authorizer.logger - {message()}",
        f"10:00:00,123 1763719200123 INFO {message()}",
        f"<14>Nov 21 10:00:00 host kafka[1]: seq=1700000000 {message()}",
        json.dumps({"__REALTIME_TIMESTAMP": "1763719200123456", "MESSAGE": list(message().encode()[:60])}),
        json.dumps({"__REALTIME_TIMESTAMP": "1763719200123456", "MESSAGE": list(message().encode() + b"\xff")}),
        json.dumps({**WRAPPED, "message": f"{OLD} for req"}),
    ],
)
def test_a_text_that_may_not_be_one_access_is_none_and_recorded(tmp_path, line):
    path = tmp_path / "log"
    for lines in ([line], [line] * 3):
        path.write_text("\n".join(lines) + "\n")
        batches = [batch for part in find_accesses([str(path)], UTC).parts for batch in read_part(part)]
        assert sum(batch.rows.num_rows for batch in batches) == 0
        spans = {key: span for batch in batches for key, span in batch.unread.spans.items()}
        assert sum(batch.unread.total for batch in batches) == len(lines)
        assert {key.principal for key in spans} <= {None, "User:a", "User:b"}
    assert split_lines(batch_of([line])).accesses.num_rows == 0


@pytest.mark.parametrize(
    "value",
    [
        {"__REALTIME_TIMESTAMP": "1763719200123456", "MESSAGE": list(f"\x1b[32m{message()}".encode())},
        {**WRAPPED, "message": message(), "event": {"original": default()}},
        {**WRAPPED, "message": message(), "error": {"stack": "Principal = x"}},
        {"timestamp": 1763719200.123, "short_message": message(), "full_message": message()},
        {"timestamp": 1763719200.123, "short_message": message()[:60], "full_message": message()},
        {"timestamp": 1763719200.123, "short_message": message()[:105], "full_message": message()},
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_record_with_several_texts_counts_once(tmp_path, value, separators):
    path = tmp_path / "log"
    line = json.dumps(value, separators=separators)
    path.write_text(f"{line}\n" * 3)
    rows, rejects = rows_of(path)
    assert ([row["principal"] for row in rows], [row["resourceName"] for row in rows]) == (["User:a"] * 3, ["t"] * 3)
    assert not rejects
    assert split_lines(batch_of([line])).accesses.num_rows == 1
    assert access_of_line(line.encode()) == access_of_row(["User:a", *list(rows[0].values())[1:5]])


def test_a_time_with_its_offset_after_the_zone():
    (row,) = read_kafka_lines(f"[2026-03-01 12:00:00,123 GMT+02:00] INFO {message()}".encode(), UTC).rows.to_pylist()
    assert row["timestamp"] == TIME
    # a time with an offset has no zone after it
    (row,) = read_kafka_lines(f"2026-03-01T10:00:00.123Z ERR x {message()}".encode(), UTC).rows.to_pylist()
    assert row["timestamp"] == TIME


@pytest.mark.parametrize("cut", ["orders for r", "orders for request = Fetch with"])
def test_a_torn_older_message_in_a_stated_layout_is_no_access(tmp_path, cut):
    path = tmp_path / "log"
    whole = f"2026-03-01 10:00:00,123 INFO {OLD}"
    torn = whole.replace("orders", cut)
    profile = Profile.of_pattern("%d %p %m%n")
    path.write_text(f"{whole}\n{torn}\n")
    rows, rejects = rows_of(path, profile=profile)
    if cut == "orders for r":  # otherwise a message with a request is one of Kafka 2.4, and so may the first one be
        assert ([row["resourceName"] for row in rows], rejects) == (["orders"], {Reason.TORN: 1})
    else:
        assert (rows, rejects) == ([], {Reason.TORN: 2})
    path.write_text(f"{whole} for request = Fetch with resourceRefCount = 1\n{whole[:-3]}\n{torn}\n")
    rows, rejects = rows_of(path, profile=profile)
    assert ([row["resourceName"] for row in rows], rejects) == (["orders"], {Reason.TORN: 2})


def test_text_that_begins_with_a_brace_is_text(tmp_path):
    path = tmp_path / "log"
    for count in (1, 20):
        path.write_text(f"{{clientId=x}} 2026-03-01T10:00:00.123Z INFO {message()}\n" * count)
        rows, rejects = rows_of(path)
        assert (len(rows), rejects.total(), rows[0]["timestamp"]) == (count, 0, TIME)


def test_the_number_of_free_fields_is_bounded():
    layout = compile_layout("%d %X %t %X %t %X %m %X %t %X %t%n")
    assert (layout.before.count(".*?"), layout.after.count(".*?")) == (2, 2)
    stated = Profile(layouts=(layout,), is_stated=True)
    assert stated.read(f"2026-03-01 10:00:00,123{' a' * 300}!{message()}{' a' * 900}", UTC) is None
    profile = Profile(layouts=(compile_layout("%d %m %X %X%n"),), is_stated=True)
    read = profile.read(f"2026-03-01 10:00:00,123 {message(name='t' + ' a b' * 900)} x y", UTC)
    assert read is not None
    assert read[1].reason is Reason.AMBIGUOUS


# Archives and directories.


def tar_of(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def principals(*paths):
    return sorted(row["principal"] for path in paths for row in rows_of(path)[0])


def line_of(principal):
    return f"{default(principal)}\n".encode()


def test_packed_members_and_those_with_nuls_are_read(tmp_path):
    path = tmp_path / "x.tar"
    inner = tar_of(("c.log", line_of("User:c")))
    nuls = line_of("User:d") + bytes(200) + line_of("User:e")
    heap = bytes(range(1, 32)) * 20
    path.write_bytes(
        tar_of(
            ("a.log", line_of("User:a")),
            ("b.log.gz", gzip.compress(line_of("User:b"))),
            ("c.tar.gz", gzip.compress(inner)),
            ("d.log", nuls),
            ("heap", heap),
        )
    )
    found = find_accesses([str(path)], UTC)
    assert principals(path) == [f"User:{each}" for each in "abcde"]
    assert found.skipped == (f"{path}:heap",)
    assert principals(tmp_path) == [f"User:{each}" for each in "abcde"]
    path.write_bytes(tar_of(("a.log", line_of("User:a")), ("heap", heap + line_of("User:b") + heap)))
    with pytest.raises(ConfigError, match="member heap: messages of Kafka's authorizer in a file that is no text"):
        rows_of(path)
    path.write_bytes(tar_of(("a.log", line_of("User:a")), ("b.parquet", b"PAR1" + heap)))
    with pytest.raises(ConfigError, match=r"member b\.parquet: Parquet, Avro or ORC in a packed file"):
        rows_of(path)
    packed = line_of("User:a")
    for _ in range(5):
        packed = gzip.compress(packed)
    path.write_bytes(tar_of(("a.gz", packed)))
    with pytest.raises(ConfigError, match=r"member a\.gz: packed in a packed file"):
        rows_of(path)


def test_a_damaged_archive_is_not_read_in_part(tmp_path):
    path = tmp_path / "x.tar"
    whole = tar_of(("a.log", line_of("User:a")), ("b.log", line_of("User:b")))
    damaged = bytearray(whole)
    damaged[1024 + 5] ^= 0xFF
    for content in (bytes(damaged), whole + whole, whole[:2048]):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="not a complete tar file"):
            rows_of(path)


@pytest.mark.parametrize(("first", "second", "value"), [(6, 8, 1), (8, 10, 99)])
def test_a_member_that_cannot_be_unpacked_is_an_error(tmp_path, first, second, value):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.log", line_of("User:a"))
    content = bytearray(path.read_bytes())
    content[first] = content[content.index(b"PK\1\2") + second] = value
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"member a\.log: .*unpack it first"):
        rows_of(path)


def test_linked_directories_are_read_and_dangling_links_are_listed(tmp_path):
    top, real = tmp_path / "top", tmp_path / "real"
    top.mkdir()
    real.mkdir()
    (real / "kafka-authorizer.log").write_bytes(line_of("User:b"))
    (top / "kafka-authorizer.log").write_bytes(line_of("User:a"))
    (top / "broker2").symlink_to(real)
    (top / "again").symlink_to(top)
    (top / "gone.log").symlink_to(tmp_path / "nowhere")
    assert principals(top) == ["User:a", "User:b"]
    assert find_accesses([str(top)], UTC).skipped == (str(top / "gone.log"),)


def test_other_text_in_utf_16_is_skipped(tmp_path):
    (tmp_path / "kafka-authorizer.log").write_bytes(line_of("User:a"))
    (tmp_path / "notes.txt").write_text("notes", encoding="utf-16")
    assert find_accesses([str(tmp_path)], UTC).skipped == (str(tmp_path / "notes.txt"),)
    (tmp_path / "notes.txt").write_text(default("User:b"), encoding="utf-16")
    with pytest.raises(ConfigError, match="UTF-16"):
        rows_of(tmp_path)


def test_a_control_character_in_a_name_is_text(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(line_of("User:a") * 9 + line_of("User:b\1"))
    assert principals(path) == ["User:a"] * 9 + ["User:b\1"]


def test_a_log_beside_its_packed_copy_counts_once(tmp_path):
    log, packed = tmp_path / "x.log", tmp_path / "x.log.gz"
    log.write_bytes(line_of("User:a"))
    packed.write_bytes(gzip.compress(line_of("User:a")))
    assert principals(tmp_path) == ["User:a"]
    packed.write_bytes(gzip.compress(line_of("User:b")))  # of an older log
    assert principals(tmp_path) == ["User:a", "User:b"]
    packed.write_bytes(gzip.compress(line_of("User:a"))[:-4])
    with pytest.raises(ConfigError, match="not a complete gzip file"):
        rows_of(tmp_path)


def test_a_copy_counts_once_and_both_names_are_known(tmp_path):
    names = ["a.log", "backup/b.log", "backup/c.log.1.gz"]
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        text = line_of("User:a") + line_of("User:b")
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    (tmp_path / "grown.log").write_bytes(line_of("User:a") + line_of("User:b") + line_of("User:c"))
    (tmp_path / "other.log").write_bytes(line_of("User:d"))
    assert principals(tmp_path) == [*["User:a"] * 2, *["User:b"] * 2, "User:c", "User:d"]
    found = find_accesses([str(tmp_path)], UTC)
    assert found.copies == tuple((str(tmp_path / "a.log"), str(tmp_path / name)) for name in names[1:])
    alone = find_accesses([str(tmp_path / "backup/c.log.1.gz")], UTC)
    assert (alone.copies, len(alone.parts)) == ((), 1)


@pytest.mark.parametrize("name", ["log.gz", "log.zst", "log.zip", "log.tar"])
def test_the_principals_of_a_packed_log_are_seen(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(PACKINGS[name](line_of("User:a")))
    seen = read_seen_accesses(str(path))
    assert (seen.principals, seen.unread) == (frozenset({"User:a"}), 0)
