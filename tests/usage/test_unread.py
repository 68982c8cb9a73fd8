"""Every line that tells of an access is counted, as an access or as an unread one; and which rules those concern."""

import json
from datetime import UTC

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aclog.analysis.regions import Request
from aclog.authorizer.acl import host_address, logged_address
from aclog.authorizer.audit import AccessTrace, access_trace
from aclog.metalog.errors import ConfigError
from aclog.sources.accesses import Unread, access_of_line
from aclog.usage import window as unread_module
from aclog.usage.accesses.access_batch import between, read_kafka_lines
from aclog.usage.accesses.events import read_audit_events, read_cloudevents, read_json, read_ocsf
from aclog.usage.window import UnreadAccesses, UnreadCounter, UnreadKey, UnreadSpan
from tests.support.runs.profiles import examples
from tests.support.spark.access_logs import audit_text

FIVE = {"principal": "User:a", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "t"}
ALLOWED = audit_text().replace("is Denied", "is Allowed")
PIECES = [
    ALLOWED, ALLOWED[:60], ALLOWED[60:], audit_text(), " is Allowed ", "is Allowed", "is Denied", "Principal = ",
    "[2026-11-21 10:00:00,123] DEBUG ", "[2026-11-21T10:00:00.123] INFO ", "User:bob", " (kafka.authorizer.logger)",
    '{"', '"}', '"message":"', "\\", "\r", "\t", "ä", "\udcff", " from host = 10.0.0.1", "operation = READ",
]  # fmt: skip
LINES = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
    st.tuples(st.integers(0, len(ALLOWED)), st.integers(0, len(ALLOWED)), st.text(max_size=4)).map(
        lambda cut: ALLOWED[: cut[0]] + cut[2].replace("\n", "") + ALLOWED[cut[1] :]
    ),
    st.lists(st.sampled_from(PIECES), max_size=3).map(lambda parts: json.dumps(FIVE | {"host": "".join(parts)})),
    st.lists(st.sampled_from(PIECES), max_size=3).map(lambda parts: json.dumps({"log": "".join(parts)})),
)
READERS = (read_kafka_lines, read_json, read_audit_events, read_ocsf, read_cloudevents)


@settings(max_examples=examples(200))
@given(text=LINES)
@example(text="is Allowed")
@example(text='{"logger":"x","event":"Principal = User:a is Allowed"}')
def test_a_line_with_an_allowed_access_is_an_access_or_unread(text):
    line = text.encode(errors="surrogateescape")
    for read in READERS:
        batch = read(line, UTC)
        if b"is Allowed" in line:
            assert batch.rows.num_rows + batch.unread.total == 1
            assert all(key.decision != "DENIED" for key in batch.unread.spans) or b"is Denied" in line
        # what is unread is among the rejects
        assert batch.unread.total <= sum(batch.rejects.values()) <= 1


@settings(max_examples=examples(200))
@given(text=LINES)
def test_both_readers_of_a_line_agree(text):
    line = text.encode(errors="surrogateescape")
    if not line.strip():
        return
    read = read_json if line.lstrip().startswith(b"{") else read_kafka_lines
    batch = read(line, UTC)
    found = access_of_line(line)
    if isinstance(found, Request):
        assert batch.rows.num_rows == 1
        assert batch.rows.column("principal")[0].as_py() == found.principal
    elif batch.rows.num_rows:  # one that cannot be decided
        assert found is Unread.ACCESS
        assert logged_address(batch.rows.column("host")[0].as_py()) == batch.rows.column("host")[0].as_py()
    else:
        assert (found is Unread.ACCESS) == bool(batch.unread)


