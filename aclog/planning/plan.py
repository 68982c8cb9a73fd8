"""A plan: the steps of one change of one target, its file, and the protocols of targets."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum, IntEnum, StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

import numpy as np
from attrs import field

from aclog.analysis.regions import JsonObject
from aclog.authorizer.acl import ResourcePattern, StandardAcl, object_of_rule, resource_of, rule_of_object
from aclog.authorizer.acls_image import AclsImage, Action, contents_of, image_of, pattern_of_content
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, AclPermissionType, PatternType
from aclog.authorizer.settings import Generation, Settings
from aclog.authorizer.standard import Premises
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.json_object import parse_object
from aclog.metalog.values import define, frozen
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.terminal.columns import json_text

# A step of a plan.


class Stage(IntEnum):
    """The stages of a change.

    In this order, ACL by ACL, no request is allowed on the way that is denied before and after.
    """

    ADD_DENY = 0
    ADD_ALLOW = 1
    REMOVE_ALLOW = 2
    REMOVE_DENY = 3


@frozen(kw_only=True)
class Step:
    """An ACL that is added or removed; steps of one batch become visible together."""

    action: Action
    acl: StandardAcl
    batch: int
    """From 0; it never decreases from a step to the next."""

    @property
    def adds(self) -> bool:
        """Whether the ACL is added."""
        return self.action is Action.ADD

    @property
    def stage(self) -> Stage:
        """The stage to which it belongs."""
        return stage_of(self.acl, added=self.adds)


def stage_of(acl: StandardAcl, *, added: bool) -> Stage:
    """Return the stage of a change.

    An ACL whose principal has no colon acts as a DENY for everyone: Kafka's authorizer throws on it.
    """
    if acl.permission_type == AclPermissionType.ALLOW and ":" in acl.principal:
        return Stage.ADD_ALLOW if added else Stage.REMOVE_ALLOW
    return Stage.ADD_DENY if added else Stage.REMOVE_DENY


# Resource patterns that share a name.


@frozen(kw_only=True)
class _Texts:
    """Names or prefixes of one resource type."""

    sorted: Sequence[str]
    all: frozenset[str]
    lengths: Sequence[int]
    """Distinct and sorted."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> "_Texts":
        """Return the index of these texts."""
        members = frozenset(texts)
        return cls(sorted=sorted(members), all=members, lengths=sorted({len(text) for text in members}))

    def any_begins_with(self, prefix: str) -> bool:
        """Return whether one of them begins with a prefix."""
        at = bisect_left(self.sorted, prefix)
        return at < len(self.sorted) and self.sorted[at].startswith(prefix)

    def any_begins(self, name: str) -> bool:
        """Return whether a name begins with one of the texts."""
        return any(name[:length] in self.all for length in self.lengths)


_NONE = _Texts.of(())


@frozen(kw_only=True)
class PatternSet:
    """A set of resource patterns that answers which other patterns share a name with the set."""

    _names: Mapping[int, _Texts]
    """Names of LITERAL patterns other than `*`, by resource type."""
    _prefixes: Mapping[int, _Texts]
    _wide: frozenset[int]
    """Resource types with LITERAL `*`, which covers nearly every name."""

    @classmethod
    def of(cls, patterns: Iterable[ResourcePattern]) -> "PatternSet":
        """Return the set of these patterns."""
        names: dict[int, set[str]] = {}
        prefixes: dict[int, set[str]] = {}
        wide = set()
        for each in patterns:
            if each.pattern_type != PatternType.LITERAL:
                prefixes.setdefault(each.resource_type, set()).add(each.name)
            elif each.name == WILDCARD:
                wide.add(each.resource_type)
            else:
                names.setdefault(each.resource_type, set()).add(each.name)
        return cls(
            names={kind: _Texts.of(texts) for kind, texts in names.items()},
            prefixes={kind: _Texts.of(texts) for kind, texts in prefixes.items()},
            wide=frozenset(wide),
        )

    def meets(self, resource_type: int, name: str, pattern_type: int) -> bool:
        """Return whether a pattern shares a name with a pattern of the set."""
        if resource_type in self._wide:
            return True
        names, prefixes = self._names.get(resource_type, _NONE), self._prefixes.get(resource_type, _NONE)
        if pattern_type != PatternType.LITERAL:
            return names.any_begins_with(name) or prefixes.any_begins_with(name) or prefixes.any_begins(name)
        if name == WILDCARD:
            return bool(names.all or prefixes.all)
        return name in names.all or prefixes.any_begins(name)


