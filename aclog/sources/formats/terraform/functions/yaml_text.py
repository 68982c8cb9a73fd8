"""yamldecode(): YAML as Terraform reads it, which is not quite YAML 1.1 (zclconf/go-cty-yaml)."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

import yaml
from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.numbers import parse_number
from aclog.sources.formats.terraform.values.types import STRING
from aclog.sources.formats.terraform.values.value import (
    FALSE,
    NULL,
    TRUE,
    Value,
    number,
    object_value,
    string,
    tuple_value,
)
from aclog.sources.formats.yaml_nodes import parse_documents

_TAGS = "tag:yaml.org,2002:"
_MOST = 200_000
"""Values in one text, each alias counted in full."""

_WORDS: Mapping[str, Value] = MappingProxyType(
    {
        **{word: TRUE for each in ("y", "yes", "true", "on") for word in (each, each.capitalize(), each.upper())},
        **{word: FALSE for each in ("n", "no", "false", "off") for word in (each, each.capitalize(), each.upper())},
        **dict.fromkeys(("", "~", "null", "Null", "NULL"), NULL),
    }
)
_BASED = re.compile(r"0(?:o([0-7]+)|x([0-9a-fA-F]+))\Z")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt ]|\Z)")


def _yamldecode(text: Value) -> Value:
    try:
        parse_documents(text.text.encode(), "text")  # nested too deep, aliases of what they are in
        loader = yaml.CBaseLoader(text.text)
        documents = []
        while loader.check_node():
            documents.append(cast("yaml.Node", loader.get_node()))
    except (ConfigError, yaml.YAMLError) as error:
        raise ValueFault(f"not YAML: {str(error).splitlines()[0]}") from error
    if len(documents) != 1:
        raise ValueFault("one document is expected")
    return _Values().value(documents[0])


@define
class _Values:
    """Turns nodes into values; owned by one text."""

    count: int = 0
    sizes: dict[int, tuple[Value, int]] = field(factory=dict)

    def value(self, node: yaml.Node) -> Value:
        """Return the value of a node. Raises ValueFault: it is not understood, or too much."""
        done = self.sizes.get(id(node))
        if done is None:
            before = self.count
            made = self._made(node)
            self.count += 1
            self.sizes[id(node)] = made, self.count - before
        else:
            made = done[0]
            self.count += done[1]
        if self.count > _MOST:
            raise ValueFault(f"more than {_MOST:,} values")
        return made

    def _made(self, node: yaml.Node) -> Value:
        if isinstance(node, yaml.MappingNode):
            return object_value(self._members(node))
        if isinstance(node, yaml.SequenceNode):
            return tuple_value([self.value(item) for item in node.value])
        return _scalar(cast("yaml.ScalarNode", node))

    def _members(self, node: yaml.MappingNode) -> dict[str, Value]:
        merged: dict[str, Value] = {}
        members: dict[str, Value] = {}
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ValueFault("a key that is a mapping or a list")
            value = self.value(item)
            if key.value == "<<" and not key.style:
                if not isinstance(value.payload, Mapping):
                    raise ValueFault("`<<` merges mappings only")
                merged.update(value.entries)
            else:
                members[string(key.value).text] = value
        return {**merged, **members}


def _scalar(node: yaml.ScalarNode) -> Value:
    text = str(node.value)
    tag = node.tag if node.tag and not node.tag.startswith(_TAGS) else None
    if tag is not None:
        raise ValueFault(f"the tag {tag[:40]} is not understood")
    if node.style:
        return string(text)
    word = _WORDS.get(text)
    if word is not None:
        return word
    based = _BASED.match(text)
    if based is not None:
        return number(int(based[1], 8) if based[1] else int(based[2], 16))
    if _DATE.match(text):
        raise ValueFault("a date without quotes: aclog does not read these")
    parsed = parse_number(text)
    return string(text) if parsed is None else number(parsed)


YAML_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {"yamldecode": Function(parameters=(STRING,), body=_yamldecode)}
)
