"""Parsing and printing of principals."""

import pytest

from aclog.authorizer.interface import InvalidRequestError
from aclog.authorizer.settings import KafkaPrincipal


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("User:alice", "User", "alice"),
        ("User:a:b", "User", "a:b"),
        ("User:", "User", ""),
        (":x", "", "x"),
        (":", "", ""),
    ],
)
def test_parse(text, kind, name):
    principal = KafkaPrincipal.parse(text)
    assert (principal.type, principal.name, str(principal)) == (kind, name, text)


@pytest.mark.parametrize("text", ["", "alice"])
def test_no_colon(text):
    expected = rf"^Could not parse principal from `{text}` \(no colon is present separating the principal type from "
    with pytest.raises(InvalidRequestError, match=expected):
        KafkaPrincipal.parse(text)
