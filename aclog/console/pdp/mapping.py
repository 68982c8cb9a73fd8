"""Mappings of foreign subjects, resources and actions to Kafka's."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from math import isfinite
from pathlib import Path
from typing import Any, Generic, TypeVar

from attrs import evolve, field

from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.yaml_nodes import parse_documents
from aclog.terminal.columns import json_text

# Cases of a mapping: the meaning of a foreign entity, by its properties; the first matching case decides.


_T = TypeVar("_T")

Properties = Mapping[str, Any]


@frozen(kw_only=True)
class Case(Generic[_T]):
    """The meaning of an entity with these properties; without any, always."""

    to: _T
    when: Properties = field(factory=dict)

    def fits(self, properties: Properties) -> bool:
        """Return whether a thing with these properties is of this case."""
        if not self.when:
            return True
        return all(key in properties and _equal(properties[key], value) for key, value in self.when.items())


@frozen
class Cases(Generic[_T]):
    """Cases in order."""

    cases: Sequence[Case[_T]]

    def first(self, properties: Properties) -> Case[_T] | None:
        """Return the case of a thing with these properties; None if it is of none."""
        for case in self.cases:
            if case.fits(properties):
                return case
        return None

    def __iter__(self) -> Iterator[Case[_T]]:
        return iter(self.cases)


def unreachable_cases(cases: Sequence[Case[_T]]) -> Iterator[str]:
    """Yield which cases never count, such as one after a case that fits always.

    Exact: if an entity matches a case, and has no other properties, it matches an earlier one only if that one requires
    no more than this case.
    """
    for number, case in enumerate(cases):
        for earlier in cases[:number]:
            if all(key in case.when and _equal(case.when[key], value) for key, value in earlier.when.items()):
                yield f"case {number + 1} never counts: an earlier one fits whenever it does"
                break


def check_json(value: object, where: str) -> None:
    """Refuse values that no question can have: the next, wider case would decide. Raises ConfigError."""
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise ConfigError(f"{where}: the key {str(key)[:80]} is no text: expected quotes around it")
            check_json(each, f"{where}: {key[:80]}")
    elif isinstance(value, list):
        for each in value:
            check_json(each, where)
    elif isinstance(value, float) and not isfinite(value):
        raise ConfigError(f"{where}: {value} is not a JSON number: no request can have it")
    elif value is not None and not isinstance(value, str | int | float):
        kind = type(value).__name__
        raise ConfigError(f"{where}: {str(value)[:80]} is a {kind}, not a JSON value: expected quotes around it")


def _equal(one: object, other: object) -> bool:
    """Return whether two values of JSON are the same; true is not 1, nor is it in lists and objects."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(value, other[key]) for key, value in one.items())
    return (type(one) is type(other) and one == other) or (_is_number(one) and _is_number(other) and one == other)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# Templates such as `User:{id}+admin`: from a foreign id to a name of ours, and back.


_ID = "{id}"


@frozen
class Template:
    """A text with `{id}` in it, once."""

    before: str
    after: str

    @classmethod
    def parse(cls, text: str, where: str) -> "Template":
        """Return a template. Raises ConfigError: `{id}` is not in it exactly once."""
        before, marker, after = text.partition(_ID)
        if not marker or _ID in after:
            raise ConfigError(f"{where}: {text[:80]!r}: expected {_ID} in it, once: names have to be mapped back")
        return cls(before, after)

    def __str__(self) -> str:
        return f"{self.before}{_ID}{self.after}"

    def name_of(self, foreign: str) -> str:
        """Return the name for a foreign id."""
        return f"{self.before}{foreign}{self.after}"

    def id_of(self, name: str) -> str | None:
        """Return the foreign id that a name is of; None if it is of none."""
        is_of = name.startswith(self.before) and name.endswith(self.after)
        if not is_of or len(name) <= len(self.before) + len(self.after):
            return None
        return name[len(self.before) : len(name) - len(self.after)]

    def has_names_below(self, prefix: str) -> bool:
        """Return whether a name that begins so may be one of this template."""
        return self.before.startswith(prefix) or prefix.startswith(self.before)

    def meets(self, other: "Template") -> bool:
        """Return whether a name may be one of both."""
        befores, afters = sorted((self.before, other.before), key=len), sorted((self.after, other.after), key=len)
        return befores[1].startswith(befores[0]) and afters[1].endswith(afters[0])

    def hides(self, other: "Template") -> bool:
        """Return whether every name of another template is also a name of this one."""
        return other.before.startswith(self.before) and other.after.endswith(self.after)


