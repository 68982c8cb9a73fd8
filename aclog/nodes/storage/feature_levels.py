"""The feature levels of a new cluster, by release (MetadataVersion, Feature; kafka-storage version-mapping)."""

import re
from collections.abc import Iterable, Mapping

from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.metalog.records import FeatureLevelRecord
from aclog.snapshots.features import METADATA_VERSION

KRAFT_VERSION = "kraft.version"

_FIRST_LEVEL = 7
_NAMES = """
3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0
3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 4.2-IV1 4.3-IV0
"""
METADATA_VERSIONS: Mapping[str, int] = {name: level for level, name in enumerate(_NAMES.split(), _FIRST_LEVEL)}
"""Every metadata.version that Kafka 4.3.1 can format with, by name, and its level."""

NEWEST = max(METADATA_VERSIONS.values())
SCRAM_SINCE = METADATA_VERSIONS["3.5-IV2"]
"""The first metadata.version whose log may contain SCRAM credentials."""

_RELEASES = {name.partition("-")[0]: level for name, level in METADATA_VERSIONS.items()}
_SHORT = re.compile(r"([0-9]+\.[0-9]+)\.[^.].*")
_SHORT_MAX = (1 << 15) - 1


@frozen(kw_only=True)
class _Feature:
    """A feature other than metadata.version: its highest level, and when a new cluster starts with it.

    `since` is the metadata.version from which on the highest level is the default; `needs` the one that level 1
    requires.
    """

    name: str
    highest: int
    since: int
    needs: int = 0


_FEATURES = (
    _Feature(name="eligible.leader.replicas.version", highest=1, since=26, needs=23),
    _Feature(name="group.version", highest=1, since=22),
    _Feature(name="share.version", highest=1, since=28),
    _Feature(name="streams.version", highest=1, since=29),
    _Feature(name="transaction.version", highest=2, since=24),
)
_KRAFT_HIGHEST = 1

SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = {
    KRAFT_VERSION: (0, _KRAFT_HIGHEST),
    METADATA_VERSION: (_FIRST_LEVEL, NEWEST),
    **{feature.name: (0, feature.highest) for feature in _FEATURES},
}
"""The lowest and highest level of each feature that a node supports (Kafka 4.3.1's QuorumFeatures)."""

CIDR_FEATURE = "aclog.cidr"
"""A node that decides by CIDR ranges (aclog.cidr.enabled) supports level 1 of it; it is never finalized."""


def supported_features(*, cidr: bool) -> Mapping[str, tuple[int, int]]:
    """Return the features that a node tells others it supports."""
    return {**SUPPORTED_FEATURES, CIDR_FEATURE: (1, 1)} if cidr else SUPPORTED_FEATURES


@frozen(kw_only=True)
class FeatureLevels:
    """A new cluster's metadata.version, by name and level, and the records of all features."""

    release: str
    metadata_version: int
    records: tuple[FeatureLevelRecord, ...]


def feature_levels(release_version: str | None, settings: Iterable[str], *, dynamic_quorum: bool) -> FeatureLevels:
    """Return the levels for `--release-version` and `--feature name=level ...`; by default those of the newest release.

    `dynamic_quorum`: the voters are in the log (kraft.version 1).

    Raises:
        ConfigError: an unknown release, feature or level, an unmet dependency, or contradicting settings.

    """
    requested = _requested(settings)
    if METADATA_VERSION in requested and release_version is not None:
        raise ConfigError(f"--release-version and --feature {METADATA_VERSION}=... contradict each other: expected one")
    level = _level_of(release_version) if release_version is not None else requested.pop(METADATA_VERSION, NEWEST)
    names = {number: name for name, number in METADATA_VERSIONS.items()}
    if level not in names:
        raise ConfigError(f"--feature {METADATA_VERSION}={level}: expected a level from {_FIRST_LEVEL} to {NEWEST}")
    _check_kraft_version(requested.pop(KRAFT_VERSION, None), dynamic_quorum=dynamic_quorum)
    levels = {feature.name: feature.highest if level >= feature.since else 0 for feature in _FEATURES}
    for name, wanted in requested.items():
        _check(name, wanted, level)
        levels[name] = wanted
    records = (FeatureLevelRecord(name=name, feature_level=value) for name, value in sorted(levels.items()) if value)
    return FeatureLevels(
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
    if (found := METADATA_VERSIONS.get(version)) is not None:
        return found
    short = _SHORT.fullmatch(version)
    name = short[1] if short else version
    if name not in _RELEASES:
        known = f"{min(METADATA_VERSIONS)} to {max(METADATA_VERSIONS)}"
        raise ConfigError(
            f"--release-version {release_version!r}: not known: expected {known}, or a release such as 4.3"
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


def _check(name: str, wanted: int, metadata_version: int) -> None:
    feature = next((feature for feature in _FEATURES if feature.name == name), None)
    if feature is None:
        known = ", ".join([KRAFT_VERSION, METADATA_VERSION, *(feature.name for feature in _FEATURES)])
        raise ConfigError(f"--feature {name!r}: not known: expected one of {known}")
    if wanted > feature.highest:
        raise ConfigError(f"--feature {name}={wanted}: expected a level from 0 to {feature.highest}")
    if wanted and metadata_version < feature.needs:
        raise ConfigError(f"--feature {name}={wanted}: requires {METADATA_VERSION} {feature.needs} or later")
