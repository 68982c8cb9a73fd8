"""What aclog assumes of a release where it depends on the release; all that the checks ask of it is here."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.control import create_acls
from aclog.authorizer.interface import AclRequestError
from aclog.authorizer.settings import Generation, generation_of_version
from aclog.metalog.errors import ConfigError
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS, ApiVersion, served_by
from aclog.server import feature_levels


def assumed_generation(version: str) -> Generation:
    """The rules that a release decides by; the newest rules for one that aclog does not know yet."""
    try:
        return generation_of_version(version)
    except ConfigError:
        return list(Generation)[-1]


def decides_in_core(image: AclsImage) -> bool:
    """Whether the native core decides on an image; else it leaves each request to the Python path."""
    return image.index.core is not None


def creation_errors(acls: Sequence[StandardAcl], generation: Generation, level: int) -> list[AclRequestError | None]:
    """The error of each ACL that one request creates in an empty cluster at a level of metadata.version."""
    ids = (UUID(int=number) for number in range(1, len(acls) + 1))
    created = create_acls(AclsImage.empty(), acls, lambda: next(ids), generation=generation, level=level)
    return [result.error for result in created.results]


def served_apis(generation: Generation) -> Mapping[str, Sequence[ApiVersion]]:
    """The APIs of a node's listeners, by Kafka's name of the kind of listener."""
    return {"BROKER": served_by(BROKER_APIS, generation), "CONTROLLER": served_by(CONTROLLER_APIS, generation)}


def node_settings(generation: Generation) -> Mapping[str, str]:
    """The properties of a node that decides by the rules of a generation."""
    return {"aclog.kafka.version": generation.value} if generation.has_ranges else {}


def supported_features(generation: Generation) -> Mapping[str, tuple[int, int]]:
    """The features that such a node supports, with the lowest and highest level."""
    return feature_levels.supported_features(generation, cidr=generation.has_ranges)


def default_features(generation: Generation, release: str | None = None) -> Mapping[str, int]:
    """The finalized features of a cluster formatted at a level, such as 4.3-IV0, or at the default level."""
    records = feature_levels.feature_levels(release, (), dynamic_quorum=True, generation=generation).records
    return {record.name: record.feature_level for record in records}
