"""OPA's decision log: the events of OPA's own, for what is asked by OPA's data API."""

import json
from datetime import datetime

from tests.support.builders.acls import acl
from tests.support.web.asgi import post
from tests.support.web.points import HeldSource, image_of, point_of

PATH = "/v1/data/kafka/authz"
QUESTION = {
    "subject": {"type": "User", "id": "a"}, "action": {"name": "READ"}, "resource": {"type": "topic", "id": "t\u202e"},
}  # fmt: skip


def events(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_event_is_what_opa_would_write(tmp_path):
    point = point_of(
        HeldSource(image_of(acl("t\u202e", "User:a"))), audit=tmp_path / "audit", decision_log=tmp_path / "log"
    )
    app = point.app()
    told = post(app, PATH, {"input": QUESTION}).json
    short = post(app, f"{PATH}/allow", {"input": QUESTION}).json
    post(app, PATH, {})
    post(app, "/access/v1/evaluation", QUESTION)
    assert post(app, PATH, b"{").status == 400
    first, second, third = events(tmp_path / "log")
    assert set(first) == {
        "labels", "decision_id", "bundles", "path", "input", "result", "requested_by", "timestamp",
    }  # fmt: skip
    assert (first["decision_id"], first["result"]) == (told["decision_id"], told["result"])
    assert (second["decision_id"], second["result"]) == (short["decision_id"], True)
    assert (first["path"], second["path"]) == ("kafka/authz", "kafka/authz/allow")
    assert first["input"] == QUESTION
    assert (first["requested_by"], first["bundles"]) == ("127.0.0.1:1", {"aclog": {"revision": "0"}})
    assert datetime.fromisoformat(first["timestamp"]).utcoffset().total_seconds() == 0
    assert first["labels"] == second["labels"]
    assert "input" not in third
    assert third["result"]["allow"] is False
    assert "\u202e" not in (tmp_path / "log").read_text()
    audited = [line["answer"] for line in events(tmp_path / "audit")]
    assert audited[:2] == [told, short]
    assert audited[3]["decision"] is True
    point.audit.file.close()
    point.decision_log.file.close()


def test_what_cannot_be_written_down_is_not_answered(tmp_path):
    told = []
    for path, body in ((PATH, {"input": QUESTION}), ("/access/v1/evaluation", QUESTION), ("/ext_authz/t", QUESTION)):
        point = point_of(HeldSource(image_of(acl("t\u202e", "User:a"))), audit=tmp_path / "audit")
        point.tell = told.append
        point.audit.file.close()
        app = point.app()
        for _ in range(2):
            reply = post(app, path, body)
            assert (reply.status, reply.json) == (503, {"error": "answers cannot be written down"})
    assert len(told) == 3, "once each"