def overlapping(patterns: Collection[ResourcePattern]) -> set[ResourcePattern]:
    """Return the patterns that share a name with another pattern of the collection."""
    overlaps: set[ResourcePattern] = set()
    types = {each.resource_type for each in patterns}
    for kind in types:
        overlaps |= _overlapping([each for each in patterns if each.resource_type == kind])
    return overlaps


def _overlapping(patterns: list[ResourcePattern]) -> set[ResourcePattern]:
    wide = [each for each in patterns if each.pattern_type == PatternType.LITERAL and each.name == WILDCARD]
    if wide and len(patterns) > 1:
        return set(patterns)
    overlaps: set[ResourcePattern] = set()
    above: list[ResourcePattern] = []  # prefixes of the next names, each beginning with the previous one
    for each in sorted(patterns, key=lambda one: (one.name, one.pattern_type == PatternType.LITERAL)):
        while above and not each.name.startswith(above[-1].name):
            above.pop()
        if above:
            overlaps.update((each, above[-1]))
        if each.pattern_type != PatternType.LITERAL:
            above.append(each)
    return overlaps


# The touched region of a change: the ACLs of a target that interact with it.


@frozen(kw_only=True)
class Touched:
    """The number of ACLs in a touched region, and their digest."""

    rules: int
    digest: str
    """SHA-256 of their sorted contents, in hexadecimal."""


@frozen(kw_only=True)
class TouchedRegion:
    """The reach of a change: the names that its ACLs cover, for its principals or for all."""

    _patterns: PatternSet
    _principals: frozenset[str] | None
    """None: all principals."""

    @classmethod
    def of(cls, acls: Iterable[StandardAcl], *, allow_everyone: bool) -> "TouchedRegion":
        """Return the region that these ACLs touch.

        With `allow_everyone`, any ACL on a name affects all principals: it closes a name that has no other ACL. So does
        an ACL whose principal has no colon, on which Kafka's authorizer throws.
        """
        changed = list(acls)
        principals = frozenset(acl.principal for acl in changed)
        for_all = allow_everyone or any(map(_is_for_all, principals))
        return cls(patterns=PatternSet.of(map(resource_of, changed)), principals=None if for_all else principals)

    def among(self, contents: Iterable[bytes]) -> set[bytes]:
        """Return those of the ACLs that lie in the region."""
        return {content for content in contents if self._holds(*pattern_of_content(content))}

    def _holds(self, resource_type: int, name: str, pattern_type: int, principal: str) -> bool:
        principals = self._principals
        if principals is not None and principal not in principals and not _is_for_all(principal):
            return False
        return self._patterns.meets(resource_type, name, pattern_type)


def _is_for_all(principal: str) -> bool:
    return principal == WILDCARD_PRINCIPAL or ":" not in principal


def touched(contents: Iterable[bytes]) -> Touched:
    """Return the count and the digest of the ACLs of a region."""
    rules = sorted(contents)
    return Touched(rules=len(rules), digest=sha256(b"".join(rules)).hexdigest())


# The errors of plans and applies.


class RefusedError(MetadataError):
    """A plan is refused, or its apply is; nothing was written."""


class StoppedError(MetadataError):
    """An apply stopped before its last step; the journal lists the steps that may have been made."""


class JournalError(MetadataError):
    """A journal is damaged, belongs to another target, or is not the one that a plan was made with."""


# The fields of a plan's head. A PLAN file may come from an untrusted source, so each field is checked.


