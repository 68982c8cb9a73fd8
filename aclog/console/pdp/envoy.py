"""Envoy's external authorization over HTTP: may the one whom a header names ask for this path by this method."""

import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote

from aclog.console.pdp.decider import Answer, Decider
from aclog.console.pdp.mapping import EnvoyMapping
from aclog.console.pdp.requests import ActionName, Circumstances, Entity, Evaluation

PREFIX = "/ext_authz"
_ODD = ("%25", "%2f", "%3b", "%5c", "%2e", ";", "#", "\\", "//")
"""What some servers read as a path of another name: decoded once more, as a separator, or as what is cut off."""
_BROKEN = re.compile("%(?![0-9a-f]{2})")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


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
    if not raw_path.startswith(f"{PREFIX}/"):  # the prefix itself with escapes, or after a host
        return _no("the path has more than one reading"), decider.offset
    try:
        subject, name = subjects[0].encode("latin-1").decode(), unquote(path, errors="strict")
    except UnicodeError:
        return _no("the path or the header is not UTF-8"), decider.offset
    if _is_odd(path.lower(), name):
        return _no("the path has more than one reading"), decider.offset
    asked = Evaluation(
        subject=Entity(type=mapping.subject_type, id=subject),
        action=ActionName(name=method),
        resource=Entity(type=mapping.resource_type, id=name),
        circumstances=Circumstances(),
    )
    return decider.evaluate(asked, exact=True), decider.offset


def _is_odd(path: str, name: str) -> bool:
    """Return whether servers may read a path, in lower case, as another name than it has once it is decoded."""
    is_broken = _BROKEN.search(path) is not None or _CONTROL.search(name) is not None
    return is_broken or any(odd in path for odd in _ODD) or not {"..", "."}.isdisjoint(path.split("/"))


def _no(reason: str) -> Answer:
    return Answer(decision=False, rule=None, reason=reason)
