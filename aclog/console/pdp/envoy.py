"""Envoy's external authorization over HTTP: may the one whom a header names ask for this path by this method."""

from collections.abc import Callable, Sequence
from urllib.parse import unquote

from aclog.console.pdp.decider import Answer, Decider
from aclog.console.pdp.mapping import EnvoyMapping
from aclog.console.pdp.requests import ActionName, Circumstances, Entity, Evaluation

PREFIX = "/ext_authz"
_ODD = ("%25", "%2f", "%3b", "%5c", "%2e", "%00", "\\", "//")
"""What some servers read as a path of another name: decoded once more, or as a separator."""


def envoy_answer(
    mapping: EnvoyMapping | None,
    method: str,
    raw_path: str,
    subjects: Sequence[str],
    state: Callable[[str | None], Decider],
) -> tuple[Answer, int]:
    """Return whether a request may pass, and the offset of the state that says so.

    `raw_path` is as it was sent, `subjects` the values of the header, each byte a character (ISO 8859-1).

    Raises:
        NotReadyError: as AuthZen.evaluation.

    """
    decider = state(None)
    if mapping is None:
        return _no("the mapping has no key envoy"), decider.offset
    if len(subjects) != 1 or not subjects[0]:
        return _no(f"expected the header {mapping.header} once"), decider.offset
    path = raw_path.partition("?")[0].removeprefix(PREFIX)
    if _is_odd(path):
        return _no("the path has more than one reading"), decider.offset
    try:
        subject, name = subjects[0].encode("latin-1").decode(), unquote(path, errors="strict")
    except UnicodeError:
        return _no("the path or the header is not UTF-8"), decider.offset
    asked = Evaluation(
        subject=Entity(type=mapping.subject_type, id=subject),
        action=ActionName(name=method),
        resource=Entity(type=mapping.resource_type, id=name),
        circumstances=Circumstances(),
    )
    return decider.evaluate(asked), decider.offset


def _is_odd(path: str) -> bool:
    """Return whether servers may read a path differently; `..;x` is `..` for some."""
    segments = {segment.partition(";")[0] for segment in path.split("/")}
    return any(odd in path.lower() for odd in _ODD) or bool({"..", "."} & segments)


def _no(reason: str) -> Answer:
    return Answer(decision=False, rule=None, reason=reason)
