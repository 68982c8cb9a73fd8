"""An apply is ended on its way, and somebody else then does by hand what it was to do, or undoes it."""

from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest

from aclog.authorizer.acl import acl_text
from aclog.authorizer.acls_image import content_of
from aclog.authorizer.settings import Settings
from aclog.planning.journal import EntryKind, open_journal, parse_journal, read_journal
from aclog.planning.plan import Batching, RefusedError
from tests.support.builders.acls import acl
from tests.support.planning.cases import Case
from tests.support.planning.killed_applies import KilledApply
from tests.support.planning.memory_place import Fuse, Killed, MemoryPlace

OWN, OLD, OLDER, NEW, LAST = (acl(name) for name in ("own", "old", "older", "new", "last"))


class Source(KilledApply):
    """A source that owns OWN, OLD and OLDER, and wants OWN, NEW and LAST, on a cluster that keeps no record."""

    def killed_at(self, call: str, number: int = 0):
        """Plan, apply, and be killed before this call of the place, of this number; return the plan."""
        plan, found, left = self.plan(), getattr(MemoryPlace, call), [number]

        def killed(*given):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return found(*given)

        with patch.object(MemoryPlace, call, killed), pytest.raises(Killed):
            self.apply(plan)
        return plan

    def by_hand(self, *rules) -> None:
        """Somebody else adds what is not there of these, and removes what is."""
        self.place.rules ^= set(rules)

    def owned_now(self) -> frozenset:
        journal = read_journal(self.journal, lambda: "journal-1", print)
        return frozenset(self.owned(journal, self.place.read().contents))


@pytest.fixture
def source(tmp_path: Path) -> Source:
    case = Case(
        there=frozenset({OWN, OLD, OLDER}), owned=frozenset({OWN, OLD, OLDER}), others=frozenset(),
        goal=frozenset({OWN, NEW, LAST}), batching=Batching.RULE, settings=Settings(),
    )  # fmt: skip
    random = Random(1)
    random.randint = lambda low, high: 1  # type: ignore[method-assign]  # a request a rule
    return Source(case=case, home=tmp_path, random=random, fuse=Fuse())


def contents(*rules) -> frozenset:
    return frozenset(map(content_of, rules))


def test_what_had_not_begun_is_somebody_elses(source: Source) -> None:
    plan = source.killed_at("pieces")
    source.by_hand(NEW)
    assert source.owned_now() == contents(OWN, OLD, OLDER)
    with pytest.raises(RefusedError, match=r"changed since the plan was made: ALLOW .* 'new' .* exists"):
        source.apply(plan)


def test_a_rule_that_is_there_again_after_it_was_removed_is_not_removed_twice(source: Source) -> None:
    plan = source.killed_at("write", 3)
    removed = plan.steps[2].acl
    source.by_hand(removed)
    assert source.owned_now() == contents(*source.case.owned_at_last, *({OLD, OLDER} - {removed}))
    with pytest.raises(RefusedError, match=r"changed since an apply of the plan had made it: .* exists"):
        source.apply(plan)
    source.apply(source.plan())
    assert source.place.rules == source.case.end | {removed}


def test_one_that_is_there_after_its_removal_was_sent_is_told(source: Source) -> None:
    plan = source.killed_at("note_done")
    last = plan.steps[-1].acl
    source.by_hand(last)
    source.apply(plan)
    [told] = source.notices
    assert f"{acl_text(last)} exists" in told
    assert source.place.rules == source.case.end


def test_a_rule_that_was_read_back_and_is_gone_is_not_added_twice(source: Source) -> None:
    plan = source.killed_at("write", 2)
    first = next(step.acl for step in plan.steps)
    source.by_hand(first)
    with pytest.raises(RefusedError, match="changed since an apply of the plan had made it"):
        source.apply(plan)


def test_of_a_piece_that_was_sent_it_is_told_what_nobody_knows(source: Source) -> None:
    plan = source.killed_at("read_back")
    first, second, *_ = (step.acl for step in plan.steps)
    assert source.owned_now() == contents(OWN, OLD, OLDER, first)
    source.apply(plan)
    [told] = source.notices
    assert f"{acl_text(first)} exists" in told
    assert acl_text(second) not in told
    assert source.place.rules == source.case.end
    assert source.owned_now() == contents(*source.case.owned_at_last)


def test_a_last_line_that_lacks_its_end_is_read(source: Source) -> None:
    source.apply(source.plan())
    data = source.journal.read_bytes()
    journal, end = parse_journal(data[:-1], "journal")
    assert (journal.entries[-1].kind, end) == (EntryKind.DONE, len(data) - 1)
    assert parse_journal(data[:-2], "journal")[0].entries[-1].kind is EntryKind.BEGIN
    source.journal.write_bytes(data[:-1])
    with open_journal(source.journal, "journal-1", print, is_new=False):
        assert source.journal.read_bytes() == data


def test_where_all_is_made_at_once_and_the_place_cannot_tell_all_is_told(tmp_path: Path) -> None:
    case = Case(
        there=frozenset({OWN}), owned=frozenset({OWN}), others=frozenset(), goal=frozenset({OWN, NEW, LAST}),
        batching=Batching.ALL, settings=Settings(),
    )  # fmt: skip
    source = Source(case=case, home=tmp_path, random=Random(1))
    plan = source.killed_at("read_back")
    with patch.object(MemoryPlace, "completion", lambda *_: None):
        assert source.owned_now() == contents(OWN, NEW, LAST)
        source.apply(plan)
    assert len(source.notices) == 2
    assert source.place.rules == case.end