@frozen
class HeadFields:
    """An object in the head of a plan. Every method raises ConfigError if a field is missing or has another type."""

    _value: Mapping[str, Any]
    _path: str = ""
    """The prefix of keys in errors: empty, or the object's key and a full stop."""

    def text(self, key: str) -> str:
        """Return a text. A NUL is refused: no path and no name can contain one."""
        value = self._get(key)
        if not isinstance(value, str) or "\0" in value:
            raise self._wrong(key, "a text")
        return value

    def text_or_none(self, key: str) -> str | None:
        """Return a text, or None for null."""
        return None if self._get(key) is None else self.text(key)

    def number(self, key: str) -> int:
        """Return a non-negative integer."""
        value = self._get(key)
        if type(value) is not int or value < 0:
            raise self._wrong(key, "a non-negative integer")
        return value

    def number_or_none(self, key: str) -> int | None:
        """Return a non-negative integer, or None for null."""
        return None if self._get(key) is None else self.number(key)

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self._get(key)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def texts(self, key: str) -> list[str]:
        """Return a list of texts."""
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(key, "a list of strings")
        return value

    def named_texts(self, key: str) -> dict[str, str]:
        """Return texts by name."""
        value = self._get(key)
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            raise self._wrong(key, "an object with string values")
        return value

    def objects(self, key: str) -> list[dict[str, Any]]:
        """Return a list of objects."""
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self._wrong(key, "a list of objects")
        return value

    def fields(self, key: str) -> "HeadFields":
        """Return the fields of an object."""
        value = self._get(key)
        if not isinstance(value, dict):
            raise self._wrong(key, "an object")
        return HeadFields(value, f"{self._path}{key}.")

    def fields_or_none(self, key: str) -> "HeadFields | None":
        """Return the fields of an object, or None for null."""
        return None if self._get(key) is None else self.fields(key)

    def list_of_fields(self, key: str) -> list["HeadFields"]:
        """Return the fields of each object of a list."""
        return [HeadFields(each, f"{self._path}{key}.") for each in self.objects(key)]

    def has(self, key: str) -> bool:
        """Return whether an optional field is present."""
        return key in self._value

    def _get(self, key: str) -> object:
        if key not in self._value:
            raise ConfigError(f"the plan's head has no field {self._path}{key}")
        return self._value[key]

    def _wrong(self, key: str, expected: str) -> ConfigError:
        return ConfigError(f"{self._path}{key} is {str(self._value[key])[:40]!r}: expected {expected}")


# The unit in which a target makes changes visible.


class Batching(StrEnum):
    """The unit in which a change becomes visible."""

    ALL = "ALL"
    """The whole change: one batch, or one metadata transaction, of one of aclog's logs."""
    RESOURCE = "RESOURCE"
    """The changes of one resource: a znode in ZooKeeper."""
    RULE = "RULE"
    """One ACL: a Kafka publishes each record of a request separately."""


# A plan: the steps of one change of one target, and the state that it was made for.


class PlaceKind(StrEnum):
    """The kind of a target, as the flag that names it."""

    LOG = "log"
    BOOTSTRAP_SERVER = "bootstrap-server"
    BOOTSTRAP_CONTROLLER = "bootstrap-controller"
    ZOOKEEPER = "zookeeper"


@frozen(kw_only=True)
class PlaceAddress:
    """The address of a target; a user who applies the plan elsewhere may give another address of the same target."""

    kind: PlaceKind
    value: str
    """The absolute path of a log's directory, servers as for the flag, or the ZooKeeper's servers."""
    command_config: str | None = None
    """The absolute path of the client properties; the plan does not contain them."""
    properties: Mapping[str, str] = field(factory=dict, repr=False)
    """Properties of the ZooKeeper's authorizer; a PLAN file has those that are not passwords."""


@frozen(kw_only=True)
class PlanPlace:
    """The target of a plan."""

    address: PlaceAddress
    identity: str | None
    """As Place.identity; None if the target did not exist yet, or is a log without an identity."""
    batching: Batching
    fingerprint: str | None = None
    """As Place.fingerprint at the end offset of the plan's base, for a target without an identity."""


@frozen(kw_only=True)
class Base:
    """The state that a plan was made from: how many ACLs there were, and exactly which ones its steps may affect."""

    rules: int
    end_offset: int | None
    exists: bool
    touched: Touched


