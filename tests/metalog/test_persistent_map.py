"""A persistent map beside a dictionary: every version stays as it was, whatever becomes of the others."""

import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.persistent_map import Map


class Collider:
    """A key whose hash the test chooses."""

    def __init__(self, name, hashed):
        self.name, self.hashed = name, hashed

    def __hash__(self):
        return self.hashed

    def __eq__(self, other):
        return self.name == other.name


KEYS = st.integers(0, 300) | st.integers(0, 40).map(lambda number: number << 10) | st.integers(-5, 5)
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 3)), max_size=300)


def after(known, changes):
    """Return a dictionary after changes; None takes out."""
    known = dict(known)
    for key, value in changes:
        known.pop(key, None)
        if value is not None:
            known[key] = value
    return known


def same(found, expected):
    assert dict(found.items()) == expected
    assert len(found) == len(expected)
    assert set(found) == set(found.keys()) == set(expected)
    assert sorted(found.values()) == sorted(expected.values())
    assert all(found[key] == value and key in found for key, value in expected.items())
    assert found.get(10**9) is None
    assert found.get(10**9, 7) == 7


@given(CHANGES)
def test_each_change_leaves_every_earlier_map_as_it_was(changes):
    versions = [(Map(), {})]
    for key, value in changes:
        newest, known = versions[-1]
        if value is not None:
            newest = newest.set(key, value)
        elif key in newest:
            newest = newest.delete(key)
        versions.append((newest, after(known, [(key, value)])))
    for found, expected in versions[:: max(1, len(versions) // 20)]:
        same(found, expected)


@given(CHANGES, st.lists(st.dictionaries(KEYS, st.integers(0, 3), max_size=120), max_size=4))
def test_entries_of_a_whole_batch_leave_the_map_before_as_it_was(before, batches):
    versions = [(Map(after({}, before)), after({}, before))]
    for entries in batches:
        newest, known = versions[-1]
        versions.append((newest.updated(entries), known | entries))
    for found, expected in versions:
        same(found, expected)
        assert found == Map(expected)


@given(CHANGES, CHANGES)
def test_many_changes_at_once_are_what_they_are_one_by_one(before, changes):
    expected = after({}, before)
    first = Map(expected)
    editor = first.mutate()
    for at, (key, value) in enumerate(changes):
        if value is None:
            assert editor.pop(key, "absent") == after(expected, changes[:at]).get(key, "absent")
        else:
            editor[key] = value
    same(first, expected)
    finished = editor.finish()
    same(finished, after(expected, changes))
    assert finished == Map(after(expected, changes))
    assert hash(finished) == hash(Map(after(expected, changes)))


def test_a_mutation_shows_its_changes_and_not_to_others():
    first = Map({"a": 1, "b": 2})
    editor = first.mutate()
    editor["c"] = 3
    del editor["a"]
    assert editor.pop("b") == 2
    assert ("a" in editor, "b" in editor, editor["c"], editor.get("a", 9)) == (False, False, 3, 9)
    editor["b"] = 5
    with pytest.raises(KeyError):
        del editor["a"]
    assert dict(editor.finish().items()) == {"b": 5, "c": 3}
    assert dict(first.items()) == {"a": 1, "b": 2}


@pytest.mark.parametrize("found", [Map(), Map({1: 1}), Map((number, number) for number in range(1000))])
def test_what_is_absent_is_said(found):
    with pytest.raises(KeyError):
        found["absent"]
    with pytest.raises(KeyError):
        found.delete("absent")
    assert "absent" not in found


def test_keys_of_one_hash_are_kept_apart():
    keys = [Collider(number, 12345) for number in range(200)]
    found = Map()
    for key in keys:
        found = found.set(key, key.name)
    assert [found[key] for key in keys] == list(range(200))
    assert len(found.delete(keys[7])) == 199


def test_maps_are_told_apart():
    some = Map({1: "a"})
    assert some != Map({1: "b"})
    assert some != Map({2: "a"})
    assert some != Map()
    assert some != {1: "a"}
    assert some.set(1, "a") == some


def test_a_repr_tells_no_secret():
    assert repr(Map({"token": "secret"})) == "<Map of 1>"


@pytest.mark.process
def test_another_process_finds_what_was_pickled():
    pickled = pickle.dumps(Map({f"topic-{number}": number for number in range(500)}))
    code = (
        "import pickle, sys; found = pickle.load(sys.stdin.buffer); print(sum(found[f'topic-{n}'] for n in range(500)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True, check=True)
    assert int(ran.stdout) == sum(range(500))


@given(CHANGES, CHANGES, CHANGES)
def test_what_two_maps_do_not_share(common, one, other):
    """Of one origin, so that they share nodes, or of none."""
    origin = Map(after({}, common))
    for start in (origin, Map()):
        maps = []
        for changes in (one, other):
            found = start
            for key, value in changes:
                found = found.set(key, value) if value is not None else found.delete(key) if key in found else found
            maps.append(found)
        expected = set(maps[0]) ^ set(maps[1])
        assert sorted(maps[0].unshared_keys(maps[1])) == sorted(maps[1].unshared_keys(maps[0])) == sorted(expected)


def test_maps_that_share_their_nodes_are_not_read():
    large = Map((number, number) for number in range(100_000))
    one, other = large.set(-1, 0), large.delete(5)
    assert sorted(one.unshared_keys(other)) == [-1, 5]
