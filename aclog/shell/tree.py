"""The tree of a metadata image: the content of each path of the shell."""

from collections.abc import Callable, Mapping
from importlib.metadata import version

from attrs import frozen

from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.shell.acl_tree import acl_directory, ids_directory
from aclog.shell.credential_tree import kafka_scram_directory, kafka_token_directory, scram_directory, token_directory
from aclog.shell.kafka_text import (
    broker_text,
    metadata_version_name,
    metadata_version_text,
    provenance_text,
    zoned_time,
)
from aclog.shell.tree_nodes import Directory, File, Node, computed, directory, file
from aclog.snapshots.cluster import ClusterImage
from aclog.snapshots.features import METADATA_VERSION, FeaturesImage
from aclog.snapshots.image import Image

KAFKA_EPOCH_OF_NOTHING = -1


@frozen(kw_only=True)
class ImageOrigin:
    """Where an image comes from: the name of the source, and the high-water mark if it is a log."""

    source: str
    high_watermark: Callable[[], int] | None = None
    acls: Origins = NO_ORIGINS
    """Where its ACLs stand."""


def image_tree(image: Image, origin: ImageOrigin, *, show_secrets: bool = False) -> Directory:
    """Return the tree of an image; nodes are computed on access.

    `/acl`, `/scram`, `/delegationToken` and `/features` contain the image as JSON and plain values, `/image` the same
    as Kafka's shell, `/local` facts about the source.
    """
    return computed(
        {
            "acl": lambda: acl_directory(image.acls, origin.acls),
            "delegationToken": lambda: token_directory(image.tokens),
            "features": lambda: _features(image.features),
            "image": lambda: _kafka_image(image, show_secrets=show_secrets),
            "local": lambda: _local(image, origin),
            "scram": lambda: scram_directory(image.scram, show_secrets=show_secrets),
        }
    )


def _kafka_image(image: Image, *, show_secrets: bool) -> Directory:
    return computed(
        {
            "acls": lambda: computed({"byId": lambda: ids_directory(image.acls, lambda rule: str(rule.acl))}),
            "cluster": lambda: computed({"brokers": lambda: _kafka_brokers(image.cluster)}),
            "delegationToken": lambda: kafka_token_directory(image.tokens),
            "features": lambda: _kafka_features(image.features),
            "provenance": lambda: file(_provenance(image)),
            "scram": lambda: kafka_scram_directory(image.scram, show_secrets=show_secrets),
        }
    )


def _kafka_brokers(cluster: ClusterImage) -> Directory:
    texts = {str(broker.broker_id): _constant(broker_text(broker)) for broker in cluster.brokers()}
    return computed(texts)


def _provenance(image: Image) -> str:
    epoch = image.epoch if image.end_offset else KAFKA_EPOCH_OF_NOTHING
    return provenance_text(image.end_offset - 1, epoch, image.timestamp)


def _features(features: FeaturesImage) -> Directory:
    def child(name: str) -> Node | None:
        """Return the level of a feature, with its name for metadata.version."""
        level = features.level(name)
        known = metadata_version_name(level) if name == METADATA_VERSION else None
        return file(f"{level} ({known})" if known else str(level)) if level else None

    return directory(lambda: (record.name for record in features.records()), child)


def _kafka_features(features: FeaturesImage) -> Directory:
    files: dict[str, Callable[[], Node]] = {
        f"finalized_{record.name}": _constant(str(record.feature_level))
        for record in features.records()
        if record.name != METADATA_VERSION
    }
    return computed({**files, "metadataVersion": _constant(metadata_version_text(features.level(METADATA_VERSION)))})


def _constant(text: str) -> Callable[[], Node]:
    return lambda: file(text)


def _local(image: Image, origin: ImageOrigin) -> Directory:
    texts: Mapping[str, Callable[[], str]] = {
        "behind": lambda: _behind(image, origin),
        "epoch": lambda: str(image.epoch),
        "offset": lambda: str(image.end_offset),
        "opaque": lambda: (
            f"{len(image.opaque)} records that aclog preserves without interpreting them, {image.opaque.size} bytes"
        ),
        "source": lambda: origin.source,
        "time": lambda: zoned_time(image.timestamp),
        "version": lambda: version("aclog"),
    }
    return computed({name: _lazily(text) for name, text in texts.items()})


def _lazily(text: Callable[[], str]) -> Callable[[], Node]:
    return lambda: File(text=text)


def _behind(image: Image, origin: ImageOrigin) -> str:
    """Return how many committed records are not in the image; 0 if the source is not a log."""
    mark = origin.high_watermark() if origin.high_watermark else image.end_offset
    return str(max(0, mark - image.end_offset))
