"""Parameters of addresses: back and forth, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.console.pages.page import BadParameterError, Parameters, url


@given(st.text(st.characters(), min_size=1))  # lone surrogates, too
def test_any_name_comes_back_from_its_address(name: str) -> None:
    address = url("/x", name=name, other="a&b=c")
    assert address.isascii()
    asked = Parameters.of(address.partition("?")[2].encode())
    assert (asked.text("name"), asked.text("other")) == (name, "a&b=c")


@given(st.binary(max_size=200))
def test_any_bytes_are_an_address_or_refused(query: bytes) -> None:
    try:
        asked = Parameters.of(query)
    except BadParameterError:
        return
    assert all(isinstance(value, str) for value in asked.values.values())


def test_what_is_left_out() -> None:
    assert url("/x", a=None, b="", c=False, d=0, e=True) == "/x?d=0&e=1"
    assert url("/x") == "/x"


def test_names_in_any_spelling() -> None:
    asked = Parameters.of("operation=alter-configs&type=topic")
    assert (asked.operation(), asked.resource_type()) == (AclOperation.ALTER_CONFIGS, ResourceType.TOPIC)
    assert (asked.pattern_type(), asked.permission(), asked.host()) == (None, None, None)


@pytest.mark.parametrize(
    ("query", "read", "why"),
    [
        ("operation=GUESS", Parameters.operation, "is not one of"),
        ("type=QUEUE", Parameters.resource_type, "is not one of"),
        ("host=somewhere", Parameters.host, "is not an IPv4 or IPv6 address"),
        ("first=x", lambda asked: asked.number("first", 0, 0, 9), "expected a number"),
        ("first=" + "9" * 5000, lambda asked: asked.number("first", 0, 0, 9), "expected a number"),
        ("q=" + "x" * 9000, lambda asked: asked, "more than 8,192 characters"),
        ("q=%ff", lambda asked: asked, "cannot be read"),
        ("&".join(f"a{n}=1" for n in range(200)), lambda asked: asked, "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused(query: str, read, why: str) -> None:
    with pytest.raises(BadParameterError, match=why):
        read(Parameters.of(query))


def test_numbers_stay_within_their_limits() -> None:
    assert [Parameters.of(f"n={n}").number("n", 5, 0, 9) for n in ("-3", "4", "99", "")] == [0, 4, 9, 5]
