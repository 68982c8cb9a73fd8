"""Reads the names of a source."""

from collections.abc import Mapping

from aclog.authorizer.acl import ResourceType
from aclog.cli.completion.name_kind import NameKind
from aclog.sources.choice import SourceSelection, choose_source

_KINDS = {
    ResourceType.TOPIC: NameKind.TOPIC,
    ResourceType.GROUP: NameKind.GROUP,
    ResourceType.TRANSACTIONAL_ID: NameKind.TRANSACTIONAL_ID,
    ResourceType.DELEGATION_TOKEN: NameKind.DELEGATION_TOKEN,
    ResourceType.USER: NameKind.PRINCIPAL,
}


def collect(selection: SourceSelection) -> Mapping[str, set[str]]:
    """Return the names in a state by their kind: those of its rules, its users, and the topics that exist.

    Raises:
        MetadataError, OSError: the source cannot be read.

    """
    chosen = choose_source(selection, lambda _: None)
    image = chosen.image()
    found: dict[str, set[str]] = {kind: set() for kind in NameKind}
    for pattern in image.acls.resource_patterns():
        if (kind := _KINDS.get(ResourceType(pattern.resource_type))) is not None:
            found[kind].add(pattern.name)
    found[NameKind.TOPIC].update(image.opaque.topic_names(), chosen.topic_names())
    found[NameKind.PRINCIPAL].update(image.acls.principals(), (f"User:{each.user}" for each in image.scram.describe()))
    for token in image.tokens.records():
        found[NameKind.DELEGATION_TOKEN].add(token.token_id)
        found[NameKind.PRINCIPAL].add(token.owner)
    return found