@frozen(kw_only=True)
class JournalMark:
    """The journal that a plan was made with, and the position up to which it was read."""

    path: str
    id: str
    entries: int
    """The number of BEGIN and DONE entries."""
    checksum: int
    """Over all its lines; 0 for a journal that does not exist yet."""


@frozen(kw_only=True)
class Origin:
    """The author of a plan, its time (ISO 8601, UTC), and the commit of its ACLs, if known."""

    at: str
    who: str
    git: str | None = None


@frozen(kw_only=True)
class Plan:
    """The steps of one change."""

    place: PlanPlace
    base: Base
    settings: Settings
    """If several generations of Kafka may decide, the settings of the oldest one."""
    settings_known: bool
    """Whether both settings are known; if not, there are no super users, and allow.everyone.if.no.acl.found is true."""
    settings_by_place: bool
    """Whether allow.everyone.if.no.acl.found was read from the target, and not given by the user."""
    origin: Origin
    steps: tuple[Step, ...]
    journal: JournalMark | None = None
    """None: no journal manages the ACLs that the plan adds."""
    others: tuple[JournalMark, ...] = ()
    """The journals of other sources, whose ACLs the plan does not remove."""
    adopt: tuple[StandardAcl, ...] = ()
    """Existing ACLs that the journal manages from now on."""
    release: tuple[StandardAcl, ...] = ()
    """ACLs that the journal no longer manages, and that stay as they are: already gone, or managed by others."""
    unowned: tuple[StandardAcl, ...] = ()
    """ACLs that steps remove though the journal does not manage them: each was requested explicitly."""
    transient: tuple[JsonObject, ...] = ()
    """Regions of requests that are allowed before and after, and denied in a state in between."""

    generations: tuple[Generation, ...] | None = None
    """The generations of Kafka that may decide, as read from the target; None: the plan's author named one, or no host
    in the touched region is a range, so that all decide alike."""

    @property
    def each_settings(self) -> dict[Generation | None, Settings]:
        """The settings for each generation of Kafka that may decide; under None, if there is only one."""
        return self.settings.by_generation(self.generations or ())

    @property
    def is_empty(self) -> bool:
        """Whether the plan changes neither the target nor the journal."""
        return not (self.steps or self.adopt or self.release)


# PLAN files: JSON lines; a head that describes the plan, then one step per line.


KIND, VERSION = "PLAN", 1
PLAN_BEGIN = f'{{"kind":"{KIND}"'.encode()
"""The first bytes of a PLAN file."""


def step_object(step: Step) -> dict[str, object]:
    """Return the JSON object of a step."""
    return {"action": step.action.value, "rule": object_of_rule(step.acl), "batch": step.batch}


def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 of a plan's file without this digest, in hexadecimal.

    Raises:
        ConfigError: a text, such as a file's path, is not UTF-8.

    """
    return _digest(_head(plan), map(json_text, map(step_object, plan.steps)))


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield the lines of a PLAN file, without line ends. Raises as `plan_digest`."""
    head = _head(plan)
    steps = [json_text(step_object(step)) for step in plan.steps]
    yield json_text({**head, "digest": _digest(head, steps)})
    yield from steps