@pytest.mark.parametrize(
    ("text", "trace"),
    [
        (ALLOWED, AccessTrace("User:a", "ALLOWED")),
        (audit_text(principal="User:CN=a b,O=is Al"), AccessTrace("User:CN=a b,O=is Al", "DENIED")),
        (ALLOWED[5:], AccessTrace("User:a", "ALLOWED")),
        (ALLOWED.replace("User:a", "User:\ufffd"), AccessTrace(None, "ALLOWED")),
        (ALLOWED.replace("User:a", "a"), AccessTrace(None, "ALLOWED")),
        (ALLOWED.partition("Principal")[2], AccessTrace(None, "ALLOWED")),
        (ALLOWED + audit_text(), AccessTrace()),
        (ALLOWED.partition("is Allow")[2], AccessTrace()),
        (ALLOWED.partition(" is ")[0], AccessTrace()),
        ("principal = User:a is a super user, allowing operation without checking acls.", None),
        ("operation = READ on resource = Topic:LITERAL:t from host = 10.0.0.1 is Allow based on acl = x", None),
        ("", None),
    ],
)
def test_what_a_line_tells(text, trace):
    assert access_trace(text) == trace


HOSTS = [
    ("10.0.0.1", "10.0.0.1"), ("/10.0.0.1", "10.0.0.1"), ("app/10.0.0.1", "10.0.0.1"),
    ("10.0.0.1/10.0.0.1", "10.0.0.1"),
    ("10.0.0.1:54321", "10.0.0.1"), ("/10.0.0.1:54321", "10.0.0.1"), ("app/[::1]:1", "::1"), ("[::1]:9092", "::1"),
    ("/0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:1"), ("::1", "::1"), ("[::1]", "[::1]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "address"), HOSTS)
def test_hosts_with_one_meaning(text, address):
    assert logged_address(text) == address
    host_address(address)


@pytest.mark.parametrize(
    "text",
    ["app1", "", "/", "10.0.0.0/8", "10.0.0.0/255.0.0.0", "10.0.0.1:", "10.0.0.1:123456", "::1:54321/", "a/b/10.0.0.1",
     "*", "10.0.0", "app/<unresolved>:9092", "10.0.0.1-10.0.0.9"],
)  # fmt: skip
def test_hosts_with_none(text):
    assert logged_address(text) == text
    with pytest.raises(ConfigError):
        host_address(text)


def counted(*rows) -> UnreadAccesses:
    counter = UnreadCounter()
    for principal, decision, span in rows:
        counter.add(principal, decision, "NO_HEAD", UnreadSpan(*span))
    return counter.total


WHO = ["User:a", "User:b", "User:*", "odd", "User:a", "User:b"]
DENIES = np.array([False, False, False, False, True, True])


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        ([("User:a", "ALLOWED", (2, 1, 1))], [2, 0, 2, 2, 2, 0]),
        ([("User:a", None, (2, 1, 1)), ("User:b", None, (1, 1, 1))], [2, 1, 3, 3, 2, 1]),
        ([("User:a", "DENIED", (2, 1, 1))], [0, 0, 0, 0, 2, 0]),
        ([(None, "ALLOWED", (1, 1, 1)), ("User:b", "DENIED", (5, 1, 1))], [1, 1, 1, 1, 1, 6]),
        ([("User:*", None, (1, 1, 1))], [1] * 6),
        ([("b", None, (1, 1, 1))], [1] * 6),
        ([], [0] * 6),
    ],
)
def test_which_rules_are_concerned(rows, counts):
    found = counted(*rows)
    assert found.counts(WHO, DENIES, by_presence=False).tolist() == counts
    assert found.concerned(WHO, DENIES, by_presence=False).tolist() == [count > 0 for count in counts]
    assert found.counts(WHO, DENIES, by_presence=True).tolist() == [found.total] * 6
    assert found.concerned(WHO, DENIES, by_presence=True).tolist() == [bool(rows)] * 6


def test_an_unknown_number_concerns_rules_as_well():
    found = UnreadAccesses(spans={UnreadKey(None, None, "OLDER_INDEX", None, None): UnreadSpan(0, None, 5)})
    assert found.concerned(WHO, DENIES, by_presence=False).all()
    assert not found.counts(WHO, DENIES, by_presence=False).any()
    assert (found.may_be_anybodys, found.total) == (True, 0)


