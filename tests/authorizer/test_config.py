"""The properties of the authorizer."""

import pytest

from aclog.authorizer.settings import parse_allow_everyone, parse_super_users, super_user_mistakes
from aclog.metalog.errors import ConfigError

ONE_NAME = "'User:a,User:b' is a single name, as super users are separated by ';': did you mean"


@pytest.mark.parametrize(
    ("text", "users"),
    [
        (None, set()),
        ("", set()),
        (" ; ;", set()),
        ("User:admin", {"User:admin"}),
        (" User:bob ; ;User:CN=x,OU=y", {"User:bob", "User:CN=x,OU=y"}),
        ("User:a;User:a;Group:b", {"User:a", "Group:b"}),
        ("\tUser:a\x00\n;:", {"User:a", ":"}),
        ("User:a,User:b", {"User:a,User:b"}),
        ("User:*", {"User:*"}),
        ("User: a", {"User: a"}),
        ("User:a\u00a0", {"User:a\u00a0"}),
    ],
)
def test_super_users(text, users):
    assert parse_super_users(text) == users


@pytest.mark.parametrize(
    "text", [None, "", "User:a;User:b", "User:CN=a,O=b:c", "Group:a", "User: a", "User:a:b", "User:ANONYMOUS"]
)
def test_super_users_that_may_be_meant(text):
    assert list(super_user_mistakes(text)) == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("User:a,User:b", f"{ONE_NAME} 'User:a;User:b'?"),
        ("User:c;User:*", "'User:*' matches no principal: super.users has no wildcards"),
        ("User:anonymous", "'User:anonymous' is not the anonymous principal: did you mean 'User:ANONYMOUS'?"),
    ],
)
def test_super_users_that_are_hardly_meant(text, mistake):
    assert list(super_user_mistakes(text)) == [mistake]


def test_a_super_user_needs_a_colon():
    with pytest.raises(ConfigError, match=r"^super\.users: expected a string in format principalType:principalName"):
        parse_super_users("User:a;admin")


@pytest.mark.parametrize("text", ["true", "TRUE", " True ", "\ttrue\n"])
def test_everyone(text):
    assert parse_allow_everyone(text)


@pytest.mark.parametrize("text", [None, "", "yes", "1", "on", "false", "true;", "t rue", "true\u00a0"])
def test_not_everyone(text):
    assert not parse_allow_everyone(text)
