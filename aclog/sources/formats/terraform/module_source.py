"""A module as its files state it: a directory of `.tf` and `.tf.json` files, merged."""

import posixpath
from collections.abc import Iterable, Mapping
from typing import TypeVar

from attrs import evolve, field, frozen

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.terraform.hcl.syntax import Attribute, Block, Body, Expression

_Item = TypeVar("_Item", Attribute, Block)

Address = tuple[str, str]
"""Type and name of a resource."""


@frozen(kw_only=True)
class ModuleSource:
    """The declarations of one directory."""

    directory: str
    """In the tree."""
    variables: Mapping[str, Block] = field(factory=dict)
    locals: Mapping[str, Attribute] = field(factory=dict)
    outputs: Mapping[str, Block] = field(factory=dict)
    calls: Mapping[str, Block] = field(factory=dict)
    resources: Mapping[Address, Block] = field(factory=dict)
    data: Mapping[Address, Block] = field(factory=dict)


_LABELS = {"variable": 1, "output": 1, "module": 1, "resource": 2, "data": 2, "ephemeral": 2}
_IGNORED = frozenset(
    {"terraform", "provider", "moved", "removed", "import", "check", "locals", "ephemeral", "action", "language"}
)


def is_module_file(name: str) -> bool:
    """Return whether Terraform reads a file of this name as part of a module."""
    hidden = name.startswith((".", "#")) or name.endswith(("~", "#"))
    return not hidden and name.endswith((".tf", ".tf.json", ".tofu", ".tofu.json"))


def module_files(directory: str, names: Iterable[str]) -> list[str]:
    """Return those of the names in a directory that are files of its module.

    Raises:
        ConfigError: `x.tofu` beside `x.tf`, which OpenTofu reads instead of that, and Terraform does not read.

    """
    found = [name for name in names if is_module_file(name)]
    for name in found:
        replaced = name.replace(".tofu", ".tf")
        if name != replaced and replaced in found:
            what = f"OpenTofu reads it in place of {replaced}, Terraform does not: expected one of the two"
            raise ConfigError(f"{posixpath.join(directory, name)}: {what}")
    return found


def is_override(name: str) -> bool:
    """Return whether a file is merged into the others instead of being added to them."""
    stem = name.removesuffix(".json").removesuffix(".tf").removesuffix(".tofu")
    return stem == "override" or stem.endswith("_override")


def merge_files(directory: str, files: Iterable[Body], overrides: Iterable[Body]) -> ModuleSource:
    """Return the module that files state, with those of the overrides in place of what they override.

    Raises:
        ConfigError: something is declared twice, or overridden and not declared, or of no kind that Terraform has.

    """
    declared: dict[tuple[str, ...], Block] = {}
    stated: dict[str, Attribute] = {}
    for body in files:
        _check_top(body)
        for block in body.blocks:
            key = (block.type, *block.labels)
            if block.type in _LABELS:
                _add(declared, key, block, " ".join(key))
            for name, value in _locals_of(block).items():
                _add(stated, name, value, f"local.{name}")
    for body in overrides:
        _check_top(body)
        for block in body.blocks:
            key = (block.type, *block.labels)
            if block.type in _LABELS:
                if key not in declared:
                    raise _error(block, f"overrides {' '.join(key)}, which is not declared")
                declared[key] = _merged(declared[key], block)
            stated.update(_locals_of(block))
    by_type = {kind: {key[1:]: block for key, block in declared.items() if key[0] == kind} for kind in _LABELS}
    return ModuleSource(
        directory=directory,
        variables={name: block for (name,), block in by_type["variable"].items()},
        locals=stated,
        outputs={name: block for (name,), block in by_type["output"].items()},
        calls={name: block for (name,), block in by_type["module"].items()},
        resources={(key[0], key[1]): block for key, block in by_type["resource"].items()},
        data={(key[0], key[1]): block for key, block in by_type["data"].items()},
    )


def _check_top(body: Body) -> None:
    for attribute in body.attributes.values():
        raise ConfigError(
            f"{attribute.file}:{attribute.line}: {attribute.name}: no attribute is expected outside of a block"
        )
    for block in body.blocks:
        if block.type not in _LABELS and block.type not in _IGNORED:
            raise _error(block, f"{block.type} is not a kind of block that Terraform has")
        if len(block.labels) != _LABELS.get(block.type, len(block.labels)):
            raise _error(block, f"a block {block.type} has {_LABELS[block.type]} labels")


def _locals_of(block: Block) -> Mapping[str, Attribute]:
    return block.body.attributes if block.type == "locals" else {}


def _add(known: "dict[_Key, _Item]", key: "_Key", item: _Item, name: str) -> None:
    if key in known:
        first = known[key]
        raise _error(item, f"{name} is declared twice, first in {first.file}:{first.line}")
    known[key] = item


_Key = TypeVar("_Key", str, tuple[str, ...])


def _merged(block: Block, over: Block) -> Block:
    """Return a block with the attributes of an override, and its nested blocks in place of those of the same type."""
    replaced = {_nested_type(inner) for inner in over.body.blocks}
    kept = [inner for inner in block.body.blocks if _nested_type(inner) not in replaced]
    body = Body({**block.body.attributes, **over.body.attributes}, (*kept, *over.body.blocks))
    return evolve(block, body=body)


def _nested_type(block: Block) -> str:
    return block.labels[0] if block.type == "dynamic" and block.labels else block.type


def _error(item: Attribute | Block, what: str) -> ConfigError:
    return ConfigError(f"{item.file}:{item.line}: {what}")


def attribute_value(block: Block, name: str) -> Expression | None:
    """Return the expression of an attribute of a block, if it has it."""
    found = block.body.attributes.get(name)
    return found.value if found is not None else None
