"""OPA's data API, its decision log and the audit of answers."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from attrs import field

from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.console.pdp.deciding import (
    ALLOWED_ONLY_ON,
    Answer,
    Asker,
    Decider,
    KafkaRequest,
    Reply,
    parse_evaluation,
    parse_host,
)
from aclog.console.pdp.mapping import BadRequestError
from aclog.console.shared import LineFile
from aclog.metalog.errors import printable_json
from aclog.metalog.values import frozen
from aclog.terminal.columns import json_text

# The audit of answers: a line of JSON for each.


_ENTITIES = ("subject", "action", "resource", "context", "options", "evaluations", "page", "input")


@frozen(eq=False)
class Audit:
    """A file that answers are appended to; owned by the server."""

    file: LineFile

    def write(self, path: str, request_id: str | None, body: Mapping[str, Any], answer: str) -> None:
        """Append a line; `answer` is JSON. Raises OSError: without an audit line there is no answer."""
        question = {key: body[key] for key in _ENTITIES if key in body}
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json_text({"time": time, "path": path, "requestId": request_id, "asked": question})
        self.file.append(f'{line[:-1]},"answer":{printable_json(answer)}}}')


# OPA's data API, as its Kafka plugin calls it: `POST /v1/data/kafka/authz`, and `/allow` below it.


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
    """The requested document."""
    offset: int
    """The end of the state that it was made from."""
    only_on: tuple[str, ...] = ()
    """As Answer.only_on; a result that is only a decision does not have it."""

    def reply(self) -> Reply:
        """Return it as it is sent."""
        text = json_text({"decision_id": self.decision_id, "result": self.result})
        return Reply.of_decision(text, decision=self.decision)


def opa_answer(
    body: Mapping[str, Any], state: Callable[[str | None], Decider], decision_id: str, *, only_allow: bool
) -> OpaAnswer:
    """Return the answer to a query of OPA's; `only_allow` for the document `allow` alone.

    The input is a question of the Authorization API, or a request of OPA's Kafka plugin. Any other input is denied.

    Raises:
        NotReadyError: as AuthZen.evaluation.

    """
    try:
        answer, offset = _answer(body.get("input"), state)
    except BadRequestError as error:
        answer, offset = Answer(decision=False, rule=None, reason=str(error)), state(None).offset
    document: dict[str, object] = {
        "allow": answer.decision, "rule": answer.rule, "reason": answer.reason, "offset": offset,
    }  # fmt: skip
    if answer.only_on:
        document[ALLOWED_ONLY_ON] = answer.only_on
    return OpaAnswer(
        decision_id=decision_id,
        decision=answer.decision,
        result=answer.decision if only_allow else document,
        offset=offset,
        only_on=answer.only_on,
    )


def _answer(value: object, state: Callable[[str | None], Decider]) -> tuple[Answer, int]:
    if not isinstance(value, dict):
        raise BadRequestError("input: expected an object")
    if "subject" in value:
        question = parse_evaluation(value)
        decider = state(question.circumstances.as_of)
        return decider.evaluate(question), decider.offset
    decider = state(None)
    return decider.decide(_plugin_request(value)), decider.offset


def _plugin_request(value: Mapping[str, Any]) -> KafkaRequest:
    """Return the request of the plugin: the action and the context of Kafka's Authorizer interface."""
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
    # The plugin sends InetAddress.toString, which is "/10.0.0.1" without a reverse lookup of the client.
    return KafkaRequest(
        principal=f"{texts[0]}:{texts[1]}",
        host=parse_host(texts[3].removeprefix("/"), "input.requestContext.clientAddress"),
        operation=int(operation),
        resource_type=int(kind),
        name=texts[2],
    )


# OPA's decision log: an event for each decision of OPA's data API.
#
# https://www.openpolicyagent.org/docs/management-decision-logs


def _new_id() -> str:
    return str(uuid4())


@frozen(kw_only=True)
class DecisionLog:
    """A file that events are appended to, a line of JSON each; nothing is masked or dropped."""

    file: LineFile
    version: str
    """The version of aclog."""
    _id: str = field(factory=_new_id, init=False)
    """The id of this process."""

    def write(self, path: str, asker: Asker, body: Mapping[str, Any], answer: OpaAnswer) -> None:
        """Append the event of an answer. Raises OSError: without a log line there is no answer."""
        event = {
            "labels": {"id": self._id, "version": self.version},
            "decision_id": answer.decision_id,
            "bundles": {"aclog": {"revision": str(answer.offset)}},
            "path": path.removeprefix(ROOT),
            **({"input": body["input"]} if "input" in body else {}),
            "result": answer.result,
            **({ALLOWED_ONLY_ON: answer.only_on} if answer.only_on else {}),
            "requested_by": asker.address,
            "timestamp": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        }
        self.file.append(json_text(event))
