"""Percent-encoding of names: plain ASCII, and round trips."""

from hypothesis import given
from hypothesis import strategies as st

from aclog.zookeeper.znodes import percent_decoded, percent_encoded


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_encoded_names_are_ascii_and_round_trip(name):
    encoded = percent_encoded(name)
    assert encoded.isascii()
    assert not set(encoded) & set("/~*+ ")
    assert percent_decoded(encoded) == name
