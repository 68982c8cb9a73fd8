"""A plan: the steps of one change of one target, its file, and what a target is."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum, IntEnum, StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

import numpy as np
from attrs import define, field, frozen

from aclog.analysis.regions import JsonObject
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    StandardAcl,
    object_of_rule,
    resource_of,
    rule_of_object,
)
from aclog.authorizer.acls_image import AclsImage, Action, contents_of, image_of, pattern_of_content
from aclog.authorizer.premises import Premises
from aclog.authorizer.settings import Generation, Settings
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.json_object import parse_object
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.terminal.columns import json_text

# A step of a plan.


class Stage(IntEnum):
    """The stages of a change: made in this order, rule by rule, it allows nothing on its way that both ends deny."""

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

    On an ACL whose principal has no colon Kafka's authorizer throws: whatever it says, it refuses everybody.
    """
    if acl.permission_type == AclPermissionType.ALLOW and ":" in acl.principal:
        return Stage.ADD_ALLOW if added else Stage.REMOVE_ALLOW
    return Stage.ADD_DENY if added else Stage.REMOVE_DENY


# Which resource patterns cover a name in common.


@frozen(kw_only=True)
class _Texts:
    """Names or prefixes of one resource type."""

    sorted: Sequence[str]
    all: frozenset[str]
    lengths: Sequence[int]
    """Each once, sorted."""

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
        """Return whether a name begins with one of them."""
        return any(name[:length] in self.all for length in self.lengths)


_NONE = _Texts.of(())


@frozen(kw_only=True)
class PatternSet:
    """Resource patterns, asked which other patterns cover a name in common with one of them."""

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
        """Return whether a pattern may cover a name that one of the set covers."""
        if resource_type in self._wide:
            return True
        names, prefixes = self._names.get(resource_type, _NONE), self._prefixes.get(resource_type, _NONE)
        if pattern_type != PatternType.LITERAL:
            return names.any_begins_with(name) or prefixes.any_begins_with(name) or prefixes.any_begins(name)
        if name == WILDCARD:
            return bool(names.all or prefixes.all)
        return name in names.all or prefixes.any_begins(name)


def overlapping(patterns: Collection[ResourcePattern]) -> set[ResourcePattern]:
    """Return those of the patterns that cover a name in common with another of them."""
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
    above: list[ResourcePattern] = []  # prefixes that the next names may begin with, each beginning with the one before
    for each in sorted(patterns, key=lambda one: (one.name, one.pattern_type == PatternType.LITERAL)):
        while above and not each.name.startswith(above[-1].name):
            above.pop()
        if above:
            overlaps.update((each, above[-1]))
        if each.pattern_type != PatternType.LITERAL:
            above.append(each)
    return overlaps


# The touched region of a change: the ACLs of a place whose effect it may meet.


@frozen(kw_only=True)
class Touched:
    """How many ACLs are in a touched region, and a digest of them."""

    rules: int
    digest: str
    """SHA-256 of their sorted contents, in hexadecimal."""


@frozen(kw_only=True)
class TouchedRegion:
    """What a change may meet: names that its ACLs cover, of its principals or of all."""

    _patterns: PatternSet
    _principals: frozenset[str] | None
    """None: of all."""

    @classmethod
    def of(cls, acls: Iterable[StandardAcl], *, allow_everyone: bool) -> "TouchedRegion":
        """Return the region that these ACLs touch.

        With `allow_everyone` any ACL on a name matters to all: it closes what no ACL covers. So does an ACL whose
        principal has no colon: Kafka's authorizer throws when it meets it.
        """
        changed = list(acls)
        principals = frozenset(acl.principal for acl in changed)
        for_all = allow_everyone or any(map(_is_for_all, principals))
        return cls(patterns=PatternSet.of(map(resource_of, changed)), principals=None if for_all else principals)

    def among(self, contents: Iterable[bytes]) -> set[bytes]:
        """Return those of the ACLs that are in the region."""
        return {content for content in contents if self._holds(*pattern_of_content(content))}

    def _holds(self, resource_type: int, name: str, pattern_type: int, principal: str) -> bool:
        principals = self._principals
        if principals is not None and principal not in principals and not _is_for_all(principal):
            return False
        return self._patterns.meets(resource_type, name, pattern_type)


def _is_for_all(principal: str) -> bool:
    return principal == WILDCARD_PRINCIPAL or ":" not in principal