# Foreign subjects, resources and actions in Kafka's terms, and back.
#
# By default a type is a type of principal or of resource, an id a name, and an action an operation. A mapping changes
# this: a subject's type is a principal's type or cases of templates; a resource's type a type of resource or
# cases; an action of a type of resource is an operation or cases. Anything that is not mapped is denied.
#
# A word (a type or an action) is looked up in one function, `Words.get`, which returns its meaning: its callers
# need the word no more, so that no two steps of a decision can read it differently.


_KEYS = ("subject", "resource", "action", "case", "envoy")
_CASES = ("exact", "any")
_LONGEST = 256
"""Characters of a type of principal that no mapping names."""
_HEADER = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
"""Characters of the name of a header (RFC 9110, 5.6.2)."""


@frozen(kw_only=True)
class Words(Generic[_T]):
    """The words of one kind, and the meaning of each. Words are ASCII.

    A dotless i (U+0131) and a long s (U+017F) are ASCII letters in capitals only: no word with one is any of these.
    """

    meanings: Mapping[str, _T]
    """By the canonical form: as the mapping, or Kafka, writes the word."""
    any_case: bool = False
    """Whether every case of a word is that word."""
    is_kafkas: bool = False
    """Whether these are Kafka's own words, which are also accepted in small letters: `topic` is TOPIC."""
    _spellings: Mapping[str, str] = field(init=False, eq=False)
    """Canonical forms, by accepted spelling; in capitals if case does not count."""

    @_spellings.default
    def _all_spellings(self) -> dict[str, str]:
        spellings = {self._folded(word): word for word in self.meanings}
        if self.is_kafkas and not self.any_case:
            spellings |= {word.lower(): word for word in self.meanings}
        return spellings

    def canonical(self, word: str) -> str | None:
        """Return the canonical form of a word; None: an unknown word."""
        return self._spellings.get(self._folded(word))

    def get(self, word: str) -> _T | None:
        """Return the meaning of a word; None: an unknown word."""
        canonical = self.canonical(word)
        return None if canonical is None else self.meanings[canonical]

    def spellings(self, canonical: str) -> list[str]:
        """Return how a word may be written, if case counts."""
        return [canonical, canonical.lower()] if self.is_kafkas else [canonical]

    def why_not(self, word: str) -> str:
        """Return a hint for an unknown word, as the end of a sentence; empty if it resembles no known word."""
        if not word.isascii():
            return ": expected ASCII"
        if self.canonical(word) is not None:
            return ""
        near = next((each for each in self.meanings if each.upper() == word.upper()), None)
        return "" if near is None else f": did you mean {near!r}?"

    def _folded(self, word: str) -> str:
        return word.upper() if self.any_case and word.isascii() else word


_OPERATIONS = Words(meanings={each.name: each for each in AclOperation if each > AclOperation.ALL}, is_kafkas=True)
_TYPES = Words(meanings={each.name: each for each in ResourceType if each > ResourceType.ANY}, is_kafkas=True)
_NO_ACTIONS: Words[Cases[AclOperation]] = Words(meanings={})


@frozen
class Target:
    """The target of a foreign entity: the template of its name, and its type of resource (UNKNOWN: a principal)."""

    template: Template
    resource_type: ResourceType = ResourceType.UNKNOWN

    def __str__(self) -> str:
        is_principal = self.resource_type is ResourceType.UNKNOWN
        return f"{self.template}" if is_principal else f"{self.resource_type.name}:{self.template}"

    def is_rival(self, other: "Target") -> bool:
        """Return whether names may be of both targets, and the other is neither the same nor wider."""
        own, theirs = self.template, other.template
        return self.resource_type == other.resource_type and own.meets(theirs) and not theirs.hides(own)


@frozen
class Thing:
    """A foreign entity in search results: its id, and the properties that distinguish it from others with this id."""

    id: str
    properties: tuple[tuple[str, Any], ...] = ()


@frozen(kw_only=True)
class EnvoyMapping:
    """The request of Envoy: the subject in a header, and the path as a resource."""

    subject_type: str
    header: str
    resource_type: str


