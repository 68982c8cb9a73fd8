"""Plain messages, which Arrow reads, beside the reader of single lines."""

from datetime import UTC

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.audit import ParsedLine, read_line, read_message
from aclog.usage.accesses import access_batch
from aclog.usage.accesses.layouts import Profile
from aclog.usage.accesses.plain_messages import APACHE_LINES, MESSAGES, PLAIN_FIELDS, plain_rests, read_plain

PRINCIPALS = (
    *("User:alice", "User:CN=a,OU=b", "User:a b", "User:ü", "User:", "User:x is Allowed", 'User:"q"', "User:a\\b"),
    *("User:&amp;", "User:a(b)", "\0"),
)
OPERATIONS = ("READ", "Read", "read", "ALTER_CONFIGS", "AlterConfigs", "Grow", "X" * 50)
HOSTS = ("10.0.0.1", "0:0:0:0:0:0:0:1", "fe80::1%eth0", "h" * 300, "/10.0.0.1", "a b")
TYPES = ("Topic", "TOPIC", "TransactionalId", "TRANSACTIONAL_ID", "Queue")
NAMES = ("orders", "a:b", "LITERAL:x", "with blank", "from host = h", "x]", ":LITERAL:", "", "é", "a'b")
PATTERNS = ("LITERAL:", "PREFIXED:", "")
COUNTED = " for request = Fetch with resourceRefCount = "
REQUESTS = (f"{COUNTED}1", f"{COUNTED}99999999999", "", " for request = ")
ACL = (
    "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName={}, patternType=LITERAL, principal={}, host=*, "
    "operation=READ, permissionType=ALLOW])"
)
RULES = st.sampled_from(("", " based on rule DefaultDeny", " based on rule SuperUser", " based on rule X")) | st.builds(
    lambda name, principal: f" based on rule {ACL.format(name, principal)}",
    st.sampled_from(NAMES),
    st.sampled_from(PRINCIPALS),
)
DAMAGE = st.sampled_from(("", " ", "Principal = ", " from host = ", "\0", "x", "\n", "\r"))
"""What may be put anywhere."""


@st.composite
def messages(draw):
    text = (
        f"Principal = {draw(st.sampled_from(PRINCIPALS))} is {draw(st.sampled_from(('Allowed', 'Denied', 'allowed')))} "
        f"{draw(st.sampled_from('oO'))}peration = {draw(st.sampled_from(OPERATIONS))} "
        f"from host = {draw(st.sampled_from(HOSTS))} on resource = {draw(st.sampled_from(TYPES))}:"
        f"{draw(st.sampled_from(PATTERNS))}{draw(st.sampled_from(NAMES))}{draw(st.sampled_from(REQUESTS))}{draw(RULES)}"
    )
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(DAMAGE) + text[at:]


PLAIN = [
    f"Principal = {principal} is {answer} {which} from host = 10.0.0.1 on resource = Topic:LITERAL:a:b{COUNTED}1{rule}"
    for principal in PRINCIPALS[:2]
    for answer in ("Allowed", "Denied")
    for which, rule in (
        ("operation = READ", f" based on rule {ACL.format('t', 'User:a')}"),
        ("operation = AlterConfigs", " based on rule DefaultDeny"),
        ("Operation = Read", ""),
    )
]


def fields_of(read: ParsedLine) -> list[str | None]:
    return [getattr(read, name) for name in PLAIN_FIELDS]


def compared(texts, form, reader) -> int:
    """Compare each plain text with what the reader of one line returns; return how many are plain."""
    columns, is_plain = read_plain(pa.array([text.encode() for text in texts], pa.binary()), form)
    plain = [text for text, fits in zip(texts, is_plain.tolist(), strict=True) if fits]
    for row, text in zip(zip(*(each.to_pylist() for each in columns), strict=True), plain, strict=True):
        read = reader(text)
        assert read.reason is None, text
        assert list(row) == fields_of(read), text
    return len(plain)


@given(texts=st.lists(messages(), min_size=1, max_size=30), end=st.sampled_from(("", "\r", " ", "\n")))
def test_a_plain_text_is_read_as_the_reader_of_lines_reads_it(texts, end):
    compared(texts, MESSAGES, read_message)
    tail = f" (kafka.authorizer.logger){end}"
    compared([f"] DEBUG {text}{tail}" for text in texts], APACHE_LINES, read_line)


def test_what_each_kafka_since_2_4_writes_is_plain():
    assert compared(PLAIN, MESSAGES, read_message) == len(PLAIN)
    lines = [f"] INFO {text} (kafka.authorizer.logger)" for text in PLAIN]
    assert compared(lines, APACHE_LINES, read_line) == len(PLAIN)


@pytest.mark.parametrize("pattern", ["%d{ISO8601} %-5p [%t] %c - %m%n", "%d %p %m (%c)%n", '"%d","%p","%m"%n'])
@given(texts=st.lists(messages(), min_size=1, max_size=30))
def test_a_layout_gives_the_same_with_and_without_arrow(pattern, texts):
    profile = Profile.of_pattern(pattern)
    [layout] = profile.layouts
    assert plain_rests(layout.after, by_rule=False) is not None
    time, start, end = "2026-11-21 10:00:00,123", *pattern.split("%m")
    head = start.replace("%d{ISO8601}", time).replace("%d", time).replace("%-5p", "DEBUG").replace("%p", "DEBUG")
    head, tail = (part.replace("%t", "main").replace("%c", "kafka.authorizer.logger") for part in (head, end))
    lines = [f"{head}{text}{tail.replace('%n', chr(10))}".encode() for text in [*PLAIN, *texts]]
    by_arrow = access_batch.read_each(pa.array(lines, pa.binary()), UTC, profile, PLAIN_FIELDS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(access_batch, "plain_rests", lambda after, by_rule: None)
        one_by_one = access_batch.read_each(pa.array(lines, pa.binary()), UTC, profile, PLAIN_FIELDS)
    assert by_arrow.columns.equals(one_by_one.columns)
    assert by_arrow.times.equals(one_by_one.times)
    assert by_arrow.columns.column("reason").slice(0, len(PLAIN)).null_count == len(PLAIN)


@given(texts=st.lists(messages(), min_size=16, max_size=60))
def test_blocks_of_lines_give_the_same_with_and_without_arrow(texts):
    lines = [
        f"[2026-11-21 10:00:00,123] DEBUG {text} (kafka.authorizer.logger)\n".encode() for text in [*PLAIN, *texts]
    ]
    block = b"".join(lines)
    by_arrow = access_batch.read_kafka_lines(block, UTC)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(access_batch, "PLAIN_FIELDS", ())
        one_by_one = access_batch.read_kafka_lines(block, UTC)
    assert by_arrow.rows.equals(one_by_one.rows)
    assert by_arrow.rejects == one_by_one.rejects
    assert by_arrow.unread == one_by_one.unread
