"""The feature levels of a new cluster, by release (MetadataVersion, Feature; kafka-storage version-mapping)."""

import re
from collections.abc import Iterable, Mapping

from aclog.authorizer.settings import CIDR_FEATURE, RANGES_LEVEL, Generation
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import FeatureLevelRecord, RegisterBrokerRecord
from aclog.metalog.values import frozen
from aclog.snapshots.image import METADATA_VERSION, NEWEST_METADATA_VERSION

KRAFT_VERSION = "kraft.version"

_FIRST_LEVEL = 7
_NAMES = """
3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0
3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 4.2-IV1 4.3-IV0 4.4-IV0 4.4-IV1 4.4-IV2
"""
METADATA_VERSIONS: Mapping[str, int] = {name: level for level, name in enumerate(_NAMES.split(), _FIRST_LEVEL)}
"""Every metadata.version that Kafka 4.4.0 can format with, by name, and its level; 4.3.1 has those up to 4.3-IV0."""

NEWEST: Mapping[Generation, int] = {
    Generation.V4_3: METADATA_VERSIONS["4.3-IV0"],
    Generation.V4_4: NEWEST_METADATA_VERSION,
}
"""The newest metadata.version that a node of each generation supports; new clusters begin with it."""
SCRAM_SINCE = METADATA_VERSIONS["3.5-IV2"]
"""The first metadata.version whose log may contain SCRAM credentials."""

_RELEASES = {name.partition("-")[0]: level for name, level in METADATA_VERSIONS.items()}
_SHORT = re.compile(r"([0-9]+\.[0-9]+)\.[^.].*")
_SHORT_MAX = (1 << 15) - 1


@frozen(kw_only=True)
class _Feature:
    """A feature other than metadata.version: its highest level, and when a new cluster starts with it.

    `since` is the metadata.version from which on the highest level is the default; `needs` the one that level 1
    requires. `next_since` is the one from which on a generation of Kafka that has it starts with the level after.
    """

    name: str
    highest: int
    since: int
    needs: int = 0
    next_since: int | None = None

    def highest_in(self, generation: Generation) -> int:
        """Return the highest level that Kafka of a generation supports."""
        has_next = self.next_since is not None and self.next_since <= NEWEST[generation]
        return self.highest + 1 if has_next else self.highest

    def default_at(self, level: int) -> int:
        """Return the level with which a new cluster of this metadata.version starts."""
        if self.next_since is not None and level >= self.next_since:
            return self.highest + 1
        return self.highest if level >= self.since else 0


_FEATURES = (
    _Feature(name="eligible.leader.replicas.version", highest=1, since=26, needs=23),
    _Feature(name="group.version", highest=1, since=22),
    _Feature(name="share.version", highest=1, since=28, next_since=31),
    _Feature(name="streams.version", highest=1, since=29),
    _Feature(name="transaction.version", highest=2, since=24),
)
_KRAFT_HIGHEST = 1

SUPPORTED_FEATURES: Mapping[Generation, Mapping[str, tuple[int, int]]] = {
    generation: {
        KRAFT_VERSION: (0, _KRAFT_HIGHEST),
        METADATA_VERSION: (_FIRST_LEVEL, newest),
        **{feature.name: (0, feature.highest_in(generation)) for feature in _FEATURES},
    }
    for generation, newest in NEWEST.items()
}
"""The lowest and highest level of each feature that a node of each generation supports (Kafka's QuorumFeatures)."""


def supported_features(generation: Generation, *, cidr: bool) -> Mapping[str, tuple[int, int]]:
    """Return the features that a node announces to others as supported."""
    supported = SUPPORTED_FEATURES[generation]
    return {**supported, CIDR_FEATURE: (1, 1)} if cidr else supported


def decides_by_ranges(broker: RegisterBrokerRecord) -> bool:
    """Return whether a broker reads a host with a slash as a range: it is of Kafka 4.4, or has aclog.cidr.enabled."""
    return any(
        each.name == CIDR_FEATURE or (each.name == METADATA_VERSION and each.max_supported_version >= RANGES_LEVEL)
        for each in broker.features
    )


@frozen(kw_only=True)
class FeatureLevels:
    """A new cluster's metadata.version, by name and level, and the records of all features.

    `generation` is the oldest that can run on them, or the requested one.
    """

    generation: Generation
    release: str
    metadata_version: int
    records: tuple[FeatureLevelRecord, ...]


