"""The gaps of a followed log: those of now, not those of the start."""

import json
import shutil
from pathlib import Path

import pytest

from aclog.authorizer.codes import AclOperation
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import ALL_KNOWN, Premise, Premises
from aclog.cli.serving import live_premises
from aclog.cli.unused_finder import IndexFinder
from aclog.console.live import LivePremises, LiveState
from aclog.console.pages.states import States
from aclog.console.pdp.deciding import Deciders, KafkaRequest
from aclog.console.pdp.mapping import default_mapping
from aclog.metalog.errors import MetadataError
from aclog.sources.choice import SourceSelection, choose_source
from aclog.usage.index.usage_index import UsageIndex
from aclog.usage.unused_report import UnusedQuestion

KAFKA_LOG = Path(__file__).parents[1] / "data" / "kafka-4.3.1-small"
REQUEST = KafkaRequest(
    principal="User:nobody", host="::1", operation=AclOperation.READ, resource_type=2, name="no-such-topic"
)


def gap(problem):
    return Premises((Premise(name="the state", problem=problem, unless="it differs", settled_by="it", denies=True),))


@pytest.fixture
def torn(tmp_path):
    """A log that Kafka wrote, followed; and its last segment, the end of which may be torn."""
    [directory] = {path.parent for path in KAFKA_LOG.rglob("*.log") if "__cluster_metadata" in str(path)}
    shutil.copytree(directory, tmp_path / "log")
    source = choose_source(SourceSelection(log=tmp_path / "log"), lambda _: None).source
    live = LiveState(source=source, seconds=60, tell=lambda _: None)
    yield live, max((tmp_path / "log").glob("*.log"))
    source.close()


def test_settings_are_read_once_and_gaps_with_each_state():
    settings, gaps, notes = [], [ALL_KNOWN], []

    def read():
        settings.append(1)
        return gap("a setting")

    premises = LivePremises(settings=read, gaps=lambda: gaps[-1], tell=notes.append)
    assert not premises.unknown
    premises.look()
    first = premises.unknown
    premises.look()
    assert premises.unknown is first
    gaps.append(gap("torn"))
    premises.look()
    assert [each.problem for each in premises.unknown.unknown] == ["a setting", "torn"]
    gaps.append(ALL_KNOWN)
    premises.look()
    assert [each.problem for each in premises.unknown.unknown] == ["a setting"]
    assert len(settings) == 1
    assert len(notes) == 2


def test_a_decision_point_names_a_gap_while_it_is_there(torn):
    live, segment = torn
    notes = []
    premises = live_premises(live, frozenset())
    premises.tell = notes.append
    deciders = Deciders(live=live, settings=Settings(), mapping=default_mapping(), max_age=60.0, premises=premises)
    live._look()
    answer = deciders.at(None).decide(REQUEST)
    assert "premises" not in answer.text(0)
    whole = segment.read_bytes()
    segment.write_bytes(whole + b"\x00torn")
    live._look()
    answer = json.loads(deciders.at(None).decide(REQUEST).text(0))
    assert answer["context"]["premises"] == ["the state"]
    assert "ignored 5 bytes that are not a whole batch" in notes[0]
    segment.write_bytes(whole)
    live._look()
    assert "premises" not in deciders.at(None).decide(REQUEST).text(0)
    assert len(notes) == 1


def test_the_console_shows_a_gap_while_it_is_there(torn):
    live, segment = torn
    states = States(live=live, settings=Settings(), premises=live_premises(live, frozenset()))
    live._look()
    assert states.now().premises == ALL_KNOWN
    before, whole = states.version, segment.read_bytes()
    segment.write_bytes(whole + b"\x00torn")
    live._look()
    assert states.now().premises.names == ("the state",)
    assert states.version != before  # pages are shown again
    assert states.at("10").premises.names == ("the state",)
    segment.write_bytes(whole)
    live._look()
    assert states.now().premises == ALL_KNOWN
    assert states.at("10").premises == ALL_KNOWN


def test_gaps_that_cannot_be_read_are_an_error_of_the_state(torn):
    live, _ = torn

    def unreadable():
        raise MetadataError("unreadable")

    premises = LivePremises(settings=lambda: ALL_KNOWN, gaps=unreadable, tell=lambda _: None)
    Deciders(live=live, settings=Settings(), mapping=default_mapping(), max_age=60.0, premises=premises)
    live._look()
    assert live.newest is None
    assert live.trouble == "unreadable"


def test_an_index_is_asked_again_when_its_writer_commits(tmp_path):
    """A commit is in the write-ahead log first, and the file of the database stays as it was."""
    with UsageIndex.create(tmp_path / "index") as index:
        finder = IndexFinder(
            index=tmp_path / "index", question=UnusedQuestion(days=1, gap=1), log=None, proof=None, origins=None
        )
        before = finder.signature()
        assert finder.signature() == before
        with index.database.writing() as connection:
            connection.execute("PRAGMA user_version")
            connection.execute("CREATE TABLE extra (number INTEGER)")
        after = finder.signature()
        assert after != before
        with UsageIndex.open(tmp_path / "index"):
            pass
        assert finder.signature() == after  # a reader changes nothing