@frozen(kw_only=True, eq=False)
class ForeignType:
    """A type of subjects or of resources, and the actions on it."""

    name: str
    """The canonical word."""
    cases: Cases[Target]
    rivals: Sequence[Target] = ()
    """Targets of other types that may share names with this one."""
    actions: Words[Cases[AclOperation]] = _NO_ACTIONS
    """None of subjects, and of a resource that `action` does not name."""
    only: Target | None = field(init=False)
    """The target of every thing of this type; None if properties, or names of other types, may count."""

    @only.default
    def _only_target(self) -> Target | None:
        first, *others = self.cases
        return None if others or first.when or self.rivals else first.to

    def forward(self, foreign: str, properties: Properties) -> tuple[Target, str] | None:
        """Return the target and the name of a thing; None if it is not mapped.

        A name that would be read back as another thing is not mapped either: an id `bob+admin` must not be taken for a
        `bob` with the role admin, nor, where services are `User:svc-{id}`, a user `svc-billing` for the service.
        """
        case = self.cases.first(properties)
        if case is None or not foreign:
            return None
        name = case.to.template.name_of(foreign)
        if len(self.cases.cases) > 1 and self._of_name(case.to, name) != (case, foreign):
            return None
        return None if self._is_of_another(case.to, name) else (case.to, name)

    def forward_prefix(self, prefix: str, properties: Properties) -> tuple[Target, str] | None:
        """Return the target and the prefix of all things whose ids begin so.

        None if it is not mapped, if their names are no prefix, or if one of them would be read back as another thing.
        """
        case = self.cases.first(properties)
        if case is None or case.to.template.after:
            return None
        name = case.to.template.name_of(prefix)
        earlier = takewhile(lambda each: each is not case, self.cases)
        rivals = [each.to for each in earlier if each.to.resource_type == case.to.resource_type]
        rivals += filter(case.to.is_rival, self.rivals)
        if any(each.template.has_names_below(name) for each in rivals):
            return None
        return case.to, name

    def backward(self, target: Target | None, name: str) -> Thing | None:
        """Return the thing that has this name, of a target that fits; None if none has."""
        match = self._of_name(target or self.cases.cases[0].to, name)
        if match is None or self._is_of_another(match[0].to, name):
            return None
        return Thing(match[1], tuple(match[0].when.items()))

    def operation(self, action: str, properties: Properties) -> AclOperation | None:
        """Return the operation of an action; None if it is not mapped."""
        cases = self.actions.get(action)
        case = None if cases is None else cases.first(properties)
        return None if case is None else case.to

    def _is_of_another(self, target: Target, name: str) -> bool:
        """Return whether a name of a target of this type is also a name of another type."""
        return any(each.template.id_of(name) is not None and target.is_rival(each) for each in self.rivals)

    def _of_name(self, target: Target, name: str) -> tuple[Case[Target], str] | None:
        for case in self.cases:
            if case.to.resource_type == target.resource_type:
                foreign = case.to.template.id_of(name)
                if foreign is not None:
                    return case, foreign
        return None


@define(eq=False, kw_only=True)
class Mapped:
    """A whole mapping."""

    subjects: Words[ForeignType] | None
    """None: every type of a principal is its own."""
    resources: Words[ForeignType]
    closed: bool
    """Whether the key `action` is present: then types that it does not name have no actions."""
    envoy: EnvoyMapping | None = None
    """None: Envoy's questions are not answered."""

    def subject_type(self, word: str) -> ForeignType | None:
        """Return the type of subjects that a word means; None if it is not mapped."""
        return _principals(word) if self.subjects is None else self.subjects.get(word)

    def resource_type(self, word: str) -> ForeignType | None:
        """Return the type of resources that a word means; None if it is not mapped."""
        return self.resources.get(word)


def parse_mapping(value: object, where: str, *, unreachable: list[str] | None = None) -> Mapped:
    """Return the mapping in an object of JSON or YAML; an empty one is the default.

    `unreachable`: a list that collects cases that never count, which are otherwise an error.

    Raises:
        ConfigError: an invalid value, a case that never counts, or an ambiguous mapping back.

    """
    problems: list[str] = []
    mapped = _Reader(where=where, any_case=_any_case(value, where), unreachable=problems).mapping(value)
    if unreachable is not None:
        unreachable.extend(problems)
    elif problems:
        raise ConfigError(problems[0])
    return mapped


def default_mapping() -> Mapped:
    """Return the mapping to Kafka's own terms."""
    return parse_mapping({}, "default")


