"""Ids for new rules."""

from aclog.nodes.controller.write_path.random_ids import RandomIds


def test_they_are_kafkas_random_uuids_and_never_twice_the_same():
    new_id = RandomIds()
    ids = [new_id() for _ in range(3000)]
    assert len(set(ids)) == 3000
    assert {each.version for each in ids} == {4}
    assert set(ids).isdisjoint(RandomIds()() for _ in range(1000))


def test_the_operating_system_is_not_asked_for_each(monkeypatch):
    import os

    asked, real = [], os.urandom
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or real(count))
    new_id = RandomIds()
    for _ in range(100):
        new_id()
    assert len(asked) == 1
