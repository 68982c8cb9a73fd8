"""Many questions in one request (Access Evaluations), under each of the three semantics."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from aclog.console.pdp.errors import BadRequestError
from aclog.console.pdp.reply import Reply
from aclog.terminal.json_text import json_text

MOST = 10_000
"""Questions of one request."""
_ENTITIES = ("subject", "action", "resource", "context")


class Semantic(StrEnum):
    """When to stop."""

    EXECUTE_ALL = "execute_all"
    DENY_ON_FIRST_DENY = "deny_on_first_deny"
    PERMIT_ON_FIRST_PERMIT = "permit_on_first_permit"


_LAST = {Semantic.EXECUTE_ALL: None, Semantic.DENY_ON_FIRST_DENY: 0, Semantic.PERMIT_ON_FIRST_PERMIT: 1}
"""How many decisions of the last answer are true: after that one it stops."""


Question = Mapping[str, Any]


def evaluate_all(body: Question, evaluate: Callable[[Question], Reply]) -> Reply:
    """Return the answer to a request; `evaluate` answers an object with one question.

    An entity that a question leaves out is that of the request. What is wrong with one question is its own answer.

    Raises:
        BadRequestError: the request itself is none.

    """
    asked = body.get("evaluations")
    if asked is None or asked == []:
        return evaluate(body)
    if not isinstance(asked, list):
        raise BadRequestError("evaluations: expected an array")
    if len(asked) > MOST:
        raise BadRequestError(f"evaluations: {len(asked):,}: expected at most {MOST:,}")
    semantic = _semantic(body.get("options"))
    shared = {key: body[key] for key in _ENTITIES if key in body}
    last = _LAST[semantic]
    texts, allowed = [], 0
    for each in asked:
        reply = _answered(each, shared, evaluate)
        texts.append(reply.text)
        allowed += reply.allowed
        if reply.allowed == last:
            break
    return Reply(text=f'{{"evaluations":[{",".join(texts)}]}}', allowed=allowed, denied=len(texts) - allowed)


def _answered(each: object, shared: Question, evaluate: Callable[[Question], Reply]) -> Reply:
    if not isinstance(each, dict):
        return _error("expected an object")
    try:
        return evaluate({**shared, **each} if shared else each)
    except BadRequestError as error:
        return _error(str(error))


def _error(message: str) -> Reply:
    """Return the answer to a question that is none."""
    error = {"status": 400, "message": message}
    return Reply.of_decision(json_text({"decision": False, "context": {"error": error}}), decision=False)


def _semantic(options: object) -> Semantic:
    if options is None:
        return Semantic.EXECUTE_ALL
    if not isinstance(options, dict):
        raise BadRequestError("options: expected an object")
    text = options.get("evaluations_semantic", Semantic.EXECUTE_ALL.value)
    if not isinstance(text, str) or text not in set(Semantic):
        raise BadRequestError(f"options.evaluations_semantic: expected one of {', '.join(Semantic)}")
    return Semantic(text)
