"""What foreign subjects, resources and actions are in Kafka's terms, and back.

By default a type is a type of principal or of resource, an id a name, and an action an operation. A mapping says
otherwise: a subject's type is a principal's type or cases of templates; a resource's type a type of resource or cases;
an action of a type of resource is an operation or cases. What is not mapped is not allowed.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Any

from attrs import define, frozen

from aclog.authorizer.acl import AclOperation, ResourceType
from aclog.console.pdp.cases import Case, Cases, Properties, check_reachable
from aclog.console.pdp.template import Template
from aclog.metalog.errors import ConfigError

_KEYS = ("subject", "resource", "action", "envoy")
_OPERATIONS = {each.name: each for each in AclOperation if each > AclOperation.ALL}
_TYPES = {each.name: each for each in ResourceType if each > ResourceType.ANY}
_LONGEST = 256
"""Characters of a type of principal that no mapping names."""


@frozen
class ResourceTarget:
    """A type of resource, and the template of its names."""

    resource_type: ResourceType
    template: Template


_DEFAULT_RESOURCES = {name: Cases((Case(to=ResourceTarget(kind, Template("", ""))),)) for name, kind in _TYPES.items()}


@frozen
class Thing:
    """A foreign thing as search finds it: its id, and the properties that tell it from others with this id."""

    id: str
    properties: tuple[tuple[str, Any], ...] = ()


@frozen(kw_only=True)
class EnvoyMapping:
    """What a request that Envoy asks about is: whom a header names, and its path as a resource."""

    subject_type: str
    header: str
    resource_type: str


@define(eq=False, slots=False)
class EntityMapping:
    """The types of subjects, or of resources: by type, cases of templates (for resources with their type)."""

    _types: Mapping[str, Cases[Any]]
    _template: Callable[[Any], Template]
    _default: Callable[[str], Cases[Any] | None]

    def cases(self, kind: str) -> Cases[Any] | None:
        """Return the cases of a type; None if it is not mapped."""
        found = self._types.get(kind)
        return self._default(kind) if found is None else found

    def forward(self, kind: str, foreign: str, properties: Properties) -> tuple[Any, str] | None:
        """Return the target and the name of a thing; None if it is not mapped.

        A name that would be read back as another thing is not mapped either: an id `bob+admin` must not be taken for a
        `bob` who is admin, nor, where services are `User:svc-{id}`, a user `svc-billing` for the service.
        """
        cases = self.cases(kind)
        case = None if cases is None else cases.first(properties)
        if cases is None or case is None or not foreign:
            return None
        name = self._template(case.to).name_of(foreign)
        if len(cases.cases) > 1 and self._of_name(cases, case.to, name) != (case, foreign):
            return None
        return None if self._is_of_another(kind, case.to, name) else (case.to, name)

    def forward_prefix(self, kind: str, prefix: str, properties: Properties) -> tuple[Any, str] | None:
        """Return the target and the prefix of all things whose ids begin so.

        None if it is not mapped, if their names are no prefix, or if one of them would be read back as another thing.
        """
        cases = self.cases(kind)
        case = None if cases is None else cases.first(properties)
        if cases is None or case is None or self._template(case.to).after:
            return None
        name = self._template(case.to).name_of(prefix)
        earlier = takewhile(lambda each: each is not case, cases)
        rivals = [each.to for each in earlier if _kind_of(each.to) == _kind_of(case.to)]
        rivals += (each for each in self._rivals.get(kind, ()) if self._is_rival(case.to, each))
        if any(self._template(each).has_names_below(name) for each in rivals):
            return None
        return case.to, name

    def backward(self, kind: str, target: Any, name: str) -> Thing | None:
        """Return the thing of a type that has this name, of a target that fits; None if none has."""
        cases = self.cases(kind)
        found = None if cases is None else self._of_name(cases, target, name)
        if found is None or self._is_of_another(kind, found[0].to, name):
            return None
        return Thing(found[1], tuple(found[0].when.items()))

    @cached_property
    def _rivals(self) -> Mapping[str, Sequence[Any]]:
        """By type, the targets of other types that a name of it may be of, too."""
        return {
            kind: [
                other.to
                for name, others in self._types.items()
                for other in others
                if name != kind and any(self._is_rival(case.to, other.to) for case in cases)
            ]
            for kind, cases in self._types.items()
        }

    def _is_rival(self, target: Any, other: Any) -> bool:
        """Return whether names may be of both targets, and the other is neither the same nor wider."""
        own, theirs = self._template(target), self._template(other)
        return _kind_of(target) == _kind_of(other) and own.meets(theirs) and not theirs.hides(own)

    def _is_of_another(self, kind: str, target: Any, name: str) -> bool:
        """Return whether a name, of a target of a type, is that of a thing of another type, too."""
        return any(
            self._template(other).id_of(name) is not None and self._is_rival(target, other)
            for other in self._rivals.get(kind, ())
        )

    def _of_name(self, cases: Cases[Any], target: Any, name: str) -> tuple[Case[Any], str] | None:
        for case in cases:
            if _kind_of(case.to) == _kind_of(target):
                foreign = self._template(case.to).id_of(name)
                if foreign is not None:
                    return case, foreign
        return None


def _kind_of(target: Any) -> ResourceType | None:
    return target.resource_type if isinstance(target, ResourceTarget) else None


@define(eq=False, slots=False)
class Mapped:
    """A whole mapping."""

    subjects: EntityMapping
    resources: EntityMapping
    _actions: Mapping[str, Mapping[str, Cases[AclOperation]]]
    envoy: EnvoyMapping | None = None
    """None: Envoy's questions are not answered."""

    def operation(self, resource_type: str, action: str, properties: Properties) -> AclOperation | None:
        """Return the operation of an action on a type of resource; None if it is not mapped."""
        known = self._actions.get(resource_type)
        if known is None:
            return _OPERATIONS.get(action.upper()) if self._is_default(resource_type) else None
        cases = known.get(action)
        case = None if cases is None else cases.first(properties)
        return None if case is None else case.to

    def actions(self, resource_type: str) -> list[str]:
        """Return the names of all actions on a type of resource, sorted."""
        known = self._actions.get(resource_type)
        if known is not None:
            return sorted(known)
        return sorted(_OPERATIONS) if self._is_default(resource_type) else []

    def _is_default(self, resource_type: str) -> bool:
        return self.resources.cases(resource_type) is not None


