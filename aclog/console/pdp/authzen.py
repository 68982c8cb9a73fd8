"""The Authorization API (AuthZEN): requests, batches and searches."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from hashlib import sha256
from typing import Any

from attrs import evolve, field

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, PatternType, ResourceType
from aclog.authorizer.settings import name_text
from aclog.console.pdp.deciding import (
    ActionName,
    Answer,
    Circumstances,
    Decided,
    Decider,
    Entity,
    KafkaRequest,
    Reply,
    parse_action,
    parse_context,
    parse_entity,
    parse_evaluation,
    plain_words,
)
from aclog.console.pdp.mapping import BadRequestError, ForeignType, Thing
from aclog.metalog.values import define, frozen
from aclog.terminal.columns import json_text

# Many questions in one request (Access Evaluations), under each of the three semantics.


MOST_IN_BATCH = 10_000
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


def evaluate_all(body: Question, evaluate: Callable[[Question], Decided]) -> Reply:
    """Return the answer to a request; `evaluate` answers an object with one question.

    An entity that a question leaves out is that of the request. An error in one question is the answer to that
    question.

    Raises:
        BadRequestError: the request itself is invalid.

    """
    questions = body.get("evaluations")
    if questions is None or questions == []:
        return _reply(evaluate(body))
    if not isinstance(questions, list):
        raise BadRequestError("evaluations: expected an array")
    if len(questions) > MOST_IN_BATCH:
        raise BadRequestError(f"evaluations: {len(questions):,}: expected at most {MOST_IN_BATCH:,}")
    semantic = _semantic(body.get("options"))
    shared = {key: body[key] for key in _ENTITIES if key in body}
    last = _LAST[semantic]
    texts, allowed = [], 0
    for each in questions:
        text, decision = _answered(each, shared, evaluate)
        texts.append(text)
        allowed += decision
        if decision == last:
            break
    return Reply(text=f'{{"evaluations":[{",".join(texts)}]}}', allowed=allowed, denied=len(texts) - allowed)


def _answered(each: object, shared: Question, evaluate: Callable[[Question], Decided]) -> Decided:
    if not isinstance(each, dict):
        return _error("expected an object")
    try:
        return evaluate({**shared, **each} if shared else each)
    except BadRequestError as error:
        return _error(str(error))


def _error(message: str) -> Decided:
    """Return the answer to an invalid question."""
    error = {"status": 400, "message": message}
    return json_text({"decision": False, "context": {"error": error}}), False


def _semantic(options: object) -> Semantic:
    if options is None:
        return Semantic.EXECUTE_ALL
    if not isinstance(options, dict):
        raise BadRequestError("options: expected an object")
    text = options.get("evaluations_semantic", Semantic.EXECUTE_ALL.value)
    if not isinstance(text, str) or text not in set(Semantic):
        raise BadRequestError(f"options.evaluations_semantic: expected one of {', '.join(Semantic)}")
    return Semantic(text)


# Searches for subjects, resources or actions. Every result is allowed when it is evaluated.
#
# Candidates are the principals of rules and super users, and names that are in rules or known to exist.
# A prefix or `User:*` also allows an infinite number of other names, which are not listed.


Result = Mapping[str, Any]


def search_subjects(
    decider: Decider, kind: Entity, action: ActionName, resource: Entity, circumstances: Circumstances
) -> Iterator[Result]:
    """Yield the subjects of a type that may do something with a resource."""
    subjects = decider.mapping.subject_type(kind.type)
    mapped = decider.action_of(action, resource)
    if subjects is None or isinstance(mapped, Answer):
        return
    operation, pattern = mapped
    for principal in candidates_of(decider):
        thing = subjects.backward(None, principal)
        if thing is None or not _has_properties(subjects, kind, thing, principal):
            continue
        request = KafkaRequest(
            principal=principal,
            host=circumstances.host,
            operation=int(operation),
            resource_type=pattern.resource_type,
            name=pattern.name,
            pattern_type=pattern.pattern_type,
        )
        if decider.decide(request).decision:
            yield _entity(kind.type, thing)


def search_resources(
    decider: Decider,
    subject: Entity,
    action: ActionName,
    kind: Entity,
    circumstances: Circumstances,
    existing: Mapping[int, Iterable[str]],
) -> Iterator[Result]:
    """Yield the resources of a type with which a subject may do something; `existing` names by type besides rules'."""
    resources = decider.mapping.resource_type(kind.type)
    if resources is None:
        return
    for target in {case.to.resource_type: case.to for case in resources.cases}.values():
        names = {*_names(decider.acls, target.resource_type), *existing.get(int(target.resource_type), ())}
        for name in names:
            found_thing = resources.backward(target, name)
            if found_thing is None:
                continue
            thing = evolve(found_thing, id=name_text(found_thing.id))
            properties = {**dict(thing.properties), **kind.properties}
            resource = Entity(type=kind.type, id=thing.id, properties=properties)
            request = decider.request_of(subject, action, resource, circumstances.host)
            if isinstance(request, Answer) or (request.name, request.pattern_type) != (name, PatternType.LITERAL):
                continue
            if decider.decide(request).decision:
                yield _entity(kind.type, thing)


