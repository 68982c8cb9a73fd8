"""CIDR ranges (KIP-1276)."""

import json
from ipaddress import ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import host_address, looks_like_cidr, parse_cidr
from aclog.metalog.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("10.0.0.0/8", ["10.0.0.0", "10.0.0.1", "10.255.255.255"], ["11.0.0.0", "9.255.255.255"]),
        ("10.1.2.3/8", ["10.0.0.0", "10.255.255.255"], ["11.0.0.0"]),
        ("10.0.0.1/32", ["10.0.0.1"], ["10.0.0.0", "10.0.0.2"]),
        ("10.0.0.3/31", ["10.0.0.2", "10.0.0.3"], ["10.0.0.1", "10.0.0.4"]),
        ("0.0.0.0/0", ["0.0.0.1", "255.255.255.255"], ["0.0.0.0", "::1", "::"]),
        ("010.0.0.0/08", ["10.9.9.9"], ["8.0.0.1"]),
        ("::/0", ["::", "2001:db8::1", "ffff::"], ["10.0.0.1", "::ffff:10.0.0.1"]),
        ("2001:db8::/32", ["2001:db8::", "2001:DB8:ffff::1"], ["2001:db7:ffff::", "2001:db9::"]),
        ("2001:db8::5/127", ["2001:db8::4", "2001:db8::5"], ["2001:db8::6"]),
        ("fe80::/10", ["fe80::1", "fe80::1%1", "fe80::1%eth0"], ["fec0::1"]),
        ("[::1]/128", ["::1"], ["::2"]),
        ("::/+8", ["::5"], ["100::"]),
    ],
)
def test_who_is_in(text, inside, outside):
    found = parse_cidr(text)
    assert [host for host in inside if not found.contains(host_address(host))] == []
    assert [host for host in outside if found.contains(host_address(host))] == []


@pytest.mark.parametrize(
    "text",
    ["", "*", "10.0.0.1", "::1", "10.0.0.0/33", "10.0.0.0/", "/8", "10.0.0/8", "10.0.0.256/8", "10.0.0.0/8/8", "::/129",
     "::/-1", "::/", "::ffff:10.0.0.0/104", "example.org/24", "host:80/24", "10.0.0.0/+8", "10.0.0.0/ 8", " ::/0",
     "fe80::1%zz9/64", "fe80::1%eth0/64", "2001:db8::/\U0001d7db\U0001d7da",
     "::/" + "1" * 100_000, "1" * 100_000 + ":/1", "\u0661\u0660.0.0.0/8"],
)  # fmt: skip
def test_no_ranges(text):
    with pytest.raises(ConfigError, match="is not a CIDR range") as e:
        parse_cidr(text)
    assert len(str(e.value)) < 250


FIRST, *TABLE = map(json.loads, (Path(__file__).parents[1] / "data/cidr/ranges.jsonl").read_text().splitlines())


def test_what_the_classes_that_kafka_asks_answer():
    """Texts that are ranges, nearly: each as commons-net's SubnetUtils and SubnetUtils6 answer (tests/data/cidr)."""
    differing = []
    for row in TABLE:
        text, expected = row["host"], row["contains"]
        try:
            found = parse_cidr(text)
        except ConfigError:
            ours = None
        else:
            ours = [host for host in FIRST["hosts"] if found.contains(host)]
            assert looks_like_cidr(text)
        if ours != expected:
            differing.append((text, expected, ours))
    assert differing == []
    assert sum(row["contains"] is None for row in TABLE) > 500


@pytest.mark.parametrize(
    ("text", "inside"),
    [("00000:0db8::/32", "0:db8:0:0:0:0:0:1"), ("2001:db8::/\u0663\u0662", "2001:db8:0:0:0:0:0:1")],
)
def test_java_reads_more_than_people_write(text, inside):
    assert parse_cidr(text).contains(inside)


def test_contains_takes_what_is_no_address():
    assert not parse_cidr("10.0.0.0/8").contains("ten")


@given(st.integers(0, 2**32 - 1), st.integers(0, 32), st.integers(1, 2**32 - 1))
def test_ipv4_as_the_standard_library_has_it(base, bits, host):
    network = ip_network((base, bits), strict=False)
    text = f"{base >> 24}.{base >> 16 & 255}.{base >> 8 & 255}.{base & 255}/{bits}"
    address = f"{host >> 24}.{host >> 16 & 255}.{host >> 8 & 255}.{host & 255}"
    found = parse_cidr(text)
    assert (found.first, found.last) == (int(network[0]), int(network[-1]))
    assert found.contains(address) == (int(network[0]) <= host <= int(network[-1]))


@given(st.integers(2**64, 2**128 - 1), st.integers(0, 128))
def test_ipv6_as_the_standard_library_has_it(base, bits):
    network = ip_network((base, bits), strict=False)
    found = parse_cidr(f"{network.network_address}/{bits}")
    assert (found.version, found.first, found.last) == (6, int(network[0]), int(network[-1]))


@pytest.mark.parametrize("text", ["10.0.0.0/8", "10.0.0.0/99", "2001:db8::/32", "fe80::1%1/64", "[::1]/128", "10.0/16"])
def test_meant_as_a_range(text):
    assert looks_like_cidr(text)


@pytest.mark.parametrize("text", ["*", "", "10.0.0.1", "::1", "example.org/24", "a/b", "abc/24", "10.0.0.0/", "/8"])
def test_not_meant_as_a_range(text):
    assert not looks_like_cidr(text)


@given(st.text(st.sampled_from("0129af.:/%[]+* "), max_size=30))
def test_any_text_is_a_range_or_our_error(text):
    try:
        found = parse_cidr(text)
    except ConfigError:
        return
    assert 0 <= found.first <= found.last < 2**128
    assert looks_like_cidr(text)
