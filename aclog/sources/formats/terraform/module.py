"""A module, evaluated: the values of its names."""

import json
import posixpath
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from attrs import evolve, field

from aclog.authorizer.symbols import hidden_part, symbol_part
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.rule import ReadContext, SourceFile
from aclog.sources.formats.terraform.collection_functions import Function
from aclog.sources.formats.terraform.evaluation import Budget, NoNames, Progress, Scope, evaluate
from aclog.sources.formats.terraform.hcl import (
    Attribute,
    Block,
    Body,
    Call,
    Expression,
    GetAttribute,
    GetIndex,
    ObjectOf,
    Traversal,
    TupleOf,
    literal_text,
    read_body,
    read_json_body,
    references,
    structure,
)
from aclog.sources.formats.terraform.values import (
    BOOL,
    DYNAMIC,
    MAPPINGS,
    NULL,
    NUMBER,
    SEQUENCES,
    STRING,
    EvaluationError,
    Kind,
    OpenEntries,
    Type,
    Unknown,
    Value,
    ValueFault,
    convert,
    list_of,
    map_of,
    number,
    object_value,
    quoted,
    set_of,
    string,
    tuple_value,
    unknown_name,
    with_sensitivity,
)

# Type constraints of variables: `list(object({ name = string, host = optional(string, "*") }))`.


_PRIMITIVES: Mapping[str, Type] = MappingProxyType({"string": STRING, "number": NUMBER, "bool": BOOL, "any": DYNAMIC})
_COLLECTIONS: Mapping[str, Callable[[Type], Type]] = MappingProxyType({"list": list_of, "set": set_of, "map": map_of})


@frozen
class Defaults:
    """Default values of optional attributes, however deep they are in a type."""

    values: Mapping[str, Value] = field(factory=dict)
    """The defaults of this object's attributes."""
    attributes: "Mapping[str, Defaults]" = field(factory=dict)
    elements: "tuple[Defaults | None, ...]" = ()
    """The defaults of a tuple's parts, or of all elements of a collection."""

    def fill(self, value: Value) -> Value:
        """Return the value with the defaults for missing and null attributes."""
        if value.is_null or value.unknown is not None:
            return value
        if self.values or self.attributes:
            return self._fill_object(value)
        if self.elements and isinstance(value.payload, Mapping):
            return object_value({name: self._element(0).fill(item) for name, item in value.entries.items()})
        if self.elements and value.type.kind in SEQUENCES:
            last = len(self.elements) - 1
            filled = [self._element(min(n, last)).fill(item) for n, item in enumerate(value.items)]
            return with_sensitivity(tuple_value(filled), value)
        return value

    def _element(self, position: int) -> "Defaults":
        return self.elements[position] or NO_DEFAULTS

    def _fill_object(self, value: Value) -> Value:
        if not isinstance(value.payload, Mapping):
            return value
        entries = dict(value.entries)
        for name, default in self.values.items():
            if name not in entries or entries[name].is_null:
                entries[name] = default
        for name, inner in self.attributes.items():
            if name in entries:
                entries[name] = inner.fill(entries[name])
        return with_sensitivity(object_value(entries), value)


NO_DEFAULTS = Defaults()


@frozen
class Constraint:
    """The constraint of a variable."""

    type: Type = DYNAMIC
    defaults: Defaults = NO_DEFAULTS

    def apply(self, value: Value) -> Value:
        """Return the value as the variable holds it. Raises ValueFault: it cannot be converted."""
        return convert(self.defaults.fill(value), self.type)


def constraint_of(expression: Expression, scope: Scope) -> Constraint:
    """Return the constraint that an expression states.

    Raises:
        ConfigError: it is no type.

    """
    text = literal_text(expression)
    if text is not None:
        return _named(text, expression.line, scope)  # `type = "string"`, as before 0.12
    if isinstance(expression, Traversal) and not expression.steps:
        return _named(expression.root, expression.line, scope)
    if isinstance(expression, Call) and len(expression.arguments) == 1:
        argument = expression.arguments[0]
        if expression.name in _COLLECTIONS:
            inner = constraint_of(argument, scope)
            defaults = Defaults(elements=(inner.defaults,)) if inner.defaults != NO_DEFAULTS else NO_DEFAULTS
            return Constraint(_COLLECTIONS[expression.name](inner.type), defaults)
        if expression.name == "object" and isinstance(argument, ObjectOf):
            return _object(argument, scope)
        if expression.name == "tuple" and isinstance(argument, TupleOf):
            parts = [constraint_of(item, scope) for item in argument.items]
            kind = Type(Kind.TUPLE, elements=tuple(part.type for part in parts))
            return Constraint(kind, Defaults(elements=tuple(part.defaults for part in parts)))
    raise scope.refusal(expression.line, "not a type: expected such as string, list(string) or object({ ... })")


def _named(name: str, line: int, scope: Scope) -> Constraint:
    if name in _PRIMITIVES:
        return Constraint(_PRIMITIVES[name])
    if name in _COLLECTIONS:
        return Constraint(_COLLECTIONS[name](DYNAMIC))
    raise scope.refusal(line, f"{name} is not a type: expected such as string, list(string) or object({{ ... }})")


