"""What the worker processes of a decision point share: offsets that never go back, readiness, sums of metrics."""

import pytest
from attrs import evolve
from prometheus_client.parser import text_string_to_metric_families

from aclog.console.pdp import workers
from aclog.console.pdp.app import Measures
from aclog.console.pdp.mapping import NotReadyError
from aclog.console.pdp.workers import AnsweredOffsets, WorkerBoard, summed_metrics
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import FileLogReader
from aclog.sources.logs import LogSource, log_digest
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.web.points import HeldSource, image_of, point_of


def offsets_of(board, number, digest=lambda offset: 0):
    return AnsweredOffsets(board=board, number=number, digest=digest)


def state_at(offset, *rules):
    image = image_of(*rules)
    return evolve(image, provenance=image.provenance._replace(end_offset=offset))


def values(text):
    families = text_string_to_metric_families(text.decode())
    return {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}


def test_no_answer_is_older_than_one_before():
    board = WorkerBoard(2)
    one, two = offsets_of(board, 0), offsets_of(board, 1)
    assert one.admit(5)
    assert not two.admit(4)
    assert two.admit(5)
    assert two.admit(9)
    assert not one.admit(8)
    assert one.newest == 9
    assert one.admit(9)


def test_a_worker_that_is_started_again_waits_for_what_was_answered_before():
    board = WorkerBoard(2)
    assert offsets_of(board, 0).admit(7)
    again = offsets_of(board, 0)
    assert again.why_not_joined(6) == "the state ends at offset 6: another worker has answered from offset 7"
    assert not again.admit(6)
    assert again.why_not_joined(7) is None
    assert offsets_of(board, 1).admit(8)
    assert again.why_not_joined(7) is None, "a lag is made up for by the next request"
    assert not again.admit(7)


def test_another_log_is_refused():
    board = WorkerBoard(2)
    assert offsets_of(board, 0, lambda offset: 100 + offset).admit(7)
    other = offsets_of(board, 1, lambda offset: 200 + offset)
    assert other.why_not_joined(9) == (
        "another log is here than the one that other workers have answered from: offset 7 differs"
    )
    assert not other.admit(9)
    assert offsets_of(board, 1, lambda offset: 100 + offset).admit(9)

    def unreadable(offset):
        raise LogError("gone")

    assert offsets_of(board, 1, unreadable).admit(9), "retention may have deleted it"


def test_the_newer_entry_of_a_worker_survives_its_end_at_any_moment(monkeypatch):
    board = WorkerBoard(1)
    one = offsets_of(board, 0)
    for offset in (3, 4, 9):
        assert one.admit(offset)
        assert min(board.offsets) < max(board.offsets) == offset
    one.digest = lambda offset: pytest.fail("killed")
    with pytest.raises(pytest.fail.Exception):
        one.admit(10)
    assert max(board.offsets) == 9


def test_a_request_has_the_source_read_if_another_worker_was_faster():
    source = HeldSource(state_at(3))
    point, board = point_of(source), WorkerBoard(2)
    point.deciders.answered = offsets_of(board, 0)
    assert point.deciders.at(None).offset == 3
    source.current = state_at(4, acl("t", "User:a"))
    assert offsets_of(board, 1).admit(4)
    assert point.deciders.why_not_ready() is None
    assert point.deciders.at(None).offset == 4
    assert offsets_of(board, 1).admit(6)
    for _ in range(2):
        with pytest.raises(NotReadyError, match="another worker has answered from offset 6, which is not read yet"):
            point.deciders.at(None)
    source.current = state_at(6)
    assert point.deciders.at(None).offset == 6


def test_nothing_is_decided_before_a_worker_has_what_others_answered_from():
    board = WorkerBoard(2)
    assert offsets_of(board, 1).admit(5)
    point = point_of(HeldSource(state_at(3)))
    point.deciders.answered = offsets_of(board, 0)
    assert "another worker has answered from offset 5" in point.deciders.why_not_ready()
    with pytest.raises(NotReadyError, match="another worker has answered from offset 5"):
        point.deciders.at(None)


def test_a_log_is_known_by_the_batch_before_an_offset(tmp_path):
    (tmp_path / "none").write_text("")
    digests = []
    for name in ("one", "other"):
        log = tmp_path / name
        aclog("import", tmp_path / "none", "--log", log).ok()
        for topic in ("t", name):
            aclog("acls", "add", "--log", log, "--allow-principal", "User:a", "--topic", topic, "--operation", "READ")
        source = LogSource(log, lambda _: None)
        end = source.image().end_offset
        assert isinstance(source.log, FileLogReader)
        digests.append(log_digest(source.log, end))
        assert digests[-1] == log_digest(source.log, end) > 0
        assert log_digest(source.log, 0) == 0
        source.close()
    assert digests[0] != digests[1]
    assert log_digest(None, 5) == 0


def test_metrics_are_summed_and_those_of_the_past_are_kept():
    board, texts = WorkerBoard(2), []
    for number in range(2):
        measures = Measures()
        measures.age.set(number + 1)
        for _ in range(number + 2):
            measures.took("/access/v1/evaluation", 200, 0.001)
            measures.refusals.connection("rate")
        texts.append(measures.refusals.text())
        board.publish(number, None, texts[-1])
    total = values(board.metrics())
    one, two = map(values, texts)
    assert one.keys() == two.keys() == total.keys()
    assert total["aclog_pdp_requests_total", "200"] == 5
    assert total["aclog_pdp_request_seconds_count",] == 5
    assert total["aclog_pdp_request_seconds_bucket", "0.005"] == 5
    assert total["aclog_web_connections_refused_total", "rate"] == 5
    assert total["aclog_age_seconds",] == 2
    assert total["process_start_time_seconds",] == one["process_start_time_seconds",]
    board.retire(1)
    assert values(board.metrics())["aclog_pdp_requests_total", "200"] == 5
    assert values(board.metrics())["aclog_age_seconds",] == 1
    board.publish(1, None, texts[1])
    board.retire(1)
    assert values(board.metrics())["aclog_pdp_requests_total", "200"] == 8
    assert summed_metrics([]) == b""


def test_readiness_is_that_of_every_worker(monkeypatch):
    board = WorkerBoard(2)
    assert board.why_not_ready() == "worker 1 is not running"
    for number in range(2):
        board.beat(number)
    board.publish(1, "no state was read yet", b"")
    assert board.why_not_ready() == "worker 2: no state was read yet"
    board.publish(1, None, b"")
    assert board.why_not_ready() is None
    monkeypatch.setattr(workers, "_SILENT_S", -1)
    assert board.why_not_ready() == "worker 1 does not respond"
    monkeypatch.undo()
    board.retire(0)
    assert board.why_not_ready() == "worker 1 is not running"
    assert not board.has_begun(0)
