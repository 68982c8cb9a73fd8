"""Whatever is given to the public functions: an answer, or a MetadataError with one line for people."""

import math
import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aclog

DATA = Path(__file__).parents[1] / "data/kafka-4.3.1-small"
LOG = DATA / "__cluster_metadata-0"


class Odd:
    def __repr__(self):
        return "odd\n" * 50


FIRST = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
JUNK = st.one_of(
    st.sampled_from(
        [
            None,
            True,
            math.nan,
            math.inf,
            10**30,
            b"x",
            object(),
            Odd(),
            int,
            [],
            {},
            [3],
            {"a": 3},
            aclog.cluster,
            "\0",
            "\ud800",
            "User:a",
            "READ",
            "TOPIC",
            "x" * 500,
            "latest",
            "-3d",
            "03/04/2026",
            Path("nowhere"),
            FIRST,
            FIRST.replace(tzinfo=None),
            FIRST.replace(year=9999),
            datetime.now(UTC),
            date(2026, 11, 22),
            aclog.topic("t"),
            aclog.AclOperation.READ,
            aclog.ResourceType.TOPIC,
            aclog.PatternType.MATCH,
            aclog.ResourcePattern(resource_type="TOPIC", name=3),
            aclog.ResourcePattern(resource_type=99, name="x"),
            aclog.ResourcePattern(resource_type=2, name="x", pattern_type=None),
        ]
    ),
    st.integers(-5, 300),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=4),
)


@pytest.fixture(scope="module")
def log():
    with aclog.open_log(LOG) as opened:
        yield opened


@pytest.fixture(scope="module")
def image(log):
    return log.image()


def told(call):
    """Make a call and use what it returns; an error must be one of ours, in one line."""
    with suppress(OneLineError):
        use(call)


class OneLineError(Exception):
    """A MetadataError with one line."""


def use(call):
    try:
        found = call()
        if isinstance(found, aclog.Log):
            with found:
                found.image()
        elif isinstance(found, aclog.Answer):
            assert str(found)
            assert found.to_dict()
        elif hasattr(found, "to_dicts"):
            found.to_dicts()
    except aclog.MetadataError as error:
        if len(str(error).splitlines()) == 1:
            raise OneLineError from None
        raise


@given(JUNK, JUNK, JUNK, JUNK)
def test_a_request(image, principal, operation, resource, host):
    authorizer = image.authorizer()
    told(lambda: authorizer.check(principal, operation, resource, host=host))
    told(lambda: authorizer.check_any(principal, operation, resource, host=host))
    told(lambda: authorizer.who_can(operation, resource, host=host))
    told(lambda: authorizer.who_can("READ", resource))
    told(lambda: authorizer.what_can(principal, host=host))
    told(lambda: authorizer.what_can(principal))
    told(lambda: authorizer.check("User:a", operation, "t"))
    told(lambda: authorizer.check(principal, "READ", "t"))
    told(lambda: authorizer.check("User:a", "READ", resource))
    told(lambda: authorizer.check_any("User:a", "READ", resource))
    told(lambda: authorizer.check("User:a", "READ", "t", host=host))


@given(JUNK)
def test_moments(log, moment):
    told(lambda: log.image(moment))
    told(lambda: log.watch(moment))


NAMES = ("resource_type", "name", "pattern", "principal", "host", "operation", "permission")


@given(st.dictionaries(st.sampled_from(NAMES), JUNK, max_size=3))
def test_filters(image, given_ones):
    told(lambda: image.acls(**given_ones))


@given(JUNK, st.sampled_from(["super_users", "allow_everyone_if_no_acl_found", "semantics", "cidr"]))
def test_settings(image, value, name):
    told(lambda: image.authorizer(**{name: value}))
    told(lambda: image.diff(image, **{name: value}))
    told(lambda: image.diff(value))
    told(lambda: image.authorizer().diff(value))


@given(JUNK)
def test_resources(value):
    for resource in (aclog.topic, aclog.group, aclog.transactional_id, aclog.delegation_token, aclog.user):
        told(lambda resource=resource: resource(value))


def leads_nowhere(value):
    """Not stdin, and not a directory of this machine, all of which would be read."""
    try:
        return not (isinstance(value, str) and (value == "-" or Path(value).exists()))
    except (ValueError, OSError):  # a NUL in it; a name too long
        return True


@given(JUNK.filter(leads_nowhere))
def test_opening(value):
    told(lambda: aclog.open_log(value))
    told(lambda: aclog.open_acls(value))
    told(lambda: aclog.open_log(LOG, max_age=value))
    told(lambda: aclog.open_log(LOG, command_config=value))
    told(lambda: aclog.open_acls(DATA / "expected/acls.jsonl", format=value))
    told(lambda: aclog.open_acls(DATA / "expected/acls.jsonl", topics=value))
    told(lambda: aclog.open_acls(DATA / "expected/acls.jsonl", modules=value))


@given(JUNK)
def test_opening_a_cluster(value):
    if not isinstance(value, str):  # others are addresses, and looked up
        told(lambda: aclog.open_log(bootstrap_controller=value))
        told(lambda: aclog.open_log(bootstrap_server=value))
        told(lambda: aclog.open_log(bootstrap_server="h:1", max_age=value).close())


def test_a_closed_log():
    log = aclog.open_log(LOG)
    log.close()
    log.close()
    for use in (log.image, log.history, log.watch, log.watch_async, lambda: log.age, lambda: log.lag):
        with pytest.raises(aclog.LogError, match="closed"):
            use()
    assert repr(log).endswith(", closed)")


def test_what_errors_say(image):
    check = image.authorizer().check
    for call, said in (
        (lambda: check("User:a", "RAED", "t"), "TWO_PHASE_COMMIT: did you mean READ?"),
        (lambda: image.acls(resource_type="TOPIK"), "did you mean TOPIC?"),
        (lambda: check(None, "READ", "t"), "principal None: expected text, such as 'User:alice'"),
        (lambda: check("User:a", "READ", 3), "resource 3: expected the name of a topic, or aclog.topic(name)"),
        (lambda: check("User:a", "READ", "t", host=""), "'' is not an IPv4 or IPv6 address"),
        (lambda: image.authorizer(cidr="false"), "cidr 'false': expected True or False"),
        (lambda: image.diff(None), "diff None: expected an image"),
        (aclog.open_log, "bootstrap_server='HOST:PORT' or context='NAME'"),
        (lambda: aclog.open_log(3), "path 3: expected a path, as text or as a pathlib.Path"),
        (lambda: aclog.open_log(LOG).image(as_of=1.5), "as_of 1.5: expected an end offset, a datetime, or a text"),
        (lambda: aclog.open_log(LOG).image(as_of="03/04/2026"), "which is the month?"),
        (lambda: aclog.topic(3), "the name of a TOPIC is of type int: expected text"),
    ):  # fmt: skip
        with pytest.raises(aclog.MetadataError, match=re.escape(said)):
            call()


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "rules.jsonl")

    log = aclog.open_acls(DATA / "expected/acls.jsonl")
    monkeypatch.setattr("aclog.sources.choice.find_rules", refuse)
    with pytest.raises(aclog.LogError, match=r"^rules\.jsonl: Permission denied$"):
        log.image()