def parse_plan(lines: Iterable[bytes], name: str) -> Plan:
    """Return the plan in the lines of a file; `name` is the file's name, for errors.

    Raises:
        ConfigError: not a plan, an unsupported version, or a line is missing or was changed.

    """
    rest = iter(lines)
    try:
        head = parse_object(next(rest, b""))
    except ConfigError as error:
        raise ConfigError(f"{name}: line 1: {error}: expected a plan written by `aclog plan --out`") from error
    if head.get("kind") != KIND:
        raise ConfigError(f"{name}: not a plan: expected a file written by `aclog plan --out`")
    if head.get("version") != VERSION:
        raise ConfigError(f"{name}: plan version {head.get('version')}: expected {VERSION}")
    texts, steps = _steps(rest, name)
    digest = head.pop("digest", None)
    try:
        is_whole = len(steps) == head.get("steps") and digest == _digest(head, texts)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    if not is_whole:
        raise ConfigError(
            f"{name}: changed since it was written: the head has a digest of {head.get('steps')} steps, the file has "
            f"{len(steps)}: create a new plan instead of editing this one"
        )
    try:
        return _plan(head, steps)
    except (ConfigError, ValueError) as error:  # ValueError: unknown kind of target
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
    """Return the digest. Raises ConfigError: a text, such as a file's path, is not UTF-8."""
    digest = sha256()
    try:
        digest.update(json_text(head).encode())
        for text in steps:
            digest.update(b"\n" + text.encode())
    except UnicodeEncodeError as error:
        begin, end = error.object.rfind('"', 0, error.start), error.object.find('"', error.start)
        raise ConfigError(
            f"{error.object[begin + 1 : end]!r}: not UTF-8, which a plan cannot contain: expected another name"
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
    generations = tuple(map(Generation, settings.texts("generations")))
    if not generations:
        raise ConfigError("settings.generations is empty: expected a version of Kafka")
    return generations


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


# The progress of an unfinished apply: the steps that it had sent, and those that it had read back.


class Completion(Enum):
    """The target's own record of an apply whose steps are atomic: all made, or none."""

    ALL = "ALL"
    NONE = "NONE"


@frozen(kw_only=True)
class Sent:
    """Steps of an apply, by their numbers from 0; a step in neither set had not begun."""

    completed: frozenset[int] = frozenset()
    """They were read back."""
    unsure: frozenset[int] = frozenset()
    """They were sent and not read back: they may or may not have been made."""

    def of(self, completion: Completion | None, steps: int) -> "Sent":
        """Return the progress, given the target's own record; None: it has no record."""
        if completion is None:
            return self
        return Sent(completed=frozenset(range(steps))) if completion is Completion.ALL else NOTHING_SENT

    def sending(self, completed: Iterable[int], piece: Iterable[int]) -> "Sent":
        """Return the progress while a piece is sent, after these steps were made.

        A step that was sent before and not read back may still be carried out.
        """
        numbers = frozenset(completed)
        return Sent(completed=numbers, unsure=(self.unsure | frozenset(piece)) - numbers)


NOTHING_SENT = Sent()


def sent_object(apply: str, sent: Sent) -> dict[str, object]:
    """Return the JSON object of the line with the progress of an apply; steps as ranges, both ends included."""
    return {"kind": "SENT", "apply": apply, "made": _ranges(sent.completed), "unsure": _ranges(sent.unsure)}


def parse_sent(value: Mapping[str, Any], steps: int) -> Sent:
    """Return the progress of an apply with so many steps. Raises ConfigError: a field is missing or invalid."""
    try:
        sent = Sent(completed=_numbers(value["made"]), unsure=_numbers(value["unsure"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"not a journal line with the progress of an apply: {error}") from error
    if any(not 0 <= each < steps for each in sent.completed | sent.unsure):
        raise ConfigError(f"expected step numbers from 0 to {steps - 1}")
    return sent


def _ranges(numbers: frozenset[int]) -> list[list[int]]:
    # A target with many small batches calls this before each batch.
    ordered = np.sort(np.fromiter(numbers, np.int64, len(numbers)))
    is_first = np.diff(ordered, prepend=-2) != 1
    begins = np.flatnonzero(is_first)
    ends = np.append(begins, len(ordered))[1:] - 1
    ranges: list[list[int]] = np.column_stack((ordered[begins], ordered[ends])).tolist()
    return ranges


def _numbers(ranges: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(number for first, last in ranges for number in range(first, last + 1))


# The protocols of targets, for which plans are made and to which they are applied.


@define(eq=False, slots=False, kw_only=True)
class PlaceState:
    """The state of a target when it was read. Immutable by convention."""

    contents: AbstractSet[bytes]
    """The ACLs, as aclog.authorizer.acls_image has them."""
    end_offset: int | None = None
    """Of a log; None where there are no offsets."""
    exists: bool = True
    """Whether the target exists; one that does not is empty, and is created by applying a plan."""
    image: AclsImage | None = field(default=None, repr=False)

    @staticmethod
    def of_image(acls: AclsImage, end_offset: int | None = None, *, exists: bool = True) -> "PlaceState":
        """Return the state with these ACLs."""
        return PlaceState(contents=contents_of(acls), end_offset=end_offset, exists=exists, image=acls)

    @cached_property
    def acls(self) -> AclsImage:
        """The ACLs, indexed."""
        return image_of(self.contents) if self.image is None else self.image


class Place(Protocol):
    """An open target, owned by one command."""

    @property
    def name(self) -> str:
        """The name of the target in messages."""
        ...

    @property
    def batching(self) -> Batching:
        """The unit in which a change becomes visible."""
        ...

    def identity(self) -> str | None:
        """Return the cluster id, or the id of a log that belongs to no cluster; None if it has none yet.

        Raises:
            MetadataError: the id is damaged, or no server answers.

        """
        ...

    def fingerprint(self, end_offset: int) -> str | None:
        """Return a fingerprint for targets without an identity: of a log, of its contents below an offset.

        None: it is too short, or such targets have an identity. Raises as `read`.
        """
        ...

    def premises(self, properties: AbstractSet[str]) -> Premises:
        """Return the unknown premises of decisions, for the state and the settings that were read last.

        `properties`: the properties whose values are known. Raises as `settings`.
        """
        ...

    def settings(self) -> Settings | None:
        """Return super.users and allow.everyone.if.no.acl.found if the target reports both; None: they are unknown.

        Raises:
            MetadataError: no server answers.

        """
        ...

    def kafka(self, ranges: Collection[StandardAcl]) -> DecidingKafka:
        """Return the generations of Kafka that may decide on the last `read`, with these rules.

        `ranges`: those of the read ones that have a range as host, and others that have one and may be added.

        Raises:
            MetadataError: no server answers.

        """
        ...

    def completion(self, apply: str) -> Completion | None:
        """Return what a possibly killed apply did, from the target's own record.

        None: the target keeps no record, or does not make all steps atomically.

        Raises:
            MetadataError: the record, or its subject, is damaged or cannot be read.

        """
        ...

    def check(self, steps: Sequence[Step]) -> None:
        """Check that the target can hold every ACL that these steps add, and make each step. Sends no request.

        Raises:
            ConfigError: a step cannot be made; the message names it and the reason.

        """
        ...

    def read(self) -> PlaceState:
        """Return the present state of the target.

        Raises:
            MetadataError: it cannot be read completely, or it may be stale.

        """
        ...


@frozen(kw_only=True)
class ApplyNote:
    """The note of an apply that a target with a record of its own keeps."""

    apply: str
    at: str
    """ISO 8601, UTC."""
    who: str
    plan: str
    """The digest of the plan."""
    journal: str | None
    """The id of the journal."""
    git: str | None


class WritablePlace(Place, Protocol):
    """A target that is open for writing."""

    def note_begin(self, note: ApplyNote) -> None:
        """Record durably that an apply begins, if the target keeps such a record. Raises LogError."""
        ...

    def note_done(self, note: ApplyNote) -> None:
        """Record durably that an apply has ended. Raises LogError."""
        ...

    def noted(self, plan: str) -> ApplyNote | None:
        """Return the target's note of the newest apply of a plan, by the plan's digest. Raises as `was_noted`.

        None: there is no note, or the target keeps no notes.
        """
        ...

    def was_noted(self, apply: str) -> bool:
        """Return whether the target has a note of this apply. Raises MetadataError: its record is damaged."""
        ...

    def pieces(self, steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        """Yield the steps in pieces, each of which is written at once, in order; a batch is never split."""
        ...

    def write(self, piece: Sequence[Step]) -> None:
        """Make these steps, in order, and wait until they are committed. Changes nothing else.

        Raises:
            MetadataError: some steps may not have been made; the message has the target's error.

        """
        ...

    def read_back(self, acls: Sequence[StandardAcl]) -> set[StandardAcl]:
        """Return which of these ACLs exist now. Raises as `read`."""
        ...
