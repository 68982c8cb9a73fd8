"""Searches: which subjects may, on which resources, by which actions. Every result is allowed when it is asked about.

Candidates are the principals of rules and super users, and the names in rules and those that are known to exist. What
a prefix or `User:*` would allow besides is without end, and is not listed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import evolve

from aclog.authorizer.acl import WILDCARD, WILDCARD_PRINCIPAL, PatternType, ResourceType
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.name_notation import name_text
from aclog.console.pdp.decider import Answer, Decider, KafkaRequest
from aclog.console.pdp.mapping import ForeignType, Thing
from aclog.console.pdp.requests import ActionName, Circumstances, Entity

Found = Mapping[str, Any]


def search_subjects(
    decider: Decider, kind: Entity, action: ActionName, resource: Entity, given: Circumstances
) -> Iterator[Found]:
    """Yield the subjects of a type that may do something with a resource."""
    subjects = decider.mapping.subject_type(kind.type)
    asked = decider.action_of(action, resource)
    if subjects is None or isinstance(asked, Answer):
        return
    operation, pattern = asked
    for principal in candidates_of(decider):
        thing = subjects.backward(None, principal)
        if thing is None or not _is_asked(subjects, kind, thing, principal):
            continue
        request = KafkaRequest(
            principal=principal,
            host=given.host,
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
    given: Circumstances,
    existing: Mapping[int, Iterable[str]],
) -> Iterator[Found]:
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
            found = decider.request_of(subject, action, resource, given.host)
            if isinstance(found, Answer) or (found.name, found.pattern_type) != (name, PatternType.LITERAL):
                continue
            if decider.decide(found).decision:
                yield _entity(kind.type, thing)


def search_actions(decider: Decider, subject: Entity, resource: Entity, given: Circumstances) -> Iterator[Found]:
    """Yield the actions that a subject may do with a resource, without any properties of theirs."""
    kind = decider.mapping.resource_type(resource.type)
    for name in sorted(() if kind is None else kind.actions.meanings):
        found = decider.request_of(subject, ActionName(name=name), resource, given.host)
        if not isinstance(found, Answer) and decider.decide(found).decision:
            yield {"name": name}


def candidates_of(decider: Decider) -> Iterator[str]:
    """Yield the principals of rules, and super users, each once; not User:*."""
    found = {*decider.acls.principals(), *decider.super_users}
    return (principal for principal in found if principal != WILDCARD_PRINCIPAL and ":" in principal)


def _is_asked(subjects: ForeignType, kind: Entity, thing: Thing, principal: str) -> bool:
    """Return whether a thing with the properties that were asked for is this principal."""
    properties = {**dict(thing.properties), **kind.properties}
    found = subjects.forward(thing.id, properties)
    return found is not None and found[1] == principal


def _names(acls: AclsImage, kind: ResourceType) -> Iterator[str]:
    for pattern in acls.resource_patterns():
        is_name = pattern.pattern_type == PatternType.LITERAL and pattern.name != WILDCARD
        if is_name and pattern.resource_type == kind:
            yield pattern.name


def _entity(kind: str, thing: Thing) -> Found:
    properties = dict(thing.properties)
    return {"type": kind, "id": thing.id, **({"properties": properties} if properties else {})}
