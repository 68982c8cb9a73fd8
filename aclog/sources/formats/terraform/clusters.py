"""Which cluster a rule of Terraform is for: by its own attributes, by its provider, else by its root module."""

from collections.abc import Mapping

from attrs import evolve, field

from aclog.authorizer.acl import StatedCluster
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats.terraform.evaluation import evaluate
from aclog.sources.formats.terraform.hcl import (
    Attribute,
    Block,
    Expression,
    GetAttribute,
    ObjectOf,
    Traversal,
    literal_text,
)
from aclog.sources.formats.terraform.module import Module
from aclog.sources.formats.terraform.values import Value, ValueFault

ROOT_MODULE = "root module"
"""The basis of a cluster if nothing states it: a root module may be one, or a part of one."""
_PROVIDER = "kafka"
_SERVERS = "bootstrap_servers"


@frozen(kw_only=True)
class Providers:
    """What the calls of modules pass on to a module: the providers of the root module under its names."""

    root: Module
    aliases: Mapping[str, str] = field(factory=lambda: {"": ""})
    """The alias in the root module of the provider `kafka` that a module has under an alias; empty: the default."""

    def of_call(self, call: Block) -> "Providers":
        """Return what a called module has: the default, or what the argument `providers` names."""
        argument = call.body.attributes.get("providers")
        passed = dict[str, str]()
        for key, value in argument.value.items if argument is not None and isinstance(argument.value, ObjectOf) else ():
            own, other = _alias(key), _alias(value)
            if own is not None and other is not None:
                passed[own] = self.aliases.get(other, other)
        return evolve(self, aliases={"": self.aliases.get("", ""), **passed})

    def cluster(self, module: Module, block: Block, local: Mapping[str, Value]) -> StatedCluster:
        """Return the cluster of the rules of an instance of a block."""
        directory = self.root.source.directory
        for what, attribute in _own_clusters(block):
            text = _text(module, attribute, local)
            if text is not None:
                return StatedCluster(basis=f"{what} of Terraform", name=text, root=directory)
        provider = block.body.attributes.get("provider")
        alias = "" if provider is None else _alias(provider.value)
        if not block.labels[0].startswith("kafka_") or alias is None:
            return self.of_root()
        return self._of_provider(self.aliases.get(alias, alias))

    def _of_provider(self, alias: str) -> StatedCluster:
        """Return the cluster of a provider of the root module, by its servers if they are known."""
        root, directory = self.root, self.root.source.directory
        block = root.source.providers.get((_PROVIDER, alias))
        servers = None if block is None else block.body.attributes.get(_SERVERS)
        text = None if servers is None else _text(root, servers, {})
        if text is not None:
            return StatedCluster(basis=f"{_SERVERS} of a provider of Terraform", name=text, root=directory)
        if alias:
            name = f"{directory}: provider {_PROVIDER}.{alias}"
            return StatedCluster(basis="provider of Terraform", name=name, root=directory)
        return self.of_root()

    def of_root(self) -> StatedCluster:
        """Return the cluster of rules of which only the root module is known."""
        directory = self.root.source.directory
        return StatedCluster(basis=ROOT_MODULE, name=directory, root=directory)


def _own_clusters(block: Block) -> list[tuple[str, Attribute]]:
    """Return the attributes of a rule that name its cluster, and what they are called."""
    inner = {each.type: each.body.attributes for each in block.body.blocks if each.type in ("kafka_cluster", "cluster")}
    nested = [(f"{name}.id", attributes["id"]) for name, attributes in inner.items() if "id" in attributes]
    own = block.body.attributes
    return [*nested, *((name, own[name]) for name in ("cluster_id", "cluster", "cluster_api_url") if name in own)]


def _alias(expression: Expression) -> str | None:
    """Return the alias in `kafka.eu`, or an empty one for `kafka`; None: it is another provider."""
    text = literal_text(expression)
    if text is not None:  # a key of an object, or old style
        name, _, alias = text.partition(".")
        return alias if name == _PROVIDER else None
    if not isinstance(expression, Traversal) or expression.root != _PROVIDER:
        return None
    steps = expression.steps
    return steps[0].name if steps and isinstance(steps[0], GetAttribute) else ""


def _text(module: Module, attribute: Attribute, local: Mapping[str, Value]) -> str | None:
    """Return the value of an attribute: a text, or texts in any order; None: it is not known before apply."""
    try:
        value = evaluate(attribute.value, module.scope(attribute.file, local))
        if value.unknown is not None or value.is_null:
            return None
        if isinstance(value.payload, tuple):
            texts = [each.text for each in value.items if each.unknown is None and not each.is_null]
            return ",".join(sorted(texts)) if len(texts) == len(value.items) and texts else None
        return value.text if isinstance(value.payload, str) and value.payload else None
    except (ConfigError, ValueFault):
        return None