def _object(expression: ObjectOf, scope: Scope) -> Constraint:
    types: dict[str, Type] = {}
    optional: set[str] = set()
    values: dict[str, Value] = {}
    inner: dict[str, Defaults] = {}
    for key, item in expression.items:
        name = evaluate(key, scope).text
        if name in types:
            raise scope.refusal(key.line, f"duplicate attribute {name} in an object type")
        constraint, default = item, None
        if isinstance(item, Call) and item.name == "optional" and 1 <= len(item.arguments) <= 2:
            optional.add(name)
            constraint, *rest = item.arguments
            default = rest[0] if rest else None
        part = constraint_of(constraint, scope)
        types[name] = part.type
        if part.defaults != NO_DEFAULTS:
            inner[name] = part.defaults
        if default is not None:
            try:
                values[name] = part.apply(evaluate(default, scope))
            except ValueFault as fault:
                raise scope.refusal(default.line, f"the default of {name}: {fault}") from fault
    kind = Type(Kind.OBJECT, attributes={name: types[name] for name in sorted(types)}, optional=frozenset(optional))
    return Constraint(kind, Defaults(values, inner) if values or inner else NO_DEFAULTS)


# A module as its files state it: a directory of `.tf` and `.tf.json` files, merged.


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
    providers: Mapping[tuple[str, str], Block] = field(factory=dict)
    """By name and alias; an empty alias is the default of the module."""


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
    files = [name for name in names if is_module_file(name)]
    for name in files:
        replaced = name.replace(".tofu", ".tf")
        if name != replaced and replaced in files:
            what = f"OpenTofu reads it in place of {replaced}, Terraform does not: expected one of the two"
            raise ConfigError(f"{posixpath.join(directory, name)}: {what}")
    return files


def is_override(name: str) -> bool:
    """Return whether a file is merged into the others instead of being added to them."""
    stem = name.removesuffix(".json").removesuffix(".tf").removesuffix(".tofu")
    return stem == "override" or stem.endswith("_override")


def merge_files(directory: str, files: Sequence[Body], overrides: Sequence[Body]) -> ModuleSource:
    """Return the module of some files, with the blocks of overrides merged into the originals.

    Raises:
        ConfigError: something is declared twice, or overridden and not declared, or of no kind that Terraform has.

    """
    declared: dict[tuple[str, ...], Block] = {}
    values: dict[str, Attribute] = {}
    for body in files:
        _check_top(body)
        for block in body.blocks:
            key = (block.type, *block.labels)
            if block.type in _LABELS:
                _add(declared, key, block, " ".join(key))
            for name, value in _locals_of(block).items():
                _add(values, name, value, f"local.{name}")
    for body in overrides:
        _check_top(body)
        for block in body.blocks:
            key = (block.type, *block.labels)
            if block.type in _LABELS:
                if key not in declared:
                    raise _error(block, f"overrides {' '.join(key)}, which is not declared")
                declared[key] = _merged(declared[key], block)
            values.update(_locals_of(block))
    by_type = {kind: {key[1:]: block for key, block in declared.items() if key[0] == kind} for kind in _LABELS}
    return ModuleSource(
        directory=directory,
        variables={name: block for (name,), block in by_type["variable"].items()},
        locals=values,
        outputs={name: block for (name,), block in by_type["output"].items()},
        calls={name: block for (name,), block in by_type["module"].items()},
        resources={(key[0], key[1]): block for key, block in by_type["resource"].items()},
        data={(key[0], key[1]): block for key, block in by_type["data"].items()},
        providers={
            (block.labels[0], _alias(block)): block
            for body in (*files, *overrides)
            for block in body.blocks
            if block.type == "provider" and len(block.labels) == 1
        },
    )


def _alias(provider: Block) -> str:
    return literal_text(attribute_value(provider, "alias")) or ""


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


def _add(items: "dict[_Key, _Item]", key: "_Key", item: _Item, name: str) -> None:
    if key in items:
        first = items[key]
        raise _error(item, f"{name} is declared twice, first in {first.file}:{first.line}")
    items[key] = item


_Key = TypeVar("_Key", str, tuple[str, ...])


def _merged(block: Block, over: Block) -> Block:
    """Return a block with the attributes of an override, and its nested blocks replacing those of the same type."""
    replaced = {_nested_type(inner) for inner in over.body.blocks}
    blocks = [inner for inner in block.body.blocks if _nested_type(inner) not in replaced]
    body = Body({**block.body.attributes, **over.body.attributes}, (*blocks, *over.body.blocks))
    return evolve(block, body=body)


def _nested_type(block: Block) -> str:
    return block.labels[0] if block.type == "dynamic" and block.labels else block.type


def _error(item: Attribute | Block, what: str) -> ConfigError:
    return ConfigError(f"{item.file}:{item.line}: {what}")


def attribute_value(block: Block, name: str) -> Expression | None:
    """Return the expression of an attribute of a block, if it has it."""
    attribute = block.body.attributes.get(name)
    return attribute.value if attribute is not None else None