def touched(contents: Iterable[bytes]) -> Touched:
    """Return what is kept of the ACLs of a region."""
    rules = sorted(contents)
    return Touched(rules=len(rules), digest=sha256(b"".join(rules)).hexdigest())


# The errors of plans and of what applies them.


class RefusedError(MetadataError):
    """A plan that is not made, or not applied: nothing was written."""


class StoppedError(MetadataError):
    """An apply that ended on its way: the journal has what may have been written."""


class JournalError(MetadataError):
    """A journal that is damaged, of another place, or not the one that a plan was made with."""


# The fields of a plan's head: a PLAN file may come from anywhere, so each is checked before it is used.


@frozen
class HeadFields:
    """An object in the head of a plan. Every method raises ConfigError if a field is missing or something else."""

    _value: Mapping[str, Any]
    _path: str = ""
    """How errors name it: nothing, or its key and a full stop."""

    def text(self, key: str) -> str:
        """Return a text, which has no NUL: no path and no name can hold one."""
        value = self._get(key)
        if not isinstance(value, str) or "\0" in value:
            raise self._wrong(key, "a text")
        return value

    def text_or_none(self, key: str) -> str | None:
        """Return a text, or None for null."""
        return None if self._get(key) is None else self.text(key)

    def number(self, key: str) -> int:
        """Return a number from 0."""
        value = self._get(key)
        if type(value) is not int or value < 0:
            raise self._wrong(key, "a number from 0")
        return value

    def number_or_none(self, key: str) -> int | None:
        """Return a number from 0, or None for null."""
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
            raise self._wrong(key, "a list of texts")
        return value

    def named_texts(self, key: str) -> dict[str, str]:
        """Return texts by name."""
        value = self._get(key)
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            raise self._wrong(key, "an object of texts")
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
        """Return whether there is a field that not all plans have."""
        return key in self._value

    def _get(self, key: str) -> object:
        if key not in self._value:
            raise ConfigError(f"the head of a plan lacks {self._path}{key}")
        return self._value[key]

    def _wrong(self, key: str, expected: str) -> ConfigError:
        return ConfigError(f"{self._path}{key} is {str(self._value[key])[:40]!r}: expected {expected}")


# What a place makes visible together.


class Batching(StrEnum):
    """How much of a change becomes visible at once."""

    ALL = "ALL"
    """All of it: one batch, or one metadata transaction, of a log of ours."""
    RESOURCE = "RESOURCE"
    """What changes on one resource: a znode in ZooKeeper."""
    RULE = "RULE"
    """One ACL: a Kafka publishes each record of a request by itself."""


# A plan: the steps of one change of one place, and what it was made for.


class PlaceKind(StrEnum):
    """What a place is, as the flag that names it."""

    LOG = "log"
    BOOTSTRAP_SERVER = "bootstrap-server"
    BOOTSTRAP_CONTROLLER = "bootstrap-controller"
    ZOOKEEPER = "zookeeper"


@frozen(kw_only=True)
class PlaceAddress:
    """How a place is found; whoever applies a plan elsewhere may give another address of the same place."""

    kind: PlaceKind
    value: str
    """The absolute path of a log's directory, servers as for the flag, or the ZooKeeper's servers."""
    command_config: str | None = None
    """The absolute path of the client properties; what is in them stays there."""
    properties: Mapping[str, str] = field(factory=dict, repr=False)
    """Properties of the ZooKeeper's authorizer; a PLAN file has those that are no passwords."""


@frozen(kw_only=True)
class PlanPlace:
    """The place that a plan is for."""

    address: PlaceAddress
    identity: str | None
    """As Place.identity; None if there was no such place yet, or a log without one."""
    batching: Batching
    fingerprint: str | None = None
    """As Place.fingerprint at the end offset of the plan's base; of a place without an identity."""


@frozen(kw_only=True)
class Base:
    """What a plan was made from: how much there was, and exactly which ACLs its steps may meet."""

    rules: int
    end_offset: int | None
    exists: bool
    touched: Touched


@frozen(kw_only=True)
class JournalMark:
    """The journal that a plan was made with, and how far it was read."""

    path: str
    id: str
    entries: int
    """How many BEGIN and DONE."""
    checksum: int
    """Of all its lines; 0 of one that is yet to be made."""