@lru_cache(maxsize=64)
def _principals(word: str) -> ForeignType | None:
    if not word or len(word) > _LONGEST or ":" in word or not word.isascii():
        return None
    return ForeignType(name=word, cases=Cases((Case(to=Target(Template(f"{word}:", ""))),)))


def _any_case(value: object, where: str) -> bool:
    text = _table(value, where, _KEYS).get("case", _CASES[0])
    if text not in _CASES:
        raise ConfigError(f"{where}: case: {str(text)[:80]!r}: expected {' or '.join(_CASES)}")
    return bool(text == _CASES[1])


@frozen(kw_only=True)
class _Reader:
    """Reads one mapping."""

    where: str
    any_case: bool
    unreachable: list[str]

    def mapping(self, value: object) -> Mapped:
        table = _table(value, self.where, _KEYS)
        subjects = self._entities(table["subject"], f"{self.where}: subject", _subject) if "subject" in table else None
        resources = (
            self._words(
                self._entities(table["resource"], f"{self.where}: resource", _resource), f"{self.where}: resource"
            )
            if "resource" in table
            else evolve(_default_resources(), any_case=self.any_case)
        )
        resources = self._with_actions(resources, table.get("action"), is_closed="action" in table)
        mapped = Mapped(
            subjects=None if subjects is None else self._words(subjects, f"{self.where}: subject"),
            resources=resources,
            closed="action" in table,
        )
        if "envoy" in table:
            mapped.envoy = _envoy(table["envoy"], mapped, f"{self.where}: envoy")
        return mapped

    def _entities(self, value: object, where: str, target: Callable[[str, str], Target]) -> dict[str, ForeignType]:
        cases = {kind: self._cases(each, f"{where}: {kind}", target) for kind, each in _table(value, where).items()}
        for kind, each in cases.items():
            self.unreachable.extend(_hidden_cases(each.cases, f"{where}: {kind}"))
        return {kind: ForeignType(name=kind, cases=each, rivals=_rivals(kind, cases)) for kind, each in cases.items()}

    def _with_actions(self, resources: Words[ForeignType], value: object, *, is_closed: bool) -> Words[ForeignType]:
        """Return the types with their actions: Kafka's operations, unless the mapping has the key `action`."""
        if not is_closed:
            operations = {name: Cases((Case(to=each),)) for name, each in _OPERATIONS.meanings.items()}
            words = Words(meanings=operations, is_kafkas=True, any_case=self.any_case)
            return _with_meanings(resources, dict.fromkeys(resources.meanings, words))
        actions: dict[str, Words[Cases[AclOperation]]] = {}
        where = f"{self.where}: action"
        for word, table in _table(value, where).items():
            kind = resources.canonical(_word(word, where))
            if kind is None:
                some = ", ".join(sorted(resources.meanings)[:10])
                raise ConfigError(f"{where}: {word}: there is no such resource: expected one of {some}")
            if kind in actions:
                raise ConfigError(f"{where}: {word}: duplicate resource {kind}")
            place = f"{where}: {word}"
            cases = {
                name: self._cases(each, f"{place}: {name}", _operation) for name, each in _table(table, place).items()
            }
            actions[kind] = self._words(cases, place)
        return _with_meanings(resources, {name: actions.get(name, _NO_ACTIONS) for name in resources.meanings})

    def _cases(self, value: object, where: str, target: Callable[[str, str], _T]) -> Cases[_T]:
        if isinstance(value, str):
            return Cases((Case(to=target(value, where)),))
        if not isinstance(value, list) or not value:
            raise ConfigError(f'{where}: expected a text, or cases such as [{{"when":{{"role":"admin"}},"to":"..."}}]')
        cases = []
        for number, each in enumerate(value, 1):
            place = f"{where}: case {number}"
            table = _table(each, place, ("when", "to"))
            to = table.get("to")
            if not isinstance(to, str):
                raise ConfigError(f"{place}: expected the key to with a text")
            when = _table(table.get("when", {}), f"{place}: when")
            check_json(when, f"{place}: when")
            cases.append(Case(to=target(to, place), when=when))
        self.unreachable.extend(f"{where}: {why}" for why in unreachable_cases(cases))
        return Cases(tuple(cases))

    def _words(self, meanings: Mapping[str, _T], where: str) -> Words[_T]:
        """Return the words of a table. Raises ConfigError: one is not ASCII, or two are the same in another case."""
        words = Words(meanings={_word(word, where): each for word, each in meanings.items()}, any_case=self.any_case)
        for word in meanings:
            if (same := words.canonical(word)) != word:
                raise ConfigError(f"{where}: {word} and {same} are one word, as case is any")
        return words