def search_actions(
    decider: Decider, subject: Entity, resource: Entity, circumstances: Circumstances
) -> Iterator[Result]:
    """Yield the actions that a subject may do with a resource, without any properties of theirs."""
    kind = decider.mapping.resource_type(resource.type)
    for name in sorted(() if kind is None else kind.actions.meanings):
        request = decider.request_of(subject, ActionName(name=name), resource, circumstances.host)
        if not isinstance(request, Answer) and decider.decide(request).decision:
            yield {"name": name}


def candidates_of(decider: Decider) -> Iterator[str]:
    """Yield the principals of rules, and super users, each once; not User:*."""
    principals = {*decider.acls.principals(), *decider.super_users}
    return (principal for principal in principals if principal != WILDCARD_PRINCIPAL and ":" in principal)


def _has_properties(subjects: ForeignType, kind: Entity, thing: Thing, principal: str) -> bool:
    """Return whether an entity with the requested properties is this principal."""
    properties = {**dict(thing.properties), **kind.properties}
    match = subjects.forward(thing.id, properties)
    return match is not None and match[1] == principal


def _names(acls: AclsImage, kind: ResourceType) -> Iterator[str]:
    for pattern in acls.resource_patterns():
        is_name = pattern.pattern_type == PatternType.LITERAL and pattern.name != WILDCARD
        if is_name and pattern.resource_type == kind:
            yield pattern.name


def _entity(kind: str, thing: Thing) -> Result:
    properties = dict(thing.properties)
    return {"type": kind, "id": thing.id, **({"properties": properties} if properties else {})}


# Pages of search results: in one order, and each with a token for the next.


MOST_IN_PAGE = 1000
"""Results per page, unless the request has a lower limit."""


@frozen(kw_only=True)
class Page:
    """The requested page: its size, and the key after which it begins, which is None for the first page."""

    limit: int
    after: str | None
    digest: str
    """A digest of the request without its page: the next one must be the same."""


def parse_page(body: Mapping[str, Any]) -> Page:
    """Return the requested page.

    Raises:
        BadRequestError: it is invalid, or continues another request.

    """
    digest = sha256(json.dumps({**body, "page": None}, sort_keys=True).encode()).hexdigest()[:32]
    page = body.get("page")
    if page is None:
        return Page(limit=MOST_IN_PAGE, after=None, digest=digest)
    if not isinstance(page, dict):
        raise BadRequestError("page: expected an object")
    limit, token = page.get("limit"), page.get("token")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise BadRequestError("page.limit: expected a number, 0 or more")
    if token is None or token == "":
        return Page(limit=MOST_IN_PAGE if limit is None else min(limit, MOST_IN_PAGE), after=None, digest=digest)
    token_digest, size, after = _opened(token)
    if token_digest != digest or limit not in (None, size):
        raise BadRequestError("page.token: of another request: all but the token must be the same")
    return Page(limit=size, after=after, digest=digest)


def page_of(results: Iterable[Mapping[str, Any]], page: Page) -> dict[str, Any]:
    """Return the answer: the results of a page, sorted, and the token of the next one, empty on the last."""
    by_key = {json.dumps(each, sort_keys=True): each for each in results}
    keys = sorted(by_key)
    remaining = keys if page.after is None else [key for key in keys if key > page.after]
    page_keys = remaining[: page.limit]
    after = page_keys[-1] if page_keys else page.after or ""
    token = _token(page, after) if len(remaining) > len(page_keys) else ""
    return {
        "page": {"next_token": token, "count": len(page_keys), "total": len(keys)},
        "results": [by_key[key] for key in page_keys],
    }


def _token(page: Page, after: str) -> str:
    return urlsafe_b64encode(json.dumps([page.digest, page.limit, after]).encode()).decode()


