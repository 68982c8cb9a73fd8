"""The hash table of the bulk path finds what was put in, and nothing else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.index.scan_order import PairedTable


@given(st.dictionaries(st.tuples(st.integers(0, 50), st.integers(0, 50)), st.integers(1, 2**32 - 1), max_size=200))
def test_tables_find_what_was_put_in(entries):
    first = np.array([key[0] for key in entries], np.int64)
    second = np.array([key[1] for key in entries], np.int64)
    table = PairedTable.of(first, second, np.array(list(entries.values()), np.uint32))
    asked = np.array([(a, b) for a in range(-1, 52) for b in range(-1, 52)], np.int32)
    found = table.get(asked[:, 0], asked[:, 1])
    assert found.tolist() == [entries.get((a, b), 0) for a, b in asked.tolist()]