# Modules of a tree: parsed once each, and where a call of one leads.


VARIABLE_SUFFIXES = (".tfvars", ".tfvars.json")
"""Of files of variables, by which a flag gives them to a root module."""
_MANIFEST = ".terraform/modules/modules.json"


_SETS = re.compile(r'^\s*"?([\w-]+)"?\s*[=:]', re.MULTILINE)
"""The name of what a file of variables, in HCL or JSON, may set."""


class MissingModuleError(ConfigError):
    """A call of a module that is not in the tree."""


@define(eq=False)
class Modules:
    """The modules of a tree; owned by one reading."""

    context: ReadContext
    budget: Budget = field(factory=Budget, init=False)
    _sources: dict[str, ModuleSource] = field(factory=dict, init=False)
    _manifests: dict[str, Mapping[str, str]] = field(factory=dict, init=False)
    _variable_files: dict[str, dict[str, str]] = field(factory=dict, init=False)

    def source(self, directory: str) -> ModuleSource:
        """Return the module in a directory. Raises ConfigError, OSError: its files cannot be read, or are wrong."""
        directory = posixpath.normpath(directory)
        source = self._sources.get(directory)
        if source is None:
            names = module_files(self.context.tree.display(directory), self.context.tree.entries(directory))
            bodies = {name: self._body(posixpath.join(directory, name)) for name in names}
            source = merge_files(
                directory,
                [body for name, body in bodies.items() if not is_override(name)],
                [body for name, body in bodies.items() if is_override(name)],
            )
            self._sources[directory] = source
        return source

    def file_with(self, variable: str, root: str) -> str | None:
        """Return a readable file of variables beside a root module, or below it, that may set a variable.

        It is the first one by its path, as --var-file names it.
        """
        if root not in self._variable_files:
            self._variable_files[root] = self._variable_files_of(root)
        path = self._variable_files[root].get(variable)
        return None if path is None else self.context.tree.flag_value(path)

    def _variable_files_of(self, root: str) -> dict[str, str]:
        """Return the first file of variables beside a root module, or below it, with each name."""
        tree, first_files = self.context.tree, dict[str, str]()
        inside = {posixpath.normpath(posixpath.join(root, name)) for name in tree.entries(root)}
        inside.update(path for path in self._paths_of_variables if root == "." or path.startswith(f"{root}/"))
        for path in sorted(inside):
            if path.endswith(VARIABLE_SUFFIXES) and not self.context.exclude(path):
                with suppress(ConfigError, OSError):  # they are only for a hint
                    for match in _SETS.finditer(tree.read(path).decode(errors="replace")):
                        first_files.setdefault(match[1], path)
        return first_files

    @cached_property
    def _paths_of_variables(self) -> list[str]:
        return [path for path in self.context.tree.paths() if path.endswith(VARIABLE_SUFFIXES)]

    def read(self) -> list[ModuleSource]:
        """Return all modules that were loaded, in the order of their directories."""
        return [self._sources[directory] for directory in sorted(self._sources)]

    def roots(self, directories: Iterable[str]) -> list[str]:
        """Return those of the directories that no other one calls as a module.

        Raises:
            ConfigError: no order: they call each other; or an invalid file.

        """
        normal = sorted({posixpath.normpath(each) for each in directories})
        called = set()
        for directory in normal:
            for block in self.source(directory).calls.values():
                target = self.local_target(directory, _source_text(block))
                if target is not None and target != directory:
                    called.add(target)
        roots = [each for each in normal if each not in called]
        if normal and not roots:
            raise ConfigError(f"{self.context.tree.display(normal[0])}: every module is called by another one")
        return roots

    def local_target(self, directory: str, source: str) -> str | None:
        """Return the directory to which a call leads from another directory; None: that is not in the tree."""
        if source.startswith(("./", "../")) or source in (".", ".."):
            return posixpath.normpath(posixpath.join(directory, source))
        vendored = self.context.modules.get(source)
        return None if vendored is None else self._from_root(vendored)

    def called(self, root: str, path: tuple[str, ...], call: Block, directory: str) -> ModuleSource | None:
        """Return the module that a call leads to; None: it is not in the tree, or wrong. `path`: as of the caller."""
        plain = tuple(part.partition("[")[0] for part in (*path, call.labels[0]))
        try:
            return self.source(self.target(root, plain, call, directory))
        except ConfigError:
            return None

    def structures(self, root: str, path: tuple[str, ...], call: Block, directory: str) -> list[object]:
        """Return what decides the rules of the modules that a call leads to: equal for equal code, wherever it is."""
        pending, visited, parts = [(path, call, directory)], set[str](), list[object]()
        while pending:
            above, block, caller = pending.pop()
            source = self.called(root, above, block, caller)
            if source is None or source.directory in visited:
                continue
            visited.add(source.directory)
            defaults = {name: attribute_value(each, "default") for name, each in source.variables.items()}
            declared = (source.resources, source.calls, source.locals, defaults)
            parts.append(sorted(repr((name, structure(part))) for each in declared for name, part in each.items()))
            inner = (*above, block.labels[0])
            pending += [(inner, each, source.directory) for each in source.calls.values()]
        return parts

    def target(self, root: str, path: tuple[str, ...], call: Block, directory: str) -> str:
        """Return the directory of the module that a call names; `path`: the names of the calls from the root to it.

        Raises:
            MissingModuleError: it is not in the tree, and its directory is not given; ConfigError: it has no files.

        """
        source = _source_text(call)
        target = self.local_target(directory, source)
        if target is None:
            vendored = self._manifest(root).get(".".join(path))
            target = None if vendored is None else posixpath.normpath(posixpath.join(root, vendored))
        if target is None:
            raise MissingModuleError(
                f"{call.file}:{call.line}: module {call.labels[0]}: {source!r} is not in this tree, and it may hold "
                f"rules: run `terraform init` ({_MANIFEST}), or give its directory by --module '{source}=DIR'"
            )
        if not any(map(is_module_file, self.context.tree.entries(target))):
            display = self.context.tree.display(target)
            raise ConfigError(f"{call.file}:{call.line}: module {call.labels[0]}: {display} has no .tf files")
        return target

    def _from_root(self, directory: str) -> str:
        """Return a directory, absolute or relative to the enclosing repository, as one from the tree's root."""
        if directory.startswith("/"):
            return posixpath.normpath(directory)
        root = self.context.tree.display(".").rpartition(":")[2]
        return posixpath.normpath(directory) if root.startswith("/") else posixpath.relpath(directory, root or ".")

    def _manifest(self, root: str) -> Mapping[str, str]:
        """Return the directories of the modules that `terraform init` fetched, by their path of calls."""
        manifest = self._manifests.get(root)
        if manifest is None:
            path = posixpath.join(root, _MANIFEST)
            manifest = _manifest_of(SourceFile(self.context.tree, path)) if self.context.tree.is_file(path) else {}
            self._manifests[root] = manifest
        return manifest

    def _body(self, path: str) -> Body:
        file = SourceFile(self.context.tree, path)
        read = read_json_body if path.endswith(".json") else read_body
        try:
            return read(file.content, file.name)
        except RecursionError as error:
            raise ConfigError(f"{file.name}: nested too deeply") from error