@given(
    spans=st.lists(
        st.tuples(st.sampled_from(["User:a", None]), st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
    ),
    start=st.integers(0, 9),
    length=st.integers(0, 9),
)
def test_a_sum_lies_in_each_window_that_a_part_may_lie_in(spans, start, length):
    parts = [
        counted((who, None, (1, first, last)))
        for who, first, last in spans
        if (first or 0) <= (9 if last is None else last)
    ]
    whole = UnreadAccesses.sum_of(parts)
    assert whole.total == len(parts)
    assert bool(whole.between(start, start + length)) >= any(part.between(start, start + length) for part in parts)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(unread_module, "_MOST_KEYS", 3)
    found = counted(*((f"User:{number}", None, (1, 1, 1)) for number in range(10)))
    assert (len(found.spans), found.total) == (7, 10)
    assert found.may_be_anybodys


def test_brokers_and_hours_are_dropped_before_principals(monkeypatch):
    monkeypatch.setattr(unread_module, "_MOST_KEYS", 3)
    counter = UnreadCounter()
    for number in range(20):
        time = number * unread_module.HOUR
        counter.add(f"User:{number % 3}", None, "TORN", UnreadSpan(1, time, time), broker=f"kafka-{number}")
    found = counter.total
    assert (len(found.spans), found.total, found.may_be_anybodys) == (6, 20, False)
    assert {key.broker for key in found.spans} == {None, "kafka-0", "kafka-1", "kafka-2"}
    assert UnreadAccesses.sum_of([found, found]).total == 40


H = unread_module.HOUR


def placed(*rows) -> UnreadAccesses:
    counter = UnreadCounter()
    for principal, broker, first, last in rows:
        counter.add(principal, None, "TORN", UnreadSpan(1, first, last), broker=broker)
    return counter.total


def test_stretches_are_of_a_principal_on_a_broker_in_consecutive_hours():
    found = placed(
        ("User:a", "k1", 5 * H, 5 * H + 1), ("User:a", "k1", 6 * H, 6 * H), ("User:a", "k1", 9 * H, 9 * H),
        ("User:a", "k2", 5 * H, 5 * H), ("User:a", "k1", None, None), (None, None, 5 * H, 8 * H),
    )  # fmt: skip
    assert [tuple(each) for each in found.stretches()] == [
        (None, None, 1, UnreadSpan(1, 5 * H, 8 * H)),
        ("User:a", "k1", 0, UnreadSpan(1, None, None)),
        ("User:a", "k1", 2, UnreadSpan(2, 5 * H, 6 * H)),
        ("User:a", "k1", 1, UnreadSpan(1, 9 * H, 9 * H)),
        ("User:a", "k2", 1, UnreadSpan(1, 5 * H, 5 * H)),
    ]
    # a gap outside of the window does not count, one of unknown hour does
    assert found.between(9 * H, 10 * H).total == 2
    assert found.between(20 * H, 21 * H).total == 1


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([("User:a", "k1", 5 * H, 5 * H)], "TORN 1; k1 1970-01-01 05:00)"),
        ([("User:a", "k1", 5 * H, 7 * H), ("User:b", "k1", None, 9)], "k1 1970-01-01 05:00 to 1970-01-01 07:00 and at"),
        ([("User:a", None, None, None)], "; unknown broker at an unknown hour)"),
        ([("User:a", f"k{n}", 0, 0) for n in range(9)], "k2 1970-01-01 00:00, 6 more brokers)"),
        ([("User:a", f"k{n}", 0, 0) for n in range(4)], "k3 1970-01-01 00:00)"),
    ],
)
def test_a_text_names_brokers_and_hours(rows, text):
    assert text in unread_module.unread_text(placed(*rows))


@pytest.mark.parametrize(
    ("times", "at", "span"),
    [
        ([1, 2, 3], 1, (1, 2)), ([], 0, (None, None)), ([5], 0, (None, 5)), ([5], 1, (5, None)),
        ([2, 1], 1, (1, 2)),  # threads write out of order
        ([9 * H, 1, 2], 2, (None, None)), ([5 * H, 1 * H, 7 * H, 2 * H], 2, (None, None)),
        ([9 * H, *range(8), *range(8, 16)], 9, (7, 8)),  # the joint is far away
    ],
)  # fmt: skip
def test_a_line_without_a_time_lies_between_its_neighbours(times, at, span):
    assert between(np.array(times, np.int64), at) == UnreadSpan(1, *span)