def _opened(token: object) -> tuple[str, int, str]:
    try:
        digest, limit, after = json.loads(urlsafe_b64decode(str(token).encode()))
    except (ValueError, TypeError, RecursionError):
        raise BadRequestError("page.token: not one that a search answered") from None
    if (
        not isinstance(digest, str)
        or type(limit) is not int
        or not isinstance(after, str)
        or not 0 <= limit <= MOST_IN_PAGE
    ):
        raise BadRequestError("page.token: not one that a search answered")
    return digest, limit, after


# The Authorization API: bodies in, answers out, without HTTP.


Json = Mapping[str, Any]
EVALUATION, EVALUATIONS = "/access/v1/evaluation", "/access/v1/evaluations"
SEARCHES = {kind: f"/access/v1/search/{kind}" for kind in ("subject", "resource", "action")}
WELL_KNOWN = "/.well-known/authzen-configuration"
_MOMENTS = 8
"""Different moments of the past in one request: the whole state of each is held until it is answered."""


@define(eq=False, kw_only=True)
class AuthZen:
    """Answers requests; a state is read once per request, so that all of its answers come from one state."""

    state: Callable[[str | None], Decider]
    """Returns the decider of a moment, None for the newest. Raises NotReadyError; BadRequestError: no such moment."""
    existing: Callable[[], Mapping[int, Iterable[str]]] = field(default=dict)
    """Returns names that exist, by type of resource."""

    def evaluation(self, body: Json) -> Reply:
        """Answer one question. Raises BadRequestError, NotReadyError."""
        return _reply(_decided(body, self.state))

    def evaluations(self, body: Json) -> Reply:
        """Answer many questions, all of one moment from the same state. Raises as evaluation."""
        newest = self.state(None)
        past: dict[str, Decider | BadRequestError] = {}

        def decider_at(as_of: str) -> Decider:
            """Return the decider of a past moment. Raises BadRequestError."""
            if as_of not in past:
                if len(past) == _MOMENTS:
                    raise BadRequestError(f"context.as_of: expected at most {_MOMENTS} different ones in a request")
                past[as_of] = self._past(as_of)
            decider = past[as_of]
            if isinstance(decider, BadRequestError):
                raise BadRequestError(str(decider))
            return decider

        def state(as_of: str | None) -> Decider:
            """Return the decider of a moment."""
            return newest if as_of is None else decider_at(as_of)

        return evaluate_all(body, partial(_decided, state=state))

    def _past(self, as_of: str) -> Decider | BadRequestError:
        """Return the decider of a moment, or its error: determined once for all questions that name it."""
        try:
            return self.state(as_of)
        except BadRequestError as error:
            return BadRequestError(str(error))  # without the frames that the other one holds

    def search(self, kind: str, body: Json) -> Reply:
        """Answer a search for subjects, resources or actions. Raises as evaluation."""
        return Reply(text=json_text(self._results(kind, body)))

    def _results(self, kind: str, body: Json) -> Json:
        page, circumstances = parse_page(body), parse_context(body)
        subject = parse_entity(body, "subject", searched=kind == "subject")
        resource = parse_entity(body, "resource", searched=kind == "resource")
        if kind == "action":
            return page_of(search_actions(self.state(circumstances.as_of), subject, resource, circumstances), page)
        action = parse_action(body)
        decider = self.state(circumstances.as_of)
        if kind == "subject":
            return page_of(search_subjects(decider, subject, action, resource, circumstances), page)
        results = search_resources(decider, subject, action, resource, circumstances, self.existing())
        return page_of(results, page)


def _decided(body: Json, state: Callable[[str | None], Decider]) -> Decided:
    """Answer one question; `state` returns the decider of a moment, None being now. Raises as AuthZen.evaluation."""
    words = plain_words(body)
    decided = None if words is None else state(None).plainly_decided(words)
    if decided is not None:
        return decided
    question = parse_evaluation(body)
    decider = state(question.circumstances.as_of)
    answer = decider.evaluate(question)
    return answer.text(decider.offset), answer.decision


def _reply(decided: Decided) -> Reply:
    text, decision = decided
    return Reply.of_decision(text, decision=decision)


def metadata(base_url: str) -> Json:
    """Return the metadata document of the decision point; `base_url` is its identifier."""
    base = base_url.rstrip("/")
    return {
        "policy_decision_point": base,
        "access_evaluation_endpoint": f"{base}{EVALUATION}",
        "access_evaluations_endpoint": f"{base}{EVALUATIONS}",
        **{f"search_{kind}_endpoint": f"{base}{path}" for kind, path in SEARCHES.items()},
    }