def _manifest_of(file: SourceFile) -> Mapping[str, str]:
    try:
        modules = json.loads(file.text)["Modules"]
        return {str(each["Key"]): str(each["Dir"]) for each in modules}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{file.name}: not a list of modules as `terraform init` writes it") from error


def _source_text(call: Block) -> str:
    text = literal_text(attribute_value(call, "source"))
    if text is not None:
        return text
    raise ConfigError(
        f"{call.file}:{call.line}: module {call.labels[0]}: its source must be a string without references"
    )


# Instances of resources and modules: `count` and `for_each`.


Key = str | int | None
"""The key of an instance: a key of for_each, an index of count, None without either."""

_MOST = 100_000


@frozen
class Instances:
    """The instances that a block makes: the local names of each by its key."""

    repeated: str | None
    """`count`, `for_each`, or None."""
    locals: Mapping[Key, Mapping[str, Value]] = field(factory=dict)
    unknown: Unknown | None = None
    """The unknown part of their number."""
    where: str = ""
    """`FILE:LINE` of count or for_each."""

    def by_key(self) -> "Mapping[Key, Mapping[str, Value]]":
        """Return the instances. Raises ConfigError: how many there are is unknown."""
        if self.unknown is not None:
            fix = self.unknown.fix and f": {self.unknown.fix}"
            raise ConfigError(f"{self.where}: {self.repeated} depends on {self.unknown}{fix}")
        return self.locals


def instances_of(block: Block, scope: Scope) -> Instances:
    """Return the instances of a resource or a module call.

    Raises:
        ConfigError: count or for_each is not of the type that it must be.

    """
    for inner in block.body.of_type("lifecycle"):
        enabled = inner.body.attributes.get("enabled")
        if enabled is not None:
            raise ConfigError(f"{enabled.file}:{enabled.line}: lifecycle.enabled is not understood: use count")
    count, for_each = block.body.attributes.get("count"), block.body.attributes.get("for_each")
    if count is not None and for_each is not None:
        raise ConfigError(f"{for_each.file}:{for_each.line}: count and for_each exclude each other")
    if count is not None:
        return _counted(count, scope)
    if for_each is not None:
        return _for_each(for_each, scope)
    return Instances(None, {None: {}})


def _counted(attribute: Attribute, scope: Scope) -> Instances:
    where = f"{attribute.file}:{attribute.line}"
    value = evaluate(attribute.value, scope)
    if value.unknown is not None:
        return Instances("count", unknown=value.unknown, where=where)
    try:
        times = convert(value, NUMBER).payload
    except ValueFault as fault:
        raise ConfigError(f"{where}: count: {fault}") from fault
    if not isinstance(times, int) or not 0 <= times <= _MOST:
        raise ConfigError(f"{where}: count must be a whole number from 0 to {_MOST:,}")
    return Instances("count", {n: {"count": object_value({"index": number(n)})} for n in range(times)}, where=where)


