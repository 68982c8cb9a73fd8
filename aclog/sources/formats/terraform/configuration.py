"""Rules of a Terraform configuration: every root module of a tree, expanded."""

import json
from collections.abc import Iterator, Mapping, Sequence

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.origin import FileOrigin
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.formats.terraform.acl_schema import SCHEMAS, AclSchema, may_make_rules
from aclog.sources.formats.terraform.errors import EvaluationError
from aclog.sources.formats.terraform.evaluation import evaluate
from aclog.sources.formats.terraform.hcl.syntax import Block
from aclog.sources.formats.terraform.instances import Key
from aclog.sources.formats.terraform.loading import Modules
from aclog.sources.formats.terraform.module import Module
from aclog.sources.formats.terraform.root_module import root_module
from aclog.sources.formats.terraform.values.conversion import convert
from aclog.sources.formats.terraform.values.errors import TooLargeError, ValueFault
from aclog.sources.formats.terraform.values.types import STRING
from aclog.sources.formats.terraform.values.value import Value, string


def read_configuration(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of the root modules among the directories of these files.

    A file that is given alone stands for its own blocks: its module is evaluated, and only they make rules.

    Raises:
        ConfigError: something on the way to a rule is wrong, unknown or not understood, with file and line.
        OSError: a file cannot be read.

    """
    modules = Modules(context)
    directories = {file.path.rpartition("/")[0] or "." for file in files}
    alone = files[0].name if context.tree.paths() == [files[0].path] else None
    for directory in modules.roots(directories):
        root = root_module(modules, directory)
        yield from _rules(root, alone, "")
    _count_others(modules, context)


def _rules(module: Module, only_file: str | None, above: str) -> Iterator[LocatedRule]:
    """Yield the rules of a module; `above` is its own address with a dot behind it, empty for the root."""
    for (kind, name), block in module.source.resources.items():
        schema = SCHEMAS.get(kind)
        if schema is not None and only_file in (None, block.file):
            for key, local in module.instances(block).known().items():
                address = f"{above}{kind}.{name}{_index(key)}"
                origin = FileOrigin(file=block.file, line=block.line, address=address)
                yield LocatedRule(acl=_acl(module, block, schema, local), origin=origin)
    for name, block in module.source.calls.items():
        if only_file in (None, block.file):
            for key in module.instances(block).known():
                yield from _rules(module.child(block, key), None, f"{above}module.{name}{_index(key)}.")


def _index(key: Key) -> str:
    if key is None:
        return ""
    return f"[{key}]" if isinstance(key, int) else f"[{json.dumps(key, ensure_ascii=False)}]"


def _acl(module: Module, block: Block, schema: AclSchema, local: Mapping[str, Value]) -> StandardAcl:
    for name, attribute in block.body.attributes.items():
        if name not in schema.names and name not in schema.others:
            raise ConfigError(f"{attribute.file}:{attribute.line}: {block.labels[0]} has no attribute {name}")
    for inner in block.body.blocks:
        name = inner.labels[0] if inner.type == "dynamic" and inner.labels else inner.type
        if name not in schema.others:
            raise ConfigError(f"{inner.file}:{inner.line}: {block.labels[0]} has no block {name}")
    values = {name: _value(module, block, name, schema.defaults.get(name), local) for name in schema.names}
    texts = {name: value.text for name, value in values.items()}
    hidden = [name for name, value in values.items() if value.sensitive]
    return schema.rule(texts, hidden, lambda name, what: _error(block, name, what))


def _value(module: Module, block: Block, name: str, default: str | None, local: Mapping[str, Value]) -> Value:
    """Return the string that an attribute is."""
    attribute = block.body.attributes.get(name)
    value = None
    if attribute is not None:
        try:
            value = evaluate(attribute.value, module.scope(attribute.file, local))
        except EvaluationError as error:
            raise ConfigError(str(error)) from error
        except TooLargeError as error:
            raise _error(block, name, f"{name}: {error}") from error
    if value is None or value.is_null:
        if default is None:
            raise _error(block, name, f"{name} is missing" if value is None else f"{name} is null")
        return string(default)
    if value.unknown is not None:
        here = str(_error(block, name, ""))
        what = value.unknown.what if here.startswith(f"{value.unknown.where}:") else str(value.unknown)
        raise _error(block, name, f"{name} depends on {what}: read a plan or a state instead (terraform show -json)")
    try:
        return convert(value, STRING)
    except ValueFault as fault:
        raise _error(block, name, f"{name}: {fault}") from fault


def _error(block: Block, name: str, what: str) -> ConfigError:
    """Return an error at an attribute of a block, or at the block."""
    attribute = block.body.attributes.get(name)
    line = block.line if attribute is None else attribute.line
    file = block.file if attribute is None else attribute.file
    return ConfigError(f"{file}:{line}: {what}")


def _count_others(modules: Modules, context: ReadContext) -> None:
    for source in modules.read():
        for (kind, name), block in source.resources.items():
            if may_make_rules(kind):
                raise ConfigError(
                    f"{block.file}:{block.line}: {kind}.{name} may make rules, and aclog knows none of its kind: "
                    f"expected one of {', '.join(SCHEMAS)}"
                )
        for kind, _ in (*source.resources, *source.data):
            if kind not in SCHEMAS:
                context.ignore(kind)
