"""A suggestion that workers judge in parts, against one of all accesses at once."""

import pickle
from random import Random

import pytest
from attrs import evolve

from aclog.authorizer.settings import Settings
from aclog.usage import suggesting
from aclog.usage.decisions.intervals import Rules
from aclog.usage.suggesting import AtOnce, InParts, judge, parts_of
from aclog.usage.suggestion import Question
from aclog.usage.suggestion_proof import SuggestionError
from tests.usage.suggestion.test_columns import random_access, random_rule
from tests.usage.suggestion.test_suggestion import counted, image_of


def each_by_pickle(parts, make):
    """As workers of other processes get and return it."""
    run = pickle.loads(pickle.dumps(make))()
    return (pickle.loads(pickle.dumps(run(pickle.loads(pickle.dumps(part))))) for part in parts)


def of_principals(random):
    """An access of one of six principals: more than parts, and some beyond the ACLs."""
    return f"User:{random.randrange(6)}", *random_access(random)[1:]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sample(12)
def test_parts_give_the_same_as_all_at_once(seed, monkeypatch):
    random = Random(seed)
    monkeypatch.setattr(suggesting, "_ROWS", 20)
    rules = list({random_rule(random): None for _ in range(random.randrange(1, 40))})
    rules += [evolve(rule, principal=f"User:{random.randrange(6)}") for rule in rules]
    rules = list(dict.fromkeys(rules))
    settings = Settings(cidr=random.random() < 0.5, allow_everyone=random.random() < 0.5)
    table, image = counted([of_principals(random) for _ in range(150)]), image_of(rules)
    ruling = Rules.of_image(image.with_options(documented=settings.documented, cidr=settings.cidr))
    here, there = judge(table, ruling, settings), judge(table, ruling, settings, each_by_pickle)
    assert isinstance(here, AtOnce)
    assert isinstance(there, InParts)
    assert len(there.parts) > 1
    assert there.judged.denied == here.judged.denied
    assert there.judged.undecided.spans == here.judged.undecided.spans
    assert there.judged.names == here.judged.names
    question = Question(settings=settings, fold=2, unread=here.judged.undecided)
    suggestions = [each.suggest(rules, question) for each in (here, there)]
    assert suggestions[0].rules == suggestions[1].rules
    assert suggestions[0].refused == suggestions[1].refused
    assert here.prove(image, suggestions[0].acls, settings) == there.prove(image, suggestions[0].acls, settings)


def test_an_unsound_suggestion_is_found_out_by_a_part(monkeypatch):
    monkeypatch.setattr(suggesting, "_ROWS", 5)
    random = Random(1)
    rules = list({evolve(random_rule(random), principal="User:1"): None for _ in range(60)})
    image, settings = image_of(rules), Settings()
    table = counted([of_principals(random) for _ in range(300)])
    judged = judge(table, Rules.of_image(image), settings, each_by_pickle)
    assert isinstance(judged, InParts)
    with pytest.raises(SuggestionError, match="LOST"):
        judged.prove(image, [], settings)


@pytest.mark.parametrize("principal", ["User:*", "no colon"])
def test_one_part_if_a_principal_is_everyone(monkeypatch, principal):
    monkeypatch.setattr(suggesting, "_ROWS", 2)
    random = Random(2)
    accesses = [of_principals(random) for _ in range(40)]
    assert len(parts_of(counted(accesses))) == 6
    assert len(parts_of(counted([*accesses, (principal, *accesses[0][1:])]))) == 1
