"""What a broker may register with: all that Kafka's controllers refuse, and all that one could not replay. Pure."""

from aclog.authorizer.generation import CIDR_FEATURE
from aclog.metalog.records import RegisterBrokerRecord
from aclog.metalog.uuids import uuid_text
from aclog.nodes.apis.request import RequestError
from aclog.nodes.session import SecurityProtocol
from aclog.nodes.wire.error_codes import INVALID_REGISTRATION, UNSUPPORTED_VERSION
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image

MAX_REGISTRATION_BYTES = 16 << 10
"""Larger requests are refused: a broker with 100 directories and 10 listeners needs 4 kB. Kafka has no such limit."""

_DIRECTORIES_VERSION = 3
"""The version of RegisterBrokerRecord from which on a broker must have log directories."""
_RESERVED_IDS = 100
"""Directory ids below are reserved (DirectoryId.reserved)."""


def check_registration(image: Image, wanted: RegisterBrokerRecord) -> None:
    """Check a registration as ClusterControlManager.registerBroker does; `wanted` has the version to be written.

    Raises:
        RequestError: 119 invalid log directories or listeners, or no range of metadata.version, 35 a level of a feature
            that the broker does not support.

    """
    if wanted.version >= _DIRECTORIES_VERSION:
        _check_directories(image, wanted)
    _check_listeners(wanted)
    _check_features(image, wanted)


def _check_directories(image: Image, wanted: RegisterBrokerRecord) -> None:
    directories = set(wanted.log_dirs)
    if not directories:
        raise RequestError(INVALID_REGISTRATION, "No directories specified in request")
    if any(each.int < _RESERVED_IDS for each in directories):
        raise RequestError(INVALID_REGISTRATION, "Reserved directory ID in request")
    if len(directories) < len(wanted.log_dirs):
        raise RequestError(INVALID_REGISTRATION, "Duplicate directory ID in request")
    for broker in image.cluster.brokers():
        # A Kafka that replays a directory of two brokers ends: they are those of a copied data directory.
        if broker.broker_id != wanted.broker_id and (taken := directories.intersection(broker.log_dirs)):
            what = f"Broker {broker.broker_id} is already registered with directory {uuid_text(min(taken))}"
            raise RequestError(INVALID_REGISTRATION, what)


def _check_listeners(wanted: RegisterBrokerRecord) -> None:
    """Require listeners that a BrokerRegistration can hold: a Kafka that replays others ends."""
    names = [each.name for each in wanted.end_points]
    if "" in names:
        raise RequestError(INVALID_REGISTRATION, "Broker listeners must be named.")
    if len(set(names)) < len(names):
        raise RequestError(INVALID_REGISTRATION, "Duplicate listener name in request")
    protocols = {each.id for each in SecurityProtocol}
    for each in wanted.end_points:
        if each.security_protocol not in protocols:
            what = f"Unknown security protocol {each.security_protocol} of listener {each.name}"
            raise RequestError(INVALID_REGISTRATION, what)


def _check_features(image: Image, wanted: RegisterBrokerRecord) -> None:
    ranges = [(each.name, each.min_supported_version, each.max_supported_version) for each in wanted.features]
    names = {name for name, _, _ in ranges}
    if METADATA_VERSION not in names:
        raise RequestError(INVALID_REGISTRATION, f"Request features do not contain '{METADATA_VERSION}'")
    finalized = {record.name: record.feature_level for record in image.features.records()}
    for name, least, most in (*ranges, *((name, 0, 0) for name in finalized if name not in names)):
        level = finalized.get(name, 0)
        # A log without a metadata.version is not Kafka's, and there is none to support; nor is that feature Kafka's.
        ours = name == CIDR_FEATURE or (name == METADATA_VERSION and name not in finalized)
        if not ours and not least <= level <= most:
            raise RequestError(
                UNSUPPORTED_VERSION,
                "Unable to register because the broker does not support finalized version "
                f"{level} of {name}. The broker wants a version between {least} and {most}, inclusive.",
            )