@frozen(kw_only=True)
class Origin:
    """Who made a plan, when (ISO 8601, UTC), and from which commit, if that is known."""

    at: str
    who: str
    git: str | None = None


@frozen(kw_only=True)
class Plan:
    """The steps of one change."""

    place: PlanPlace
    base: Base
    settings: Settings
    """Where several generations of Kafka may decide, those of the oldest one."""
    settings_known: bool
    """Whether both were told; unknown ones count as no super user, and allow.everyone.if.no.acl.found."""
    settings_by_place: bool
    """Whether the place itself told allow.everyone.if.no.acl.found, and not who made the plan."""
    origin: Origin
    steps: tuple[Step, ...]
    journal: JournalMark | None = None
    """None: nobody owns what it adds."""
    others: tuple[JournalMark, ...] = ()
    """The journals of other sources, whose rules it does not remove."""
    adopt: tuple[StandardAcl, ...] = ()
    """ACLs that are there already, and are owned from now on."""
    release: tuple[StandardAcl, ...] = ()
    """ACLs that are no longer owned, and stay as they are: gone already, or somebody else's."""
    unowned: tuple[StandardAcl, ...] = ()
    """ACLs that steps remove though the journal does not own them: asked for one by one."""
    transient: tuple[JsonObject, ...] = ()
    """Regions of requests that both ends allow, and a state on the way denies."""

    generations: tuple[Generation, ...] | None = None
    """Those of Kafka that may decide, as the place states; None: who made the plan named one, or no host of what it
    touches is a range, so that all decide alike."""

    @property
    def each_settings(self) -> dict[Generation | None, Settings]:
        """What decides for each generation of Kafka that may; under None, if that is one."""
        return self.settings.by_generation(self.generations or ())

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do, in the place or in the journal."""
        return not (self.steps or self.adopt or self.release)


# PLAN files: JSON lines, a head that says what the plan is for, then one step a line.


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
    rest = iter(lines)
    try:
        head = parse_object(next(rest, b""))
    except ConfigError as error:
        raise ConfigError(f"{name}: line 1: {error}: expected a plan, as `aclog plan --out` writes it") from error
    if head.get("kind") != KIND:
        raise ConfigError(f"{name}: not a plan: expected a file that `aclog plan --out` wrote")
    if head.get("version") != VERSION:
        raise ConfigError(f"{name}: a plan of version {head.get('version')}: expected {VERSION}")
    texts, steps = _steps(rest, name)
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


# How far an apply had come that has not ended: which of its steps it had sent, and which it had read back.


class Completion(Enum):
    """What a place that keeps a record of its own knows of an apply: it makes all steps at once, or none."""

    ALL = "ALL"
    NONE = "NONE"


@frozen(kw_only=True)
class Sent:
    """Steps of an apply, by their numbers from 0; it had not begun with those that are in neither set."""

    completed: frozenset[int] = frozenset()
    """They were read back."""
    unsure: frozenset[int] = frozenset()
    """They were sent, and not read back: nobody knows whether they were made."""

    def of(self, completion: Completion | None, steps: int) -> "Sent":
        """Return how far it had come, by what the place knows; None: it knows nothing."""
        if completion is None:
            return self
        return Sent(completed=frozenset(range(steps))) if completion is Completion.ALL else NOTHING_SENT

    def sending(self, completed: Iterable[int], piece: Iterable[int]) -> "Sent":
        """Return how far it has come when it sends a piece, after these steps were made.

        What was sent once and not read back may still be carried out.
        """
        numbers = frozenset(completed)
        return Sent(completed=numbers, unsure=(self.unsure | frozenset(piece)) - numbers)


NOTHING_SENT = Sent()


def sent_object(apply: str, sent: Sent) -> dict[str, object]:
    """Return the JSON object of the line that says how far an apply has come; steps as ranges, both ends included."""
    return {"kind": "SENT", "apply": apply, "made": _ranges(sent.completed), "unsure": _ranges(sent.unsure)}


def parse_sent(value: Mapping[str, Any], steps: int) -> Sent:
    """Return how far an apply of so many steps has come. Raises ConfigError: it lacks something."""
    try:
        sent = Sent(completed=_numbers(value["made"]), unsure=_numbers(value["unsure"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"not the line of a journal that says what was sent: {error}") from error
    if any(not 0 <= each < steps for each in sent.completed | sent.unsure):
        raise ConfigError(f"expected steps from 0 to {steps - 1}")
    return sent


def _ranges(numbers: frozenset[int]) -> list[list[int]]:
    # A place with many small batches asks for these before each of them.
    ordered = np.sort(np.fromiter(numbers, np.int64, len(numbers)))
    is_first = np.diff(ordered, prepend=-2) != 1
    begins = np.flatnonzero(is_first)
    ends = np.append(begins, len(ordered))[1:] - 1
    ranges: list[list[int]] = np.column_stack((ordered[begins], ordered[ends])).tolist()
    return ranges


def _numbers(ranges: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(number for first, last in ranges for number in range(first, last + 1))


# A place: where a plan is made for, and applied.


@define(eq=False, slots=False, kw_only=True)
class PlaceState:
    """What a place held when it was asked. Immutable by convention."""

    contents: AbstractSet[bytes]
    """The ACLs, as aclog.authorizer.acls_image has them."""
    end_offset: int | None = None
    """Of a log; None where there are no offsets."""
    exists: bool = True
    """Whether there is a place; one that is not there holds nothing, and is made by applying a plan."""
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
    """An open place, owned by one command."""

    @property
    def name(self) -> str:
        """What was opened, for messages."""
        ...

    @property
    def batching(self) -> Batching:
        """How much of a change becomes visible at once."""
        ...

    def identity(self) -> str | None:
        """Return the cluster id, or the id of a log that belongs to no cluster; None if nothing tells it yet.

        Raises:
            MetadataError: what should tell it is damaged, or nobody answers.

        """
        ...

    def fingerprint(self, end_offset: int) -> str | None:
        """Return what tells a place from others that has no identity: of a log, what it has below an offset.

        None: nothing does yet, it does not reach so far, or such places have an identity. Raises as `read`.
        """
        ...

    def premises(self, properties: AbstractSet[str]) -> Premises:
        """Return what decides there and is unknown, for the state and the settings that were read last.

        `properties`: the properties whose values are known. Raises as `settings`.
        """
        ...

    def settings(self) -> Settings | None:
        """Return super.users and allow.everyone.if.no.acl.found, if the place tells both; None: they are unknown.

        Raises:
            MetadataError: nobody answers.

        """
        ...

    def kafka(self, ranges: Iterable[str]) -> DecidingKafka:
        """Return what may decide on what `read` returned last; `ranges` are the hosts that matter.

        Raises:
            MetadataError: nobody answers.

        """
        ...

    def completion(self, apply: str) -> Completion | None:
        """Return what an apply did that may have been killed, if the place keeps a record of its own.

        None: nothing tells, or not all of its steps are made at once.

        Raises:
            MetadataError: the record, or what it is about, is damaged or cannot be read.

        """
        ...

    def check(self, steps: Sequence[Step]) -> None:
        """Check that the place can hold what these steps add, and that each can be made; nothing is asked.

        Raises:
            ConfigError: one cannot; the text says which, and why.

        """
        ...

    def read(self) -> PlaceState:
        """Return what the place holds now.

        Raises:
            MetadataError: it cannot be read whole, or nobody knows that it is up to date.

        """
        ...


@frozen(kw_only=True)
class ApplyNote:
    """What a place that keeps a record of its own is told of an apply."""

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
    """A place that is open for writing."""

    def note_begin(self, note: ApplyNote) -> None:
        """Keep durably that an apply begins, if the place keeps such a record. Raises LogError."""
        ...

    def note_done(self, note: ApplyNote) -> None:
        """Keep durably that it has ended. Raises LogError."""
        ...

    def noted(self, plan: str) -> ApplyNote | None:
        """Return the note that the place has kept of the newest apply of a plan, by its digest. Raises as `was_noted`.

        None: it has kept none, or keeps no notes.
        """
        ...

    def was_noted(self, apply: str) -> bool:
        """Return whether the place has kept a note of this apply. Raises MetadataError: its record is damaged."""
        ...

    def pieces(self, steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        """Yield the steps in the runs that are written at once, in order; a batch is never divided."""
        ...

    def write(self, piece: Sequence[Step]) -> None:
        """Make these steps, in order, and wait until they are committed; nothing else is changed.

        Raises:
            MetadataError: some may not have been made; the text says what the place said.

        """
        ...

    def read_back(self, acls: Sequence[StandardAcl]) -> set[StandardAcl]:
        """Return which of these ACLs the place has now. Raises as `read`."""
        ...
