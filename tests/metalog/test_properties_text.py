"""Properties files: what is read here is what the library reads."""

from io import BytesIO

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.text_forms import format_properties, parse_properties

LINES = st.lists(
    st.one_of(
        st.from_regex(rb"[\w.-]{1,6}=[!-~]{0,6}", fullmatch=True),
        st.text(alphabet="ab=:#!\\ \t\r\nu01\x0bé", max_size=8).map(lambda text: text.encode("latin-1")),
    ),
    max_size=6,
)


@given(LINES, st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_a_file_is_read_as_the_library_reads_it(lines, end, ends):
    data = end.join(lines) + (end if ends else b"")
    try:
        expected = javaproperties.load(BytesIO(data))
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            parse_properties(data)
    else:
        assert parse_properties(data) == expected


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=4))
def test_what_is_written_is_read_again(values):
    assert parse_properties(format_properties(values, comments="said first")) == values