def feature_levels(
    release_version: str | None,
    settings: Iterable[str],
    *,
    dynamic_quorum: bool,
    generation: Generation = Generation.V4_3,
) -> FeatureLevels:
    """Return the levels for `--release-version` and `--feature name=level ...`.

    By default those of the newest release of `generation`; a level that only a later one has selects that.
    `dynamic_quorum`: the voters are in the log (kraft.version 1).

    Raises:
        ConfigError: an unknown release, feature or level, an unmet dependency, or contradicting settings.

    """
    requested = _requested(settings)
    if METADATA_VERSION in requested and release_version is not None:
        raise ConfigError(f"--release-version and --feature {METADATA_VERSION}=... contradict each other: expected one")
    level = (
        _level_of(release_version)
        if release_version is not None
        else requested.pop(METADATA_VERSION, NEWEST[generation])
    )
    names = {number: name for name, number in METADATA_VERSIONS.items()}
    if level not in names:
        raise ConfigError(f"--feature {METADATA_VERSION}={level}: expected a level from {_FIRST_LEVEL} to {max(names)}")
    if level > NEWEST[generation]:
        generation = Generation.V4_4
    _check_kraft_version(requested.pop(KRAFT_VERSION, None), dynamic_quorum=dynamic_quorum)
    levels = {feature.name: feature.default_at(level) for feature in _FEATURES}
    for name, requested_level in requested.items():
        _check(name, requested_level, level, generation)
        levels[name] = requested_level
    records = (FeatureLevelRecord(name=name, feature_level=value) for name, value in sorted(levels.items()) if value)
    return FeatureLevels(
        generation=generation,
        release=names[level],
        metadata_version=level,
        records=(FeatureLevelRecord(name=METADATA_VERSION, feature_level=level), *records),
    )


def _requested(settings: Iterable[str]) -> dict[str, int]:
    requested = {}
    for setting in settings:
        name, equals, level = setting.partition("=")
        if not equals or not (level.isascii() and level.isdigit()) or int(level) > _SHORT_MAX:
            raise ConfigError(f"--feature {setting!r}: expected <name>=<level>, such as transaction.version=2")
        requested[name.strip()] = int(level)
    return requested


def _level_of(release_version: str) -> int:
    """Return the level of `4.3`, `4.3.1` or `4.3-IV0` (MetadataVersion.fromVersionString)."""
    version = release_version.strip()
    if (exact := METADATA_VERSIONS.get(version)) is not None:
        return exact
    short = _SHORT.fullmatch(version)
    name = short[1] if short else version
    if name not in _RELEASES:
        versions = f"{min(METADATA_VERSIONS)} to {max(METADATA_VERSIONS)}"
        raise ConfigError(
            f"--release-version {release_version!r}: unknown: expected {versions}, or a release such as 4.3"
        )
    return _RELEASES[name]


def _check_kraft_version(level: int | None, *, dynamic_quorum: bool) -> None:
    if level is None:
        return
    if level > _KRAFT_HIGHEST:
        raise ConfigError(f"--feature {KRAFT_VERSION}={level}: expected 0 or {_KRAFT_HIGHEST}")
    if bool(level) != dynamic_quorum:
        why = (
            "the voters will be in the log (--standalone, --initial-controllers, --no-initial-controllers)"
            if dynamic_quorum
            else "the voters are in controller.quorum.voters"
        )
        raise ConfigError(
            f"--feature {KRAFT_VERSION}={level}: {why}: expected {int(dynamic_quorum)}, or the flag to be left out"
        )


def _check(name: str, requested_level: int, metadata_version: int, generation: Generation) -> None:
    feature = next((feature for feature in _FEATURES if feature.name == name), None)
    if feature is None:
        names = ", ".join([KRAFT_VERSION, METADATA_VERSION, *(feature.name for feature in _FEATURES)])
        raise ConfigError(f"--feature {name!r}: unknown: expected one of {names}")
    highest = feature.highest_in(generation)
    if requested_level > highest:
        raise ConfigError(f"--feature {name}={requested_level}: expected a level from 0 to {highest}")
    if requested_level and metadata_version < feature.needs:
        raise ConfigError(f"--feature {name}={requested_level}: requires {METADATA_VERSION} {feature.needs} or later")
