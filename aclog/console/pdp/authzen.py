"""The Authorization API: bodies in, answers out, without HTTP."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import define, field

from aclog.console.pdp.batch import evaluate_all
from aclog.console.pdp.decider import Decider
from aclog.console.pdp.errors import BadRequestError
from aclog.console.pdp.paging import page_of, parse_page
from aclog.console.pdp.reply import Reply
from aclog.console.pdp.requests import Evaluation, parse_action, parse_context, parse_entity, parse_evaluation
from aclog.console.pdp.search import search_actions, search_resources, search_subjects
from aclog.terminal.json_text import json_text

Json = Mapping[str, Any]
EVALUATION, EVALUATIONS = "/access/v1/evaluation", "/access/v1/evaluations"
SEARCHES = {kind: f"/access/v1/search/{kind}" for kind in ("subject", "resource", "action")}
WELL_KNOWN = "/.well-known/authzen-configuration"
_MOMENTS = 8
"""Different moments of the past in one request: the whole state of each is held until it is answered."""


@define(eq=False, kw_only=True)
class AuthZen:
    """Answers requests; a state is asked for with each, so that one request is answered from one state."""

    state: Callable[[str | None], Decider]
    """Returns what decides at a moment, None for the newest. Raises NotReadyError; BadRequestError: no such moment."""
    existing: Callable[[], Mapping[int, Iterable[str]]] = field(default=dict)
    """Returns names that are known to exist, by type of resource."""

    def evaluation(self, body: Json) -> Reply:
        """Answer one question. Raises BadRequestError, NotReadyError."""
        asked = parse_evaluation(body)
        return _told(self.state(asked.circumstances.as_of), asked)

    def evaluations(self, body: Json) -> Reply:
        """Answer many questions, all of one moment from the same state. Raises as evaluation."""
        newest = self.state(None)
        past: dict[str, Decider | BadRequestError] = {}

        def decider_at(as_of: str) -> Decider:
            """Return what decides at a moment of the past. Raises BadRequestError."""
            if as_of not in past:
                if len(past) == _MOMENTS:
                    raise BadRequestError(f"context.as_of: expected at most {_MOMENTS} different ones in a request")
                past[as_of] = self._past(as_of)
            found = past[as_of]
            if isinstance(found, BadRequestError):
                raise BadRequestError(str(found))
            return found

        def evaluate(one: Json) -> Reply:
            """Answer one of them."""
            asked = parse_evaluation(one)
            as_of = asked.circumstances.as_of
            return _told(newest if as_of is None else decider_at(as_of), asked)

        return evaluate_all(body, evaluate)

    def _past(self, as_of: str) -> Decider | BadRequestError:
        """Return what decides at a moment, or why nothing does: asked for once, however many questions name it."""
        try:
            return self.state(as_of)
        except BadRequestError as error:
            return BadRequestError(str(error))  # without the frames that the other one holds

    def search(self, kind: str, body: Json) -> Reply:
        """Answer a search for subjects, resources or actions. Raises as evaluation."""
        return Reply(text=json_text(self._found(kind, body)))

    def _found(self, kind: str, body: Json) -> Json:
        page, given = parse_page(body), parse_context(body)
        subject = parse_entity(body, "subject", searched=kind == "subject")
        resource = parse_entity(body, "resource", searched=kind == "resource")
        if kind == "action":
            return page_of(search_actions(self.state(given.as_of), subject, resource, given), page)
        action = parse_action(body)
        decider = self.state(given.as_of)
        if kind == "subject":
            return page_of(search_subjects(decider, subject, action, resource, given), page)
        found = search_resources(decider, subject, action, resource, given, self.existing())
        return page_of(found, page)


def _told(decider: Decider, asked: Evaluation) -> Reply:
    answer = decider.evaluate(asked)
    return Reply.of_decision(answer.text(decider.offset), decision=answer.decision)


def metadata(base_url: str) -> Json:
    """Return the document that tells where the decision point is; `base_url` is its identifier."""
    base = base_url.rstrip("/")
    return {
        "policy_decision_point": base,
        "access_evaluation_endpoint": f"{base}{EVALUATION}",
        "access_evaluations_endpoint": f"{base}{EVALUATIONS}",
        **{f"search_{kind}_endpoint": f"{base}{path}" for kind, path in SEARCHES.items()},
    }
