"""Which files are Strimzi's, and the users in them."""

from collections.abc import Iterator, Sequence

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.left_out import leave_out_resource
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.resources import Resource, resources
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.formats.strimzi.user_rules import rules_of_user

_GROUP = "kafka.strimzi.io/"
_VERSIONS = (f"{_GROUP}v1", f"{_GROUP}v1beta2")
_OTHERS = ("KafkaPrincipalAuthorization", "KafkaPrincipalRole", "AccessControlEntry")
"""Kinds that other tools make ACLs of: beside a KafkaUser, they would be left out."""


def claims(file: SourceFile) -> bool:
    """Return whether a KafkaUser of Strimzi is in the file; other tools have a kind of this name in groups of theirs.

    Raises:
        ConfigError: it may be and is not YAML; OSError: it cannot be read.

    """
    if not file.has_suffix(".yaml", ".yml", ".json") or not file.mentions(b"KafkaUser"):
        return False
    return any(_is_user(each) for each in resources(file.documents))


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of the KafkaUsers; everything else is counted.

    Raises:
        ConfigError: what the User Operator or Kubernetes refuses, a user that stands twice; with its file and line.
        OSError: a file cannot be read.

    """
    seen: dict[tuple[str, str], str] = {}
    for file in files:
        for resource in resources(file.documents):
            if _is_user(resource):
                _check_version(resource)
                _check_first(resource, seen)
                yield from rules_of_user(resource)
            elif resource.kind in _OTHERS:
                raise resource.node.error(f"a {resource.kind} beside a KafkaUser: put it into a file of its own")
            else:
                leave_out_resource(resource, context)
    if not seen:  # files that were not claimed, but given with the format
        raise ConfigError(f"{', '.join(file.name for file in files)}: expected a KafkaUser of {_VERSIONS[0]}")


def _is_user(resource: Resource) -> bool:
    return resource.kind == "KafkaUser" and (resource.api_version.startswith(_GROUP) or not resource.api_version)


def _check_version(resource: Resource) -> None:
    if resource.api_version not in _VERSIONS:
        version = resource.api_version or "missing"
        raise resource.node.error(f"KafkaUser of apiVersion {version[:60]}: expected {' or '.join(_VERSIONS)}")


def _check_first(resource: Resource, seen: dict[tuple[str, str], str]) -> None:
    """Refuse a second resource of the name: applied after the first, it replaces it."""
    namespace = resource.namespace
    identity = ("" if namespace is None else namespace.text("metadata.namespace"), resource.name)
    if identity in seen:
        raise resource.node.error(
            f"KafkaUser {resource.name[:60]} is in {seen[identity]} already: one would replace the other in a cluster"
        )
    seen[identity] = f"{resource.node.file}:{resource.node.line}"