def _rivals(kind: str, types: Mapping[str, Cases[Target]]) -> Sequence[Target]:
    others = [each.to for name, cases in types.items() if name != kind for each in cases]
    return [other for other in others if any(case.to.is_rival(other) for case in types[kind])]


def _with_meanings(
    resources: Words[ForeignType], actions: Mapping[str, Words[Cases[AclOperation]]]
) -> Words[ForeignType]:
    meanings = {name: evolve(kind, actions=actions[name]) for name, kind in resources.meanings.items()}
    return evolve(resources, meanings=meanings)


def _default_resources() -> Words[ForeignType]:
    return Words(
        meanings={
            name: ForeignType(name=name, cases=Cases((Case(to=Target(Template("", ""), kind)),)))
            for name, kind in _TYPES.meanings.items()
        },
        is_kafkas=True,
    )


def _envoy(value: object, mapped: Mapped, where: str) -> EnvoyMapping:
    table = _table(value, where, ("subject", "header", "resource"))
    texts = [table.get(key) for key in ("subject", "header", "resource")]
    if not all(isinstance(text, str) and text for text in texts):
        raise ConfigError(f"{where}: expected the keys subject and resource with types, and header with a name")
    subject, header, resource = map(str, texts)
    if not _HEADER.issuperset(header.lower()):
        raise ConfigError(f"{where}: header: {header[:80]!r}: expected the name of a header, such as x-user")
    if mapped.subject_type(subject) is None:
        raise ConfigError(f"{where}: subject: {subject[:80]!r}: there is no such subject in the mapping")
    if mapped.resource_type(resource) is None:
        why = mapped.resources.why_not(resource)
        raise ConfigError(f"{where}: resource: {resource[:80]!r}: there is no such resource in the mapping{why}")
    return EnvoyMapping(subject_type=subject, header=header.lower(), resource_type=resource)


def _hidden_cases(cases: Sequence[Case[Target]], where: str) -> Iterator[str]:
    """Yield the cases whose names an earlier case would read back as its own."""
    for number, case in enumerate(cases):
        for earlier in cases[:number]:
            is_same = earlier.to.resource_type == case.to.resource_type
            if is_same and earlier.to.template.hides(case.to.template):
                yield (
                    f"{where}: {case.to} cannot be distinguished from {earlier.to} when it is mapped back: expected "
                    "the narrower one first"
                )
                break


def _subject(text: str, where: str) -> Target:
    template = Template.parse(text if "{" in text or ":" in text else f"{text}:{{id}}", where)
    if ":" not in template.before:
        raise ConfigError(f"{where}: {text[:80]!r}: expected a type of principal before the id, such as User:{{id}}")
    return Target(template)


def _resource(text: str, where: str) -> Target:
    word, colon, name = text.partition(":")
    kind = _TYPES.get(word)
    if kind is None:
        names = ", ".join(_TYPES.meanings)
        raise ConfigError(
            f"{where}: {text[:80]!r}: expected one of {names}, alone or with :{{id}}{_TYPES.why_not(word)}"
        )
    return Target(Template.parse(name, where) if colon else Template("", ""), kind)


def _operation(text: str, where: str) -> AclOperation:
    operation = _OPERATIONS.get(text)
    if operation is None:
        names = ", ".join(_OPERATIONS.meanings)
        raise ConfigError(f"{where}: {text[:80]!r}: expected one of {names}{_OPERATIONS.why_not(text)}")
    return operation


def _word(word: str, where: str) -> str:
    """Return a type or an action as it is. Raises ConfigError: no question can have it, or two that look the same."""
    if not word or not word.isascii() or not word.isprintable() or word != word.strip():
        raise ConfigError(f"{where}: {word[:80]!r}: expected a word of ASCII, without blanks around it")
    return word


