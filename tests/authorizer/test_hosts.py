"""Addresses in the form of Java's getHostAddress."""

from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import host_address
from aclog.metalog.errors import ConfigError
from tests.support.models.estates import TEXTUAL_HOSTS


@pytest.mark.parametrize(("text", "expected"), TEXTUAL_HOSTS.items())
def test_known_forms(text, expected):
    assert host_address(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("fe80::1%01", "fe80:0:0:0:0:0:0:1%1"),
        ("FE80::00AB", "fe80:0:0:0:0:0:0:ab"),
        ("::ffff:10.0.0.1%2", "10.0.0.1"),
        ("0.0.0.0", "0.0.0.0"),
    ],
)
def test_scopes_and_case(text, expected):
    assert host_address(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "*", "localhost", "10.1", "1", "010.0.0.1", "10.0.0.256", "10.0.0.0/8", "::1/128", ":::", "1:2:3", "fe80::1%",
     "fe80::1%a b",
     "fe80::1%\n",
     "[10.0.0.1]", "[::1", " 10.0.0.1", "10.0.0.1\n", "\u0661\u0660.0.0.1", "0x0a.0.0.1", "::ffff:10.0.0",
     "9" * 100_000],
)  # fmt: skip
def test_no_addresses(text):
    with pytest.raises(ConfigError, match="is not an IPv4 or IPv6 address") as e:
        host_address(text)
    assert len(str(e.value)) < 200
    assert "\n" not in str(e.value)


@given(st.integers(0, 2**128 - 1))
def test_ipv6_in_any_spelling(number):
    address = IPv6Address(number)
    forms = {host_address(str(address)), host_address(address.exploded), host_address(address.exploded.upper())}
    assert len(forms) == 1
    (java,) = forms
    if address.ipv4_mapped is None:
        assert [int(group, 16) for group in java.split(":")] == [
            number >> shift & 0xFFFF for shift in range(112, -1, -16)
        ]
        assert java == java.lower()
        assert not any(len(group) > 1 and group[0] == "0" for group in java.split(":"))


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_client_on_an_ipv6_socket_is_the_same_client(number):
    assert (
        host_address(str(IPv6Address(0xFFFF << 32 | number)))
        == str(IPv4Address(number))
        == host_address(str(IPv4Address(number)))
    )


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_our_error(text):
    with suppress(ConfigError):
        assert host_address(host_address(text)) == host_address(text)
