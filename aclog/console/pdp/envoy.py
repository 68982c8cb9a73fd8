"""Envoy's external authorization over HTTP: may the one whom a header names ask for this path by this method."""

from collections.abc import Callable, Sequence
from urllib.parse import unquote

from aclog.console.pdp.decider import Answer, Decider
from aclog.console.pdp.mapping import EnvoyMapping
from aclog.console.pdp.requests import ActionName, Circumstances, Entity, Evaluation

PREFIX = "/ext_authz"
_ODD = ("%2f", "%5c", "%2e", "%00", "\\", "//")
"""What some servers read as a path of another name."""


def envoy_answer(
    mapping: EnvoyMapping | None,
    method: str,
    raw_path: str,
    subjects: Sequence[str],
    state: Callable[[str | None], Decider],
) -> Answer:
    """Return whether a request may pass; `raw_path` as it was sent, `subjects` the values of the header.

    Raises:
        NotReadyError: as AuthZen.evaluation.

    """
    if mapping is None:
        return _no("the mapping has no key envoy")
    if len(subjects) != 1 or not subjects[0]:
        return _no(f"expected the header {mapping.header} once")
    path = raw_path.partition("?")[0].removeprefix(PREFIX)
    if any(odd in path.lower() for odd in _ODD) or {"..", "."} & set(path.split("/")):
        return _no("the path has more than one reading")
    try:
        name = unquote(path, errors="strict")
    except UnicodeDecodeError:
        return _no("the path is not UTF-8")
    asked = Evaluation(
        subject=Entity(type=mapping.subject_type, id=subjects[0]),
        action=ActionName(name=method),
        resource=Entity(type=mapping.resource_type, id=name),
        circumstances=Circumstances(),
    )
    return state(None).evaluate(asked)


def _no(reason: str) -> Answer:
    return Answer(decision=False, rule=None, reason=reason)
