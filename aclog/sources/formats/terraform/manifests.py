"""Resources of Kubernetes inside of Terraform's: users in `kubernetes_manifest` and `kubectl_manifest`."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType

from attrs import evolve, field

from aclog.authorizer.acl import FileOrigin
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats import redpanda, strimzi
from aclog.sources.formats.nodes import Node, plain_value
from aclog.sources.formats.rule import LocatedRule, ReadContext, Resource, resources
from aclog.sources.formats.terraform.evaluation import evaluate
from aclog.sources.formats.terraform.hcl import Block, Call
from aclog.sources.formats.terraform.module import Module
from aclog.sources.formats.terraform.others import HOLDERS, judge_block
from aclog.sources.formats.terraform.values import STRING, Value, ValueFault, convert, number_text
from aclog.sources.formats.unread import UnreadKind
from aclog.sources.formats.verdicts import judge_resource


@frozen(kw_only=True)
class ManifestReader:
    """Reads the resources of one tree."""

    context: ReadContext
    _judged: set[tuple[str, int, str]] = field(factory=set, init=False, eq=False)
    """File and line of the blocks that were judged, and digests of documents, or none for a block as a whole: a module
    may be called twice, and instances may be equal."""

    def rules(self, module: Module, block: Block, local: Mapping[str, Value], address: str) -> Iterator[LocatedRule]:
        """Yield the rules of an instance of a block.

        Raises:
            ConfigError: a user that its operator refuses.

        """
        documents = self._documents(module, block, local)
        if documents is None:
            if self._is_first(block):
                judge_block(block.labels[0], block, self.context)
            return
        for resource in resources(documents):
            read = _READERS.get((resource.api_version.partition("/")[0], resource.kind))
            if read is None:
                if self._is_first(block, sha256(repr(plain_value(resource.node)).encode()).hexdigest()):
                    judge_resource(resource, self.context)
                continue
            origin = FileOrigin(file=block.file, line=block.line, address=address)
            for rule in read(resource, self.context):
                yield evolve(rule, origin=evolve(origin, cluster=rule.origin.cluster))

    def _documents(self, module: Module, block: Block, local: Mapping[str, Value]) -> list[Node] | None:
        """Return the resources; None if they cannot be evaluated."""
        attribute = block.body.attributes.get(HOLDERS[block.labels[0]])
        if attribute is None:
            return None
        expression = attribute.value
        if isinstance(expression, Call) and expression.name == "yamlencode" and len(expression.arguments) == 1:
            (expression,) = expression.arguments  # its text holds that value, and no other one
        try:
            value = evaluate(expression, module.scope(attribute.file, local))
            if value.unknown is not None or value.is_null:
                return None
            if value.type != STRING:
                return [node_of_value(value, attribute.file, attribute.line)]
            from aclog.sources.formats.yaml_nodes import parse_documents

            return parse_documents(value.text.encode(), f"{attribute.file}:{attribute.line}")
        except ConfigError:
            return None

    def not_counted(self, block: Block, why: str) -> None:
        """Report a block whose number of instances is unknown."""
        if self._is_first(block):
            self.context.not_read(UnreadKind.TERRAFORM, block, why, name=block.labels[0])

    def _is_first(self, block: Block, document: str = "") -> bool:
        """Return whether a block, or a document in it, is judged for the first time, and mark it as judged."""
        key = (block.file, block.line, document)
        is_first = key not in self._judged
        self._judged.add(key)
        return is_first


def _rules_of_user(user: Resource, context: ReadContext) -> Iterator[LocatedRule]:  # noqa: ARG001
    strimzi.check_version(user)
    yield from strimzi.rules_in_cluster(user)


_READERS = {
    ("kafka.strimzi.io", "KafkaUser"): _rules_of_user,
    **{(redpanda.GROUP, kind): redpanda.rules_of for kind in redpanda.KINDS},
}


def node_of_value(value: Value, file: str, line: int) -> Node:
    """Return a value as a node; an unknown one is a symbol, or has a tag if it has none."""
    if value.unknown is not None:
        tag = None if value.symbol else "unknown"
        return Node(file=file, line=line, value=value.symbol, raw=value.symbol, tag=tag)
    payload = value.payload
    if isinstance(payload, tuple):
        return Node(file=file, line=line, value=tuple(node_of_value(item, file, line) for item in payload))
    if isinstance(payload, Mapping):
        members = {key: node_of_value(item, file, line) for key, item in payload.items()}
        return Node(file=file, line=line, value=MappingProxyType(members))
    if payload is None or isinstance(payload, bool | str):
        return Node(file=file, line=line, value=payload, raw=_text(value))
    number = value.number
    return Node(
        file=file, line=line, value=number if isinstance(number, int) else float(number), raw=number_text(number)
    )


def _text(value: Value) -> str:
    try:
        return "" if value.is_null else convert(value, STRING).text
    except ValueFault:
        return ""
