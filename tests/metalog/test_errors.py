import pickle

from aclog.metalog.errors import DecodeError, ReplayError


def test_an_error_says_where_as_far_as_known():
    error = DecodeError("what", position=3)
    assert str(error) == "byte 3: what"
    outer = error.at(offset=7, base=100)
    assert str(outer) == "offset 7, byte 103: what"
    assert str(outer.at(path="a.log", offset=9)) == "a.log: offset 7, byte 103: what"
    assert str(DecodeError("what").at(path="a.log", base=5)) == "a.log: what"


def test_an_error_keeps_its_type_with_context_and_through_pickle():
    error = ReplayError("gap", position=1, offset=2).at(path="p")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.position) == (ReplayError, "p: offset 2, byte 1: gap", 1)
