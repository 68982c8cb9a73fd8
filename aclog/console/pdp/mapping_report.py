"""A mapping as lines for people: what each word becomes, and which spellings of it are rejected."""

from collections.abc import Iterator, Mapping
from typing import Any

from aclog.console.pdp.cases import Cases
from aclog.console.pdp.mapping import ForeignType, Mapped, Words
from aclog.terminal.json_text import json_text


def mapping_lines(mapping: Mapped) -> Iterator[str]:
    """Yield what each type and action becomes, then the spellings that are rejected, in the order of the file."""
    if mapping.subjects is None:
        yield "subject TYPE: TYPE:{id}, of every type of principal in ASCII, as it is written"
    else:
        for kind in mapping.subjects.meanings.values():
            yield from _case_lines(f"subject {kind.name}", kind.cases)
    if mapping.closed or not mapping.resources.is_kafkas:
        for kind in mapping.resources.meanings.values():
            yield from _resource_lines(kind, mapping)
    else:
        yield from _default_lines(mapping.resources)
    if mapping.envoy is not None:
        subject, resource = mapping.envoy.subject_type, mapping.envoy.resource_type
        yield f"envoy: the header {mapping.envoy.header} names the subject {subject}, a path is of {resource}"
    yield from _rejected_lines(mapping)


def _resource_lines(kind: ForeignType, mapping: Mapped) -> Iterator[str]:
    yield from _case_lines(f"resource {_words(mapping.resources, kind.name)}", kind.cases)
    if kind.actions.is_kafkas:
        yield f"  every action: the operation of that name: {', '.join(kind.actions.meanings)}"
    elif not kind.actions.meanings:
        yield "  no action: `action` does not name it, so that nothing is allowed on it"
    for name, cases in () if kind.actions.is_kafkas else kind.actions.meanings.items():
        yield from _case_lines(f"  action {name}", cases)


def _default_lines(resources: Words[ForeignType]) -> Iterator[str]:
    for kind in resources.meanings.values():
        yield from _case_lines(f"resource {_words(resources, kind.name)}", kind.cases)
    first = next(iter(resources.meanings.values()))
    yield f"every action on these: the operation of that name: {', '.join(first.actions.meanings)}"


def _case_lines(what: str, cases: Cases[Any]) -> Iterator[str]:
    indent = " " * (len(what) - len(what.lstrip()))
    if len(cases.cases) == 1 and not cases.cases[0].when:
        yield f"{what}: {cases.cases[0].to}"
        return
    yield f"{what}:"
    for case in cases:
        yield f"{indent}  {f'when {json_text(case.when)}' if case.when else 'otherwise'}: {case.to}"
    if cases.cases[-1].when:
        yield f"{indent}  otherwise: not mapped"


def _words(words: Words[Any], canonical: str) -> str:
    return ", ".join(dict.fromkeys(words.spellings(canonical)))


def _rejected_lines(mapping: Mapped) -> Iterator[str]:
    tables: dict[str, Words[Any]] = {"resource": mapping.resources}
    if mapping.subjects is not None:
        tables = {"subject": mapping.subjects, **tables}
    for kind in mapping.resources.meanings.values():
        tables.setdefault("action" if kind.actions.is_kafkas else f"action of {kind.name}", kind.actions)
    yield f"case: {'any: every case of these words is accepted' if mapping.resources.any_case else 'exact'}"
    for what, words in tables.items():
        for word, rejected in _rejected(words).items():
            yield f"rejected: {what} {', '.join(rejected)}: not {word}"
    yield "rejected: every other word, and every word that is not ASCII"


def _rejected(words: Words[Any]) -> Mapping[str, list[str]]:
    """Return the usual spellings of words in another case that mean none of them."""
    found = {}
    for word in words.meanings:
        usual = dict.fromkeys((word.upper(), word.lower(), word.capitalize()))
        if rejected := [each for each in usual if words.canonical(each) is None]:
            found[word] = rejected
    return found