def _for_each(attribute: Attribute, scope: Scope) -> Instances:
    where = f"{attribute.file}:{attribute.line}"
    value = evaluate(attribute.value, scope)
    if value.unknown is not None:
        return Instances("for_each", unknown=value.unknown, where=where)
    if value.is_null:
        raise ConfigError(f"{where}: for_each is null: expected a map or a set of strings")
    if value.type.kind in MAPPINGS:
        pairs = dict(value.entries)
    elif value.type.kind is Kind.SET and all(isinstance(item.payload, str) for item in value.items):
        pairs = {item.text: item for item in value.items}
    else:
        raise ConfigError(f"{where}: for_each is a {value.type}: expected a map or a set of strings (toset)")
    entries: dict[Key, Mapping[str, Value]] = {
        key: {"each": object_value({"key": string(key), "value": item})} for key, item in pairs.items()
    }
    return Instances("for_each", entries, where=where)


# A module, evaluated: the values of its names.


_CALL_WORDS = frozenset({"source", "version", "providers", "depends_on", "count", "for_each"})
_RESOURCE_WORDS = frozenset({"count", "for_each", "provider", "depends_on"})
_STEPS = {"module": 20, "resource": 2}
"""The cost of an instance, in rounds of a loop."""
_DEEPEST = 50
"""Calls within calls."""