def parse_mapping(value: object, where: str) -> Mapped:
    """Return the mapping in an object of JSON or YAML; an empty one is the default.

    Raises:
        ConfigError: something is not as it must be, never counts, or cannot be told apart when it is read back.

    """
    table = _table(value, where, _KEYS)
    subjects = _entities(table.get("subject"), f"{where}: subject", _subject_target, str)
    resources = _entities(table.get("resource"), f"{where}: resource", _resource_target, _resource_text)
    given = _table(table.get("action", {}), f"{where}: action")
    actions = {
        kind: {
            name: _cases(value, f"{where}: action: {kind}: {name}", _operation)
            for name, value in _table(names, f"{where}: action: {kind}").items()
        }
        for kind, names in given.items()
    }
    for kind in actions:
        if resources is not None and kind not in resources:
            raise ConfigError(f"{where}: action: {kind}: there is no such resource: expected one of {_some(resources)}")
    return Mapped(
        subjects=EntityMapping(subjects or {}, _own_template, _default_subject if subjects is None else _nothing),
        resources=EntityMapping(
            resources or {}, _target_template, _default_resource if resources is None else _nothing
        ),
        actions=actions,
        envoy=_envoy(table.get("envoy"), f"{where}: envoy"),
    )


def default_mapping() -> Mapped:
    """Return the mapping to Kafka's own terms."""
    return parse_mapping({}, "default")


def _envoy(value: object, where: str) -> EnvoyMapping | None:
    if value is None:
        return None
    table = _table(value, where, ("subject", "header", "resource"))
    texts = [table.get(key) for key in ("subject", "header", "resource")]
    if not all(isinstance(text, str) and text for text in texts):
        raise ConfigError(f"{where}: expected the keys subject and resource with types, and header with a name")
    subject, header, resource = map(str, texts)
    return EnvoyMapping(subject_type=subject, header=header.lower(), resource_type=resource)


