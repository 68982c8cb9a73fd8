"""The answers about rules, and why some are not judged."""

import numpy as np

from aclog.usage.unused import ANSWERS, Answer, Judgement, RuleLives, Unjudged

START, FIRST_ACCESS = 1_000, 1_200


def test_answers():
    lives = RuleLives(
        number=np.array([0, 1, 2, -1, 3, 4, 5, 6]),
        begin=np.array([0, START, 1, 0, START + 1, FIRST_ACCESS, FIRST_ACCESS + 1, FIRST_ACCESS + 1]),
        exact=np.array([True, True, True, False, True, False, False, False]),
    )
    old = lives.older_than(START, FIRST_ACCESS)
    assert old.tolist() == [True, True, True, False, False, True, False, False]
    matched = np.array([0, 1, 1, 0, 0, 0, 0, 1], np.bool_)
    needed = np.array([0, 0, 1, 0, 0, 0, 0, 1], np.bool_)
    judged = Judgement.of(lives, matched=matched, needed=needed, old=old, silent=False)
    young = (Answer.NOT_JUDGED, Unjudged.YOUNG)
    expected = [
        (Answer.NEVER_MATCHED, 0), (Answer.NEVER_NEEDED, 0), (Answer.NEEDED, 0),
        (Answer.NOT_JUDGED, Unjudged.NOT_INDEXED), young, (Answer.NEVER_MATCHED, 0), young, (Answer.NEEDED, 0),
    ]  # fmt: skip
    answers = [ANSWERS[code] for code in judged.answer.tolist()]
    assert list(zip(answers, judged.unjudged.tolist(), strict=True)) == expected
    assert judged.unused.tolist() == [True, True, False, False, False, True, False, False]
    silent = Judgement.of(lives, matched=matched, needed=needed, old=old, silent=True)
    answers = [ANSWERS[code] for code in silent.answer.tolist()]
    assert answers == [Answer.NEEDED if each else Answer.NOT_JUDGED for each in needed]
    reasons = "SILENCE SILENCE JUDGED NOT_INDEXED YOUNG SILENCE YOUNG JUDGED"
    assert " ".join(Unjudged(code).name for code in silent.unjudged.tolist()) == reasons


def test_a_window_without_any_access():
    lives = RuleLives(number=np.array([0, 1]), begin=np.array([START, START + 1]), exact=np.array([False, False]))
    assert lives.older_than(START, None).tolist() == [True, False]
