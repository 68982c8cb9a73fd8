"""What an assistant is told where a setting of the cluster is unknown: no answer is called a proof."""

import jsonschema
import pytest

from aclog.authorizer.standard import Premise
from aclog.mcp.server import SCHEMA, Ended, Rows, answer_of
from aclog.mcp.tools import TOOLS, AskedState, CommandLine
from aclog.metalog.errors import ConfigError

NOTE = f"note: {Premise(name='super.users', problem='p', unless='u', settled_by='--super-users').note()}"
STATE = AskedState(source="b:9092", end_offset=None, why_none="none", as_of=None)
LINE = CommandLine(words=("x",), stdin=None, state=STATE, to_state=None)


def answer(name, printed, *, code, notices=(NOTE,)):
    [tool] = [each for each in TOOLS if each.name == name]
    rows = Rows(skip=0, has_head=name == "check")
    rows.feed(printed)
    found = answer_of(tool, LINE, Ended(code=code, notices=tuple(notices), error=None), rows)
    jsonschema.validate(found, SCHEMA)
    return found


def test_a_check_without_a_proof_has_its_verdict():
    found = answer("check", b'{"check":"no-public","verdict":"UNKNOWN","regions":0,"premises":[]}\n', code=1)
    assert found["verdict"]["verdict"] == "UNKNOWN"
    assert "proved" not in found["note"]
    assert found["notices"] == [NOTE]


@pytest.mark.parametrize(("name", "code"), [("diff", 1), ("who_can", 0), ("what_can", 0)])
def test_nothing_is_no_proof(name, code):
    assert answer(name, b"", code=code)["note"].startswith("no row is known, and there may be some")


def test_a_command_that_fails_without_a_word_is_still_an_error():
    with pytest.raises(ConfigError, match="printed nothing"):
        answer("diff", b"", code=1, notices=())
    assert answer("who_can", b"", code=0, notices=())["note"].startswith("none: no principal")
