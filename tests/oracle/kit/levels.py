"""Levels of metadata.version and features of a release, beside what aclog knows of them.

aclog may know more than an older release: what counts is that it knows all that the release has, by the same name and
with the same meaning.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from aclog.authorizer.settings import RANGES_LEVEL, generation_of_level, generation_of_version
from aclog.metalog.errors import ConfigError
from aclog.server.controller.apis import SCRAM_SINCE as CONTROLLER_SCRAM_SINCE
from aclog.server.controller.registrations import TOKENS_SINCE, UNREGISTRATION_SINCE
from aclog.server.feature_levels import KRAFT_VERSION, METADATA_VERSIONS, SCRAM_SINCE
from aclog.shell.tree import metadata_version_name
from aclog.snapshots.image import METADATA_VERSION, NEWEST_METADATA_VERSION, TRANSACTIONS_SINCE, register_broker_version
from tests.oracle.kit.assumptions import assumed_generation, default_features, supported_features
from tests.oracle.kit.values import Difference, Outcome
from tests.support.kafka.release_facts import FeatureFacts, LevelFacts, ReleaseFacts

CHECK = "levels and features"

GATES: Mapping[str, Callable[[int], bool | int] | None] = MappingProxyType(
    {
        "isScramSupported": lambda level: level >= SCRAM_SINCE and level >= CONTROLLER_SCRAM_SINCE,
        "isDelegationTokenSupported": lambda level: level >= TOKENS_SINCE,
        "isMetadataTransactionSupported": lambda level: level >= TRANSACTIONS_SINCE,
        "registerBrokerRecordVersion": register_broker_version,
        "isCidrAclSupported": lambda level: level >= RANGES_LEVEL,
        "isControllerUnregistrationSupported": lambda level: level >= UNREGISTRATION_SINCE,
        # Nothing in aclog depends on these.
        "didMetadataChange": None,
        "fetchRequestVersion": None,
        "isControllerRegistrationSupported": None,
        "isCordonedLogDirsSupported": None,
        "isDirectoryAssignmentSupported": None,
        "isElrSupported": None,
        "isLeaderEpochBumpRequiredOnIsrShrink": None,
        "isMigrationSupported": None,
        "isProduction": None,
        "listOffsetRequestVersion": None,
        "partitionChangeRecordVersion": None,
        "partitionRecordVersion": None,
        "registerControllerRecordVersion": None,
    }
)
"""What a MetadataVersion says of a level, and what aclog assumes of it; any other is new in the release."""


def check_levels(facts: ReleaseFacts) -> Outcome:
    """Compare levels, what they gate, and features."""
    found = [
        *_limits(facts),
        *(difference for level in facts.levels for difference in _level(level)),
        *_new_gates(facts),
        *(difference for feature in facts.features for difference in _feature(feature, facts)),
    ]
    compared = len(facts.levels) * (1 + len(GATES)) + len(facts.features) * (1 + len(facts.levels))
    notes = (f"{len(facts.levels)} levels, {len(facts.features)} features",)
    return Outcome(check=CHECK, compared=compared, differences=tuple(found), notes=notes)


def _limits(facts: ReleaseFacts) -> Iterator[Difference]:
    oldest = min(METADATA_VERSIONS.values())
    if facts.minimum_level != oldest:
        yield Difference(subject="the oldest level", kafka=str(facts.minimum_level), aclog=str(oldest))
    if facts.newest_level > NEWEST_METADATA_VERSION:
        newest = f"a node stops above {NEWEST_METADATA_VERSION}"
        yield Difference(subject="the newest production level", kafka=str(facts.newest_level), aclog=newest)
    try:
        by_version = generation_of_version(facts.version)
    except ConfigError as error:
        yield Difference(subject="the rules of decisions", kafka=facts.version, aclog=str(error))
        return
    by_level = generation_of_level(facts.newest_level)
    if by_level is not by_version:
        subject = "the rules of decisions by the newest level that a broker registers"
        yield Difference(subject=subject, kafka=f"{facts.version}: {by_version}", aclog=f"{by_level}")


def _level(level: LevelFacts) -> Iterator[Difference]:
    subject = f"metadata.version {level.level}"
    name = metadata_version_name(level.level)
    if name != level.name and (name is not None or level.is_production):
        yield Difference(subject=f"{subject}, its name", kafka=level.name, aclog=name or "not known")
    if level.is_production and METADATA_VERSIONS.get(level.name) != level.level:
        yield Difference(subject=f"{subject}, format", kafka="production", aclog="no cluster is formatted with it")
    for gate, assumed in GATES.items():
        if assumed is not None and gate in level.gates and level.gates[gate] != assumed(level.level):
            aclog = str(assumed(level.level))
            yield Difference(subject=f"{subject}, {gate}", kafka=str(level.gates[gate]), aclog=aclog)


def _new_gates(facts: ReleaseFacts) -> Iterator[Difference]:
    """A new method of MetadataVersion: something depends on the level that did not before."""
    newest = facts.levels[-1]
    for gate in sorted(newest.gates.keys() - GATES.keys()):
        values = {level.level: level.gates[gate] for level in facts.levels}
        since = {value: min(level for level, each in values.items() if each == value) for value in values.values()}
        told = ", ".join(f"{value} from level {level}" for value, level in since.items())
        yield Difference(subject=f"MetadataVersion.{gate}", kafka=told, aclog="not known")


def _feature(feature: FeatureFacts, facts: ReleaseFacts) -> Iterator[Difference]:
    generation = assumed_generation(facts.version)
    supported = supported_features(generation).get(feature.name)
    if supported is None:
        yield Difference(subject=feature.name, kafka=f"{feature.least} to {feature.most}", aclog="not known")
        return
    least, most = supported
    if feature.name == METADATA_VERSION:
        return  # compared level by level
    if feature.least < least or feature.most > most:
        yield Difference(
            subject=f"{feature.name}, levels", kafka=f"{feature.least} to {feature.most}", aclog=f"{least} to {most}"
        )
    if feature.name == KRAFT_VERSION:
        return  # follows from how voters are named, not from metadata.version
    for level in facts.levels:
        if METADATA_VERSIONS.get(level.name) != level.level or not level.is_production:
            continue
        default = default_features(generation, level.name).get(feature.name, 0)
        if default != feature.defaults[level.level]:
            subject = f"{feature.name}, default of a cluster formatted at {level.name}"
            yield Difference(subject=subject, kafka=str(feature.defaults[level.level]), aclog=str(default))