def _own_template(template: Template) -> Template:
    return template


def _target_template(target: ResourceTarget) -> Template:
    return target.template


def _default_subject(kind: str) -> Cases[Template] | None:
    if not kind or len(kind) > _LONGEST or ":" in kind:
        return None
    return _principals(kind)


@lru_cache(maxsize=64)
def _principals(kind: str) -> Cases[Template]:
    return Cases((Case(to=Template(f"{kind}:", "")),))


def _default_resource(kind: str) -> Cases[ResourceTarget] | None:
    return _DEFAULT_RESOURCES.get(kind.upper())


def _nothing(_kind: str) -> None:
    return None


def _entities(
    value: object, where: str, target: Callable[[str, str], Any], text: Callable[[Any], str]
) -> dict[str, Cases[Any]] | None:
    if value is None:
        return None
    found = {kind: _cases(each, f"{where}: {kind}", target) for kind, each in _table(value, where).items()}
    for kind, cases in found.items():
        _check_told_apart(cases.cases, f"{where}: {kind}", text)
    return found


def _check_told_apart(cases: Sequence[Case[Any]], where: str, text: Callable[[Any], str]) -> None:
    """Refuse a case whose names an earlier case would read back as its own. Raises ConfigError."""
    for number, case in enumerate(cases):
        template = case.to.template if isinstance(case.to, ResourceTarget) else case.to
        for earlier in cases[:number]:
            other = earlier.to.template if isinstance(earlier.to, ResourceTarget) else earlier.to
            if _kind_of(earlier.to) == _kind_of(case.to) and other.hides(template):
                raise ConfigError(
                    f"{where}: {text(case.to)} cannot be told from {text(earlier.to)} when it is read back: expected "
                    "the narrower one first"
                )


def _cases(value: object, where: str, target: Callable[[str, str], Any]) -> Cases[Any]:
    if isinstance(value, str):
        return Cases((Case(to=target(value, where)),))
    if not isinstance(value, list) or not value:
        raise ConfigError(f'{where}: expected a text, or cases such as [{{"when":{{"role":"admin"}},"to":"..."}}]')
    found = []
    for number, each in enumerate(value, 1):
        table = _table(each, f"{where}: case {number}", ("when", "to"))
        to = table.get("to")
        if not isinstance(to, str):
            raise ConfigError(f"{where}: case {number}: expected the key to with a text")
        when = _table(table.get("when", {}), f"{where}: case {number}: when")
        found.append(Case(to=target(to, f"{where}: case {number}"), when=when))
    check_reachable(found, where)
    return Cases(tuple(found))


def _subject_target(text: str, where: str) -> Template:
    template = Template.parse(text if "{" in text or ":" in text else f"{text}:{{id}}", where)
    if ":" not in template.before:
        raise ConfigError(f"{where}: {text[:80]!r}: expected a type of principal before the id, such as User:{{id}}")
    return template


def _resource_target(text: str, where: str) -> ResourceTarget:
    kind, colon, name = text.partition(":")
    if kind not in _TYPES:
        raise ConfigError(f"{where}: {text[:80]!r}: expected one of {', '.join(_TYPES)}, alone or with :{{id}}")
    return ResourceTarget(_TYPES[kind], Template.parse(name, where) if colon else Template("", ""))


def _resource_text(target: ResourceTarget) -> str:
    return f"{target.resource_type.name}:{target.template}"


def _operation(text: str, where: str) -> AclOperation:
    found = _OPERATIONS.get(text.upper())
    if found is None:
        raise ConfigError(f"{where}: {text[:80]!r}: expected one of {', '.join(_OPERATIONS)}")
    return found


def _table(value: object, where: str, keys: Sequence[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ConfigError(f"{where}: expected an object")
    for key in value:
        if keys is not None and key not in keys:
            raise ConfigError(f"{where}: {key[:80]!r}: expected {' or '.join(keys)}")
    return value


def _some(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names)[:10])