@define(eq=False, kw_only=True)
class Module:
    """One instance of a module; its names are evaluated on first use. Owned by the reading of a tree."""

    modules: Modules
    source: ModuleSource
    root: str
    """The root module's directory in the tree."""
    stack: str = ""
    """The directory of the stack of Terragrunt that makes it a root module; empty for any other one."""
    functions: Mapping[str, Function]
    progress: Progress
    path: tuple[str, ...] = ()
    """The names of the calls that lead to it from the root module."""
    arguments: Mapping[str, tuple[Attribute, Scope]] | None = None
    """The arguments of its call, and their location; None: the root module."""
    top: "Module | None" = None
    """The root module from which calls lead to it; None: the root module."""
    assignments: Mapping[str, tuple[Attribute, Scope]] = field(factory=dict)
    """The values of the variable files of a root module."""

    def scope(self, file: str, local: Mapping[str, Value] | None = None) -> Scope:
        """Return the scope of an expression in one of its files."""
        return Scope(file, self, self.functions, local or {}, self.progress.budget)

    # the values of references

    def resolve(self, reference: Traversal, scope: Scope) -> tuple[Value, int]:
        """Return the value at the beginning of a reference, and how many of its steps led there (Names.resolve)."""
        root = reference.root
        if root == "var":
            return self._variable(self._name(reference, scope), reference.line, scope), 1
        if root == "local":
            return self._local(self._name(reference, scope), reference.line, scope), 1
        if root == "module":
            return self._module(reference, scope)
        if root in ("path", "terraform"):
            return self._about(reference, scope), 1
        if root in ("each", "count"):
            raise scope.refusal(
                reference.line, f"{root} is known in a block with {'for_each' if root == 'each' else root} only"
            )
        if root == "data":
            return self._data(reference, scope), 2
        if root in ("self", "ephemeral"):
            raise scope.refusal(reference.line, f"{root}: not understood here")
        return self._resource(reference, scope)

    def _name(self, reference: Traversal, scope: Scope, position: int = 0) -> str:
        step = reference.steps[position] if position < len(reference.steps) else None
        if not isinstance(step, GetAttribute):
            raise scope.refusal(reference.line, f"{reference.root}: a name must follow")
        return step.name

    def _about(self, reference: Traversal, scope: Scope) -> Value:
        name = f"{reference.root}.{self._name(reference, scope)}"
        where = f"{scope.file}:{reference.line}"
        if name == "path.module":
            return string(_from(self.root, self.source.directory))
        if name == "path.root":
            return string(".")
        if name == "path.cwd":
            return self._symbol(Unknown("path.cwd, which depends on where Terraform runs", where), name, STRING)
        if name == "terraform.workspace":
            return string(self.modules.context.inputs.workspace)
        raise scope.refusal(reference.line, f"{name}: there is no such name")

    def _variable(self, name: str, line: int, scope: Scope) -> Value:
        block = self.source.variables.get(name)
        if block is None:
            raise scope.refusal(line, f"var.{name} is not declared in this module")
        key, where = (self._id, "var", name), f"{scope.file}:{line}"
        return self.progress.once(key, self._display(f"var.{name}"), where, lambda: self._variable_value(name, block))

    def _variable_value(self, name: str, block: Block) -> Value:
        scope = self.scope(block.file)
        constraint = _constraint(block)
        value, where = self._given_value(name), f"{block.file}:{block.line}"
        if value is None or (value.is_null and _flag(block, "nullable", scope) is False):
            default = attribute_value(block, "default")
            if default is not None:
                value = evaluate(default, Scope(block.file, NoNames(), {}))
            elif value is None:
                what = Unknown(f"var.{name}, which has no value", where, self._fix_of_variable(name))
                value = self._symbol(what, f"var.{name}", constraint.type)
            else:
                value = NULL
        try:
            value = constraint.apply(value)
        except ValueFault as fault:
            raise ConfigError(f"{self._place_of(name, where)}: var.{name}: {fault}") from fault
        return evolve(value, sensitive=True) if _flag(block, "sensitive", scope) else value

    def _fix_of_variable(self, name: str) -> str:
        """Return which flags give a variable a value; empty unless the module is a root module: its call does."""
        if self.arguments is not None:
            return ""
        flag = f"--var {name}=VALUE"
        file = self.modules.file_with(name, self.root)
        return f"expected {flag}, or --var-file FILE" if file is None else f"expected --var-file {file}, or {flag}"

    def _assignment(self, name: str) -> tuple[Attribute, Scope] | None:
        return (self.assignments if self.arguments is None else self.arguments).get(name)

    def _given_value(self, name: str) -> Value | None:
        assignment = self._assignment(name)
        return None if assignment is None else evaluate(assignment[0].value, assignment[1])

    def has_evaluated(self, name: str) -> bool:
        """Return whether a variable of this name was evaluated."""
        return self.progress.is_done((self._id, "var", name))

    def differs(self, attribute: Attribute) -> bool:
        """Return whether an evaluated variable of a root module has another value than a file of variables states."""
        block = self.source.variables.get(attribute.name)
        if block is None or not self.has_evaluated(attribute.name):
            return False
        effective = self._variable(attribute.name, block.line, self.scope(block.file))
        try:
            value = _constraint(block).apply(evaluate(attribute.value, Scope(attribute.file, NoNames(), {})))
        except (ConfigError, ValueFault):
            return True
        return value != evolve(effective, sensitive=value.sensitive)

    def _place_of(self, name: str, otherwise: str) -> str:
        assignment = self._assignment(name)
        return otherwise if assignment is None else f"{assignment[0].file}:{assignment[0].line}"

    def _local(self, name: str, line: int, scope: Scope) -> Value:
        definition = self.source.locals.get(name)
        if definition is None:
            raise scope.refusal(line, f"local.{name} is not declared in this module")
        where = f"{scope.file}:{line}"
        return self.progress.once(
            (self._id, "local", name),
            self._display(f"local.{name}"),
            where,
            lambda: evaluate(definition.value, self.scope(definition.file)),
        )

    def _data(self, reference: Traversal, scope: Scope) -> Value:
        kind, name = self._name(reference, scope), self._name(reference, scope, 1)
        if (kind, name) not in self.source.data:
            raise scope.refusal(reference.line, f"data.{kind}.{name} is not declared in this module")
        where, address = f"{scope.file}:{reference.line}", f"data.{kind}.{name}"
        expression = f"{self._display(address)}{self._arguments_of(self.source.data[kind, name])}"
        return self._symbol(Unknown(f"{address}, a data source", where), expression)

    def _arguments_of(self, block: Block) -> str:
        """Return the part of a symbol that is another one for other arguments of its block."""
        key, where = (self._id, "arguments", block.type, *block.labels), f"{block.file}:{block.line}"
        address = self._display(".".join((block.type, *block.labels)))
        return self.progress.once(key, address, where, lambda: hidden_part(self._identity_of(block.body)))

    def _identity_of(self, body: Body) -> str:
        """Return a text that is another one if a body states other arguments, wherever their values come from."""
        parts = list[str]()
        for name, attribute in sorted(body.attributes.items()):
            try:
                text = _identity(evaluate(attribute.value, self.scope(attribute.file)))
            except ConfigError:
                text = None
            parts.append(f"{name} = {_LINE.sub('', repr(attribute.value)) if text is None else text}")
        for block in body.blocks:
            parts.append(f"{block.type} {block.labels} {{{self._identity_of(block.body)}}}")
        return "\n".join(parts)

    def _symbol(self, what: Unknown, expression: str, kind: Type = DYNAMIC) -> Value:
        """Return an unknown value that an expression denotes in this root module only."""
        return unknown_name(what, f"{expression}{self._mark}", kind)

    @property
    def _mark(self) -> str:
        """What distinguishes its symbols from those of other root modules; empty in the tree's own directory."""
        root = self.stack or self.root
        return "" if root == "." else hidden_part(root)

    # resources

    def _resource(self, reference: Traversal, scope: Scope) -> tuple[Value, int]:
        prefixed = reference.root == "resource"
        kind = self._name(reference, scope) if prefixed else reference.root
        first = 1 if prefixed else 0
        if not prefixed and not (reference.steps and isinstance(reference.steps[0], GetAttribute)):
            raise scope.refusal(reference.line, f"{kind}: there is no such name")
        address = (kind, self._name(reference, scope, first))
        block = self.source.resources.get(address)
        if block is None:
            raise scope.refusal(reference.line, f"{kind}.{address[1]} is not declared in this module")
        where = f"{scope.file}:{reference.line}"
        name = self._display(".".join(address))
        value = self.progress.once((self._id, *address), name, where, lambda: self._configured(address, block, where))
        return value, first + 1

    def _configured(self, address: Address, block: Block, where: str) -> Value:
        """Return the configuration of a resource: an object, or one for each instance."""
        instances = self.instances(block)
        name = self._display(".".join(address))
        if instances.unknown is not None:
            return self._symbol(instances.unknown, name)
        values = {
            key: self._open(name, f"{name}{_suffix(key)}", block, local, where)
            for key, local in instances.locals.items()
        }
        return _collected(instances, values)

    def _open(self, name: str, instance: str, block: Block, local: Mapping[str, Value], where: str) -> Value:
        """Return an object with the attributes that are configured; one that cannot be evaluated is unknown."""
        entries: dict[str, Value] = {}
        for attribute in block.body.attributes.values():
            if attribute.name not in _RESOURCE_WORDS:
                try:
                    entries[attribute.name] = evaluate(attribute.value, self.scope(attribute.file, local))
                except EvaluationError as error:
                    what = Unknown(f"{name}.{attribute.name}, which has no value ({error})")
                    entries[attribute.name] = self._symbol(what, f"{instance}.{attribute.name}")
        kind = Type(Kind.OBJECT, attributes={key: value.type for key, value in entries.items()})
        others = Unknown(f"{name}, of which only Terraform knows all attributes", where)
        return Value(kind, OpenEntries(entries, others), symbol=symbol_part(f"{instance}{self._mark}"))

    def instances(self, block: Block) -> Instances:
        """Return the instances of a resource or a call of this module. Raises ConfigError: they cannot be made."""
        key = (self._id, "instances", block.type, *block.labels)
        where = f"{block.file}:{block.line}"
        return self.progress.once(key, self._display(".".join(block.labels)), where, lambda: self._instances_of(block))

    def _instances_of(self, block: Block) -> Instances:
        instances = instances_of(block, self.scope(block.file))
        self.progress.budget.spend(_STEPS[block.type] * len(instances.locals))
        return instances

    # calls

    def _module(self, reference: Traversal, scope: Scope) -> tuple[Value, int]:
        name = self._name(reference, scope)
        block = self.source.calls.get(name)
        if block is None:
            raise scope.refusal(reference.line, f"module.{name} is not declared in this module")
        if self.missing(block) is not None:
            where = f"{block.file}:{block.line}"
            what = Unknown(f"module.{name}, which is not in this tree", where)
            return self._symbol(what, f"{self._display(f'module.{name}')}{self._arguments_of(block)}"), 1
        instances = self.instances(block)
        if instances.unknown is not None:
            return self._symbol(instances.unknown, self._display(f"module.{name}")), 1
        where = f"{scope.file}:{reference.line}"
        used, key = 1, None
        if instances.repeated is not None:
            key = _literal_key(reference, scope)
            if key not in instances.locals:
                outputs = {each: self.child(block, each).outputs(where) for each in instances.locals}
                return _collected(instances, outputs), 1
            used = 2
        child = self.child(block, key)
        step = reference.steps[used] if used < len(reference.steps) else None
        if isinstance(step, GetAttribute):
            return child.output(step.name, where), used + 1
        return child.outputs(where), used

    @property
    def takes_defaults(self) -> bool:
        """Whether a variable of its root module without a value was evaluated: it may have another one."""
        top = self.top or self
        return any(name not in top.assignments and top.has_evaluated(name) for name in top.source.variables)

    def states_rules(self, block: Block, kinds: Container[str]) -> bool:
        """Return whether a module that it calls has a resource of some kinds, or calls others."""
        source = self.modules.called(self.root, self.path, block, self.source.directory)
        return source is None or bool(source.calls) or any(kind in kinds for kind, _ in source.resources)

    def structure_of(self, block: Block) -> tuple[object, ...]:
        """Return a block with all that it is made from: equal for equal code, wherever that is.

        These are the locals and variables that it references, and of a call the modules that it leads to.
        """
        parts: list[object] = [structure(block)]
        pending: list[tuple[Module, object]] = [(self, block)]
        keys = set[tuple[tuple[str, ...], str, str]]()
        while pending:
            module, part = pending.pop()
            for reference in references(part):
                step = reference.steps[0] if reference.steps else None
                name = step.name if isinstance(step, GetAttribute) else ""
                key = (module.path, reference.root, name)
                if key not in keys:
                    keys.add(key)
                    owner, value = module._definition(reference.root, name)
                    parts.append((*key, structure(value)))
                    pending += [(owner, value)] if owner is not None else []
        if block.type == "module":
            parts += self.modules.structures(self.root, self.path, block, self.source.directory)
        return tuple(parts)

    def _definition(self, root: str, name: str) -> "tuple[Module | None, Expression | None]":
        """Return the value of a local or a variable, and the module of its names, if it has names."""
        if root == "local" and name in self.source.locals:
            return self, self.source.locals[name].value
        if root != "var" or name not in self.source.variables:
            return None, None
        assignment = self._assignment(name)
        if assignment is None:
            default = attribute_value(self.source.variables[name], "default")
            return None, default
        return assignment[1].names if isinstance(assignment[1].names, Module) else None, assignment[0].value

    def missing(self, block: Block) -> MissingModuleError | None:
        """Return why a module that it calls cannot be read: it is not in the tree. None: it is."""
        path = (*self.path, block.labels[0])
        plain = tuple(part.partition("[")[0] for part in path)
        try:
            self.modules.target(self.root, plain, block, self.source.directory)
        except MissingModuleError as error:
            return error
        except ConfigError:
            pass  # which its evaluation raises
        return None

    def child(self, block: Block, key: Key) -> "Module":
        """Return an instance of a module that it calls.

        Raises:
            ConfigError: the module is not found, or its arguments are not those that it declares.

        """
        return self.progress.once(
            (self._id, "child", block.labels[0], key),
            self._display(f"module.{block.labels[0]}"),
            f"{block.file}:{block.line}",
            lambda: self._called(block, key),
        )

    def _called(self, block: Block, key: Key) -> "Module":
        path = (*self.path, block.labels[0] + _suffix(key))
        if len(path) > _DEEPEST:
            raise ConfigError(f"{block.file}:{block.line}: modules call each other more than {_DEEPEST} deep")
        plain = tuple(part.partition("[")[0] for part in path)
        directory = self.modules.target(self.root, plain, block, self.source.directory)
        source = self.modules.source(directory)
        scope = self.scope(block.file, self.instances(block).by_key()[key])
        arguments = {name: each for name, each in block.body.attributes.items() if name not in _CALL_WORDS}
        _check_arguments(block, arguments, source)
        return Module(
            modules=self.modules,
            source=source,
            root=self.root,
            stack=self.stack,
            functions=self.functions,
            progress=self.progress,
            path=path,
            arguments={name: (each, scope) for name, each in arguments.items()},
            top=self.top or self,
        )

    def output(self, name: str, where: str) -> Value:
        """Return the value of an output. Raises ConfigError: no such output."""
        block = self.source.outputs.get(name)
        if block is None:
            raise ConfigError(f"{where}: module.{'.'.join(self.path)} has no output {name}")
        expression = attribute_value(block, "value")
        if expression is None:
            raise ConfigError(f"{block.file}:{block.line}: output {name} has no value")
        scope = self.scope(block.file)
        value = self.progress.once(
            (self._id, "output", name), self._display(f"output.{name}"), where, lambda: evaluate(expression, scope)
        )
        return evolve(value, sensitive=True) if _flag(block, "sensitive", scope) else value

    def outputs(self, where: str) -> Value:
        """Return all outputs as an object."""
        return object_value({name: self.output(name, where) for name in self.source.outputs})

    @property
    def _id(self) -> tuple[str, ...]:
        return self.path

    def _display(self, name: str) -> str:
        return ".".join([*(f"module.{part}" for part in self.path), name])


