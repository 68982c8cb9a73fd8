"""What the classes of a release of Kafka say of themselves (tests/jvm/java/ReleaseFacts.java is the other end)."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from attrs import frozen

from tests.support.kafka.jvm import run_tool


class ReleaseFactsError(Exception):
    """The program ended with an error; its stderr is in the text."""


@frozen(kw_only=True)
class FieldFacts:
    """A field of a record: its name in snake case, its type, and its tag if it has one.

    A type is {"plain": name of the wire type}, {"array": type, "compact", "nullable"} or {"struct": fields}.
    """

    name: str
    type: Mapping[str, Any]
    tag: int | None

    @classmethod
    def all_of(cls, rows: Sequence[Mapping[str, Any]]) -> "tuple[FieldFacts, ...]":
        return tuple(cls(name=row["name"], type=row["type"], tag=row.get("tag")) for row in rows)


@frozen(kw_only=True)
class RecordFacts:
    """A type of metadata record, and the fields of each version."""

    name: str
    api_key: int
    versions: Mapping[int, tuple[FieldFacts, ...]]

    @property
    def newest(self) -> int:
        return max(self.versions)


@frozen(kw_only=True)
class LevelFacts:
    """A level of metadata.version; `gates` is what each method says of it: a flag, a version, or nothing."""

    level: int
    name: str
    gates: Mapping[str, bool | int | None]

    @property
    def is_production(self) -> bool:
        return bool(self.gates["isProduction"])


@frozen(kw_only=True)
class FeatureFacts:
    """A feature: the levels that a server supports, and the default of a new cluster by level of metadata.version."""

    name: str
    least: int
    most: int
    defaults: Mapping[int, int]


@frozen(kw_only=True)
class ApiFacts:
    """An API: the stable versions, None where there is none, and whether each of them is flexible."""

    key: int
    name: str
    listeners: frozenset[str]
    oldest: int | None
    newest: int | None
    flexible: tuple[bool, ...]

    @property
    def versions(self) -> range:
        return range(0) if self.oldest is None or self.newest is None else range(self.oldest, self.newest + 1)


@frozen(kw_only=True)
class ReleaseFacts:
    """One release: `version` and `commit` are those of its kafka-clients jar."""

    version: str
    commit: str
    records: tuple[RecordFacts, ...]
    levels: tuple[LevelFacts, ...]
    minimum_level: int
    newest_level: int
    features: tuple[FeatureFacts, ...]
    apis: tuple[ApiFacts, ...]
    errors: Mapping[int, str]
    codes: Mapping[str, Mapping[str, int]]
    supported_operations: Mapping[str, tuple[str, ...]]


@cache
def release_facts(version: str) -> ReleaseFacts:
    """Ask the classes of a release.

    Raises:
        ReleaseFactsError: the program failed: a class or method is not where it was in 4.0 to 4.4.

    """
    done = run_tool("aclog.ReleaseFacts", version=version)
    if done.exit_code:
        raise ReleaseFactsError(f"ReleaseFacts on Kafka {version}: {done.err[-4000:]}")
    return _parse(json.loads(done.out))


def _parse(row: Mapping[str, Any]) -> ReleaseFacts:
    return ReleaseFacts(
        version=row["version"],
        commit=row["commit"],
        records=tuple(map(_record, row["records"])),
        levels=tuple(LevelFacts(**each) for each in row["levels"]),
        minimum_level=row["minimumLevel"],
        newest_level=row["newestLevel"],
        features=tuple(map(_feature, row["features"])),
        apis=tuple(map(_api, row["apis"])),
        errors={int(code): name for code, name in row["errors"].items()},
        codes=row["codes"],
        supported_operations={name: tuple(each) for name, each in row["supportedOperations"].items()},
    )


def _record(row: Mapping[str, Any]) -> RecordFacts:
    versions = {int(version): FieldFacts.all_of(fields) for version, fields in row["versions"].items()}
    return RecordFacts(name=row["name"], api_key=row["apiKey"], versions=versions)


def _feature(row: Mapping[str, Any]) -> FeatureFacts:
    defaults = {int(level): default for level, default in row["defaults"].items()}
    return FeatureFacts(name=row["name"], least=row["least"], most=row["most"], defaults=defaults)


def _api(row: Mapping[str, Any]) -> ApiFacts:
    return ApiFacts(
        key=row["key"],
        name=row["name"],
        listeners=frozenset(row["listeners"]),
        oldest=row.get("oldest"),
        newest=row.get("newest"),
        flexible=tuple(row["flexible"]),
    )
