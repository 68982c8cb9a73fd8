"""Many questions in one request (Access Evaluations), under each of the three semantics."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from aclog.console.pdp.decider import error_answer
from aclog.console.pdp.errors import BadRequestError

MOST = 10_000
"""Questions of one request."""
_ENTITIES = ("subject", "action", "resource", "context")


class Semantic(StrEnum):
    """When to stop."""

    EXECUTE_ALL = "execute_all"
    DENY_ON_FIRST_DENY = "deny_on_first_deny"
    PERMIT_ON_FIRST_PERMIT = "permit_on_first_permit"


def evaluate_all(body: Mapping[str, Any], evaluate: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> dict[str, Any]:
    """Return the answer to a request; `evaluate` answers an object with one question.

    An entity that a question leaves out is that of the request. What is wrong with one question is its own answer.

    Raises:
        BadRequestError: the request itself is none.

    """
    asked = body.get("evaluations")
    if asked is None or asked == []:
        return dict(evaluate(body))
    if not isinstance(asked, list):
        raise BadRequestError("evaluations: expected an array")
    if len(asked) > MOST:
        raise BadRequestError(f"evaluations: {len(asked):,}: expected at most {MOST:,}")
    semantic = _semantic(body.get("options"))
    shared = {key: body[key] for key in _ENTITIES if key in body}
    found: list[Mapping[str, Any]] = []
    for each in asked:
        if not isinstance(each, dict):
            answer = error_answer("expected an object")
        else:
            try:
                answer = evaluate({**shared, **each})
            except BadRequestError as error:
                answer = error_answer(str(error))
        found.append(answer)
        if semantic is Semantic.DENY_ON_FIRST_DENY and not answer["decision"]:
            break
        if semantic is Semantic.PERMIT_ON_FIRST_PERMIT and answer["decision"]:
            break
    return {"evaluations": found}


def _semantic(options: object) -> Semantic:
    if options is None:
        return Semantic.EXECUTE_ALL
    if not isinstance(options, dict):
        raise BadRequestError("options: expected an object")
    text = options.get("evaluations_semantic", Semantic.EXECUTE_ALL.value)
    if text not in set(Semantic):
        raise BadRequestError(f"options.evaluations_semantic: expected one of {', '.join(Semantic)}")
    return Semantic(text)