_LINE = re.compile(r"\bline=\d+")
"""The line of an expression, in its representation."""


def _identity(value: Value) -> str | None:
    """Return a text that is another one for another value; None if a part of it is unknown and has no symbol."""
    if value.unknown is not None:
        return value.symbol or None
    if isinstance(value.payload, tuple):
        texts = [_identity(item) for item in value.items]
    elif isinstance(value.payload, Mapping):
        texts = [text for key, item in value.entries.items() for text in (repr(key), _identity(item))]
    else:
        return repr(value.payload)
    return None if None in texts else repr(texts)


def _suffix(key: Key) -> str:
    """Return the index of an instance in its address."""
    if key is None:
        return ""
    return f"[{key}]" if isinstance(key, int) else f"[{quoted(key)}]"


def _collected(instances: Instances, values: Mapping[Key, Value]) -> Value:
    if instances.repeated is None:
        return values[None]
    if instances.repeated == "count":
        return tuple_value(values.values())
    return object_value({str(key): value for key, value in values.items()})


def _literal_key(reference: Traversal, scope: Scope) -> Key:
    step = reference.steps[1] if len(reference.steps) > 1 else None
    if not isinstance(step, GetIndex):
        return None
    payload = evaluate(step.key, scope).payload
    return payload if isinstance(payload, str | int) and not isinstance(payload, bool) else None


def _constraint(block: Block) -> Constraint:
    expression = attribute_value(block, "type")
    return Constraint() if expression is None else constraint_of(expression, Scope(block.file, NoNames(), {}))


def _flag(block: Block, name: str, scope: Scope) -> bool | None:
    expression = attribute_value(block, name)
    payload = None if expression is None else evaluate(expression, scope).payload
    return payload if isinstance(payload, bool) else None


def _check_arguments(block: Block, arguments: Mapping[str, Attribute], source: ModuleSource) -> None:
    for name, attribute in arguments.items():
        if name not in source.variables:
            raise ConfigError(f"{attribute.file}:{attribute.line}: module {block.labels[0]} has no variable {name}")
    for name, variable in source.variables.items():
        if name not in arguments and "default" not in variable.body.attributes:
            raise ConfigError(f"{block.file}:{block.line}: module {block.labels[0]}: the argument {name} is missing")


def _from(root: str, directory: str) -> str:
    """Return a directory as Terraform names it in the root module's directory."""
    if directory == root:
        return "."
    if root == ".":
        return directory
    return posixpath.relpath(directory, root)
