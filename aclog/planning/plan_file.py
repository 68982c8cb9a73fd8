"""PLAN files: JSON lines, a head that says what the plan is for, then one step a line."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.generation import Generation
from aclog.authorizer.rule_change import Action
from aclog.authorizer.rule_object import object_of_rule, rule_of_object
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object
from aclog.planning.batching import Batching
from aclog.planning.head_fields import HeadFields
from aclog.planning.plan import Base, JournalMark, Origin, PlaceAddress, PlaceKind, Plan, PlanPlace
from aclog.planning.step import Step
from aclog.planning.touched import Touched
from aclog.terminal.json_text import json_text

KIND, VERSION = "PLAN", 1
PLAN_BEGIN = f'{{"kind":"{KIND}"'.encode()
"""How the file of a plan begins."""


def step_object(step: Step) -> dict[str, object]:
    """Return the JSON object of a step."""
    return {"action": step.action.value, "rule": object_of_rule(step.acl), "batch": step.batch}


def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 of a plan, in hexadecimal: of its file without this digest.

    Raises:
        ConfigError: a text of it is not UTF-8, such as the path of a file.

    """
    return _digest(_head(plan), map(json_text, map(step_object, plan.steps)))


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield the lines of a PLAN file, without line ends. Raises as `plan_digest`."""
    head = _head(plan)
    steps = [json_text(step_object(step)) for step in plan.steps]
    yield json_text({**head, "digest": _digest(head, steps)})
    yield from steps


def parse_plan(lines: Iterable[bytes], name: str) -> Plan:
    """Return the plan in the lines of a file; `name` is that of the file, for errors.

    Raises:
        ConfigError: not a plan, one of another version, or not as it was written: a line is missing or was changed.

    """
    found = iter(lines)
    try:
        head = parse_object(next(found, b""))
    except ConfigError as error:
        raise ConfigError(f"{name}: line 1: {error}: expected a plan, as `aclog plan --out` writes it") from error
    if head.get("kind") != KIND:
        raise ConfigError(f"{name}: not a plan: expected a file that `aclog plan --out` wrote")
    if head.get("version") != VERSION:
        raise ConfigError(f"{name}: a plan of version {head.get('version')}: expected {VERSION}")
    texts, steps = _steps(found, name)
    digest = head.pop("digest", None)
    try:
        is_whole = len(steps) == head.get("steps") and digest == _digest(head, texts)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    if not is_whole:
        raise ConfigError(
            f"{name}: not as it was written: the head names {head.get('steps')} steps and their digest, and the file "
            f"has {len(steps)}: make the plan again instead of changing it"
        )
    try:
        return _plan(head, steps)
    except (ConfigError, ValueError) as error:  # ValueError: no such kind of place
        raise ConfigError(f"{name}: line 1: {error}") from error


def _steps(lines: Iterable[bytes], name: str) -> tuple[list[str], tuple[Step, ...]]:
    texts, steps = [], []
    for number, line in enumerate(lines, 2):
        try:
            value = parse_object(line)
            steps.append(_step(value))
        except ConfigError as error:
            raise ConfigError(f"{name}: line {number}: {error}") from error
        texts.append(json_text(value))
    return texts, tuple(steps)


def _step(value: dict[str, object]) -> Step:
    action, rule, batch = value.get("action"), value.get("rule"), value.get("batch")
    if action not in set(Action) or not isinstance(rule, dict) or type(batch) is not int:
        raise ConfigError('expected a step: {"action":"ADD"|"REMOVE","rule":{...},"batch":N}')
    return Step(action=Action(str(action)), acl=rule_of_object(rule).acl, batch=batch)


def _digest(head: Mapping[str, object], steps: Iterable[str]) -> str:
    """Return the digest. Raises ConfigError: a text is not UTF-8, such as the path of a file."""
    digest = sha256()
    try:
        digest.update(json_text(head).encode())
        for text in steps:
            digest.update(b"\n" + text.encode())
    except UnicodeEncodeError as error:
        begin, end = error.object.rfind('"', 0, error.start), error.object.find('"', error.start)
        raise ConfigError(
            f"{error.object[begin + 1 : end]!r}: not UTF-8, so no plan can hold it: expected another name"
        ) from error
    return digest.hexdigest()


def _head(plan: Plan) -> dict[str, object]:
    address, base, origin, journal = plan.place.address, plan.base, plan.origin, plan.journal
    return {
        "kind": KIND,
        "version": VERSION,
        "at": origin.at,
        "who": origin.who,
        "git": origin.git,
        "place": {
            "kind": address.kind.value,
            "value": address.value,
            "commandConfig": address.command_config,
            "properties": {key: value for key, value in address.properties.items() if not _is_secret(key)},
            "id": plan.place.identity,
            "fingerprint": plan.place.fingerprint,
            "batching": plan.place.batching.value,
        },
        "base": {
            "rules": base.rules,
            "endOffset": base.end_offset,
            "exists": base.exists,
            "touched": {"rules": base.touched.rules, "digest": base.touched.digest},
        },
        "settings": {
            "superUsers": sorted(plan.settings.super_users),
            "allowEveryone": plan.settings.allow_everyone,
            "documented": plan.settings.documented,
            "cidr": plan.settings.cidr,
            "known": plan.settings_known,
            "byPlace": plan.settings_by_place,
            **({} if plan.generations is None else {"generations": [each.value for each in plan.generations]}),
        },
        "journal": None if journal is None else _mark_object(journal),
        "otherJournals": list(map(_mark_object, plan.others)),
        "adopt": [object_of_rule(acl) for acl in plan.adopt],
        "release": [object_of_rule(acl) for acl in plan.release],
        "unowned": [object_of_rule(acl) for acl in plan.unowned],
        "transient": list(plan.transient),
        "steps": len(plan.steps),
    }


def _mark_object(mark: JournalMark) -> dict[str, object]:
    return {"path": mark.path, "id": mark.id, "entries": mark.entries, "checksum": mark.checksum}


def _is_secret(key: str) -> bool:
    return "password" in key.lower()


def _plan(value: Mapping[str, Any], steps: tuple[Step, ...]) -> Plan:
    head = HeadFields(value)
    place, base, settings, journal = (
        head.fields("place"),
        head.fields("base"),
        head.fields("settings"),
        head.fields_or_none("journal"),
    )
    return Plan(
        place=PlanPlace(
            address=_address(place),
            identity=place.text_or_none("id"),
            batching=Batching(place.text("batching")),
            fingerprint=place.text_or_none("fingerprint"),
        ),
        base=Base(
            rules=base.number("rules"),
            end_offset=base.number_or_none("endOffset"),
            exists=base.flag("exists"),
            touched=Touched(rules=base.fields("touched").number("rules"), digest=base.fields("touched").text("digest")),
        ),
        settings=Settings(
            super_users=frozenset(settings.texts("superUsers")),
            allow_everyone=settings.flag("allowEveryone"),
            documented=settings.flag("documented"),
            cidr=settings.flag("cidr"),
        ),
        settings_known=settings.flag("known"),
        settings_by_place=settings.flag("byPlace"),
        origin=Origin(at=head.text("at"), who=head.text("who"), git=head.text_or_none("git")),
        steps=steps,
        journal=None if journal is None else _mark(journal),
        others=tuple(map(_mark, head.list_of_fields("otherJournals"))),
        adopt=_acls(head, "adopt"),
        release=_acls(head, "release"),
        unowned=_acls(head, "unowned"),
        transient=tuple(head.objects("transient")),
        generations=_generations(settings),
    )


def _generations(settings: HeadFields) -> tuple[Generation, ...] | None:
    if not settings.has("generations"):
        return None
    found = tuple(map(Generation, settings.texts("generations")))
    if not found:
        raise ConfigError("settings.generations is empty: expected a version of Kafka")
    return found


def _address(place: HeadFields) -> PlaceAddress:
    return PlaceAddress(
        kind=PlaceKind(place.text("kind")),
        value=place.text("value"),
        command_config=place.text_or_none("commandConfig"),
        properties=place.named_texts("properties"),
    )


def _mark(value: HeadFields) -> JournalMark:
    return JournalMark(
        path=value.text("path"), id=value.text("id"), entries=value.number("entries"), checksum=value.number("checksum")
    )


def _acls(head: HeadFields, key: str) -> tuple[StandardAcl, ...]:
    return tuple(rule_of_object(value).acl for value in head.objects(key))
