"""OPA's data API, as its Kafka plugin asks it: `POST /v1/data/kafka/authz`, and `/allow` below it."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from aclog.authorizer.acl import AclOperation, PatternType, ResourceType
from aclog.console.pdp.decider import Answer, Decider, KafkaRequest
from aclog.console.pdp.errors import BadRequestError
from aclog.console.pdp.reply import Reply
from aclog.console.pdp.requests import parse_evaluation, parse_host
from aclog.terminal.json_text import json_text

ROOT = "/v1/data/"
PATH = f"{ROOT}kafka/authz"
ALLOW = f"{PATH}/allow"
_OPERATIONS = {each.name: each for each in AclOperation if each > AclOperation.ALL}
_TYPES = {each.name: each for each in ResourceType if each > ResourceType.ANY}


@frozen(kw_only=True)
class OpaAnswer:
    """The answer to a query of OPA's."""

    decision_id: str
    decision: bool
    result: bool | Mapping[str, Any]
    """The document that was asked for."""
    offset: int
    """The end of the state that it was made from."""

    def reply(self) -> Reply:
        """Return it as it is sent."""
        text = json_text({"decision_id": self.decision_id, "result": self.result})
        return Reply.of_decision(text, decision=self.decision)


def opa_answer(
    body: Mapping[str, Any], state: Callable[[str | None], Decider], decision_id: str, *, only_allow: bool
) -> OpaAnswer:
    """Return the answer to a query of OPA's; `only_allow` for the document `allow` alone.

    The input is a question of the Authorization API, or what OPA's Kafka plugin sends. Without an input that is one,
    nothing is allowed.

    Raises:
        NotReadyError: as AuthZen.evaluation.

    """
    try:
        answer, offset = _answer(body.get("input"), state)
    except BadRequestError as error:
        answer, offset = Answer(decision=False, rule=None, reason=str(error)), state(None).offset
    document = {"allow": answer.decision, "rule": answer.rule, "reason": answer.reason, "offset": offset}
    return OpaAnswer(
        decision_id=decision_id,
        decision=answer.decision,
        result=answer.decision if only_allow else document,
        offset=offset,
    )


def _answer(value: object, state: Callable[[str | None], Decider]) -> tuple[Answer, int]:
    if not isinstance(value, dict):
        raise BadRequestError("input: expected an object")
    if "subject" in value:
        asked = parse_evaluation(value)
        decider = state(asked.circumstances.as_of)
        return decider.evaluate(asked), decider.offset
    decider = state(None)
    return decider.decide(_plugin_request(value)), decider.offset


def _plugin_request(value: Mapping[str, Any]) -> KafkaRequest:
    """Return the request in what the plugin sends: the action and the context of Kafka's Authorizer interface."""
    try:
        action, context = value["action"], value["requestContext"]
        pattern, principal = action["resourcePattern"], context["principal"]
        kind, operation = _TYPES[pattern["resourceType"]], _OPERATIONS[action["operation"]]
        if pattern["patternType"] != PatternType.LITERAL.name:
            raise BadRequestError("input.action.resourcePattern: expected a LITERAL pattern")
        texts = (principal["principalType"], principal["name"], pattern["name"], context["clientAddress"])
    except (KeyError, TypeError) as error:
        raise BadRequestError(f"input: not a question, nor what OPA's Kafka plugin sends: {error}") from error
    if not all(isinstance(text, str) for text in texts):
        raise BadRequestError("input: expected texts")
    if not texts[0] or ":" in texts[0]:  # User:a and b would be taken for User and a:b
        raise BadRequestError("input: requestContext.principal.principalType: expected a type of principal")
    # The plugin sends InetAddress.toString, which is "/10.0.0.1" where no name of the client was looked up.
    return KafkaRequest(
        principal=f"{texts[0]}:{texts[1]}",
        host=parse_host(texts[3].removeprefix("/"), "input.requestContext.clientAddress"),
        operation=int(operation),
        resource_type=int(kind),
        name=texts[2],
    )