def _table(value: object, where: str, keys: Sequence[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ConfigError(f"{where}: expected an object")
    for key in value:
        if keys is not None and key not in keys:
            raise ConfigError(f"{where}: {key[:80]!r}: expected {' or '.join(keys)}")
    return value


# The errors of a decision point.


class BadRequestError(Exception):
    """An invalid request; its text has the reason, and contains no secret."""


class NotReadyError(Exception):
    """There is no state to decide from, or none that is fresh enough."""


# A mapping as lines of text: the meaning of each word, and its rejected spellings.


def mapping_lines(mapping: Mapped) -> Iterator[str]:
    """Yield the meaning of each type and action, then the rejected spellings, in the order of the file."""
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
    """Return the usual spellings of words in another case that are not accepted."""
    spellings = {}
    for word in words.meanings:
        usual = dict.fromkeys((word.upper(), word.lower(), word.capitalize()))
        if rejected := [each for each in usual if words.canonical(each) is None]:
            spellings[word] = rejected
    return spellings


# JSON bodies as I-JSON (RFC 7493): input that two parsers could read differently is refused.


MOST_BYTES = 4 << 20
_DEEPEST = 32
_BEFORE_COLONS = (b'":', b" :", b"\t:", b"\n:", b"\r:")


def parse_body(data: bytes | bytearray) -> dict[str, Any]:
    """Return the object in a body.

    Raises:
        BadRequestError: not UTF-8, not JSON, not an object, a duplicate key, an invalid number, or nested too deeply.

    """
    usual = _usual(data)
    if usual is not None:
        return usual
    if not data.strip():
        raise BadRequestError("the body is empty: expected a JSON object")
    try:
        text = data.decode()
        value = json.loads(text, object_pairs_hook=_once, parse_float=_number, parse_constant=_number)
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode()  # fails on half of a pair of surrogates
    except UnicodeDecodeError:
        raise BadRequestError("the body is not UTF-8") from None
    except UnicodeEncodeError:
        raise BadRequestError("not JSON: half of a pair of surrogates") from None
    except json.JSONDecodeError as error:
        raise BadRequestError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"not JSON: {str(error)[:80]}") from None
    if not isinstance(value, dict):
        raise BadRequestError("expected a JSON object")
    if any(depth == _DEEPEST for depth, _ in enumerate(levels(value))):
        raise BadRequestError(f"the body is nested more than {_DEEPEST} deep")
    return value


def _usual(data: bytes | bytearray) -> dict[str, Any] | None:
    """Return the object in a body; None: it is invalid, or only a check of each object shows that it is not.

    A third of the time: objects are made without a call for each. Every member has a colon after its name, with a
    quote or a blank before: if there are as many of these as members, no name of an object occurred twice.
    """
    if b"\\" in data:  # a quote in a text, or half of a pair of surrogates
        return None
    try:
        value = json.loads(data.decode(), parse_float=_number, parse_constant=_number)
    except (ValueError, RecursionError):
        return None
    if type(value) is not dict:
        return None
    members = 0
    for depth, level in enumerate(levels(value)):
        if depth == _DEEPEST:
            return None
        members += sum([len(each) for each in level if type(each) is dict])
    is_unique = data.count(b":") == members or sum(map(data.count, _BEFORE_COLONS)) == members
    return value if is_unique else None


def levels(value: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield the objects and arrays of each level of nesting, from that of the value itself on."""
    level: list[Any] = [value]
    while level:
        yield level
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("duplicate key")
    return members


def _number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:80]} is not a JSON number")
    return number


# Mapping files: JSON, or YAML 1.2 with JSON's values: `NO` and `12:30` are texts.


_MOST_BYTES = 1 << 20


def read_mapping(path: Path | None, *, unreachable: list[str] | None = None) -> Mapped:
    """Return the mapping of a file; without one the default. `unreachable`: as of `parse_mapping`.

    Raises:
        ConfigError: it is too large, or not a mapping; with its location in the file if known.
        OSError: the file cannot be read.

    """
    if path is None:
        return default_mapping()
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{path}: larger than {_MOST_BYTES:,} bytes: no mapping")
    return parse_mapping(_value(data, path), str(path), unreachable=unreachable)


def _value(data: bytes, path: Path) -> Any:
    try:
        return parse_body(data)
    except BadRequestError:  # YAML; or the JSON error, with its line
        documents = parse_documents(data, str(path), core=True)
    if len(documents) != 1:
        raise ConfigError(f"{path}: expected one document with subject, resource and action")
    return _plain(documents[0])


def _plain(node: Node) -> Any:
    """Return a node as JSON's values."""
    if isinstance(node.value, tuple):
        return [_plain(each) for each in node.value]
    if isinstance(node.value, dict):
        return {key: _plain(each) for key, each in node.value.items()}
    return node.value
