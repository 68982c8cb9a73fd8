"""A module, evaluated: what its names mean."""

import posixpath
from collections.abc import Iterator, Mapping

from attrs import define, evolve, field

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.terraform.constraints import Constraint, constraint_of
from aclog.sources.formats.terraform.errors import EvaluationError
from aclog.sources.formats.terraform.evaluation import evaluate
from aclog.sources.formats.terraform.functions.function import Function
from aclog.sources.formats.terraform.hcl.syntax import Attribute, Block, GetAttribute, GetIndex, Traversal
from aclog.sources.formats.terraform.instances import Instances, Key, instances_of
from aclog.sources.formats.terraform.loading import Modules
from aclog.sources.formats.terraform.module_source import Address, ModuleSource, attribute_value
from aclog.sources.formats.terraform.progress import Progress
from aclog.sources.formats.terraform.scope import NoNames, Scope
from aclog.sources.formats.terraform.values.errors import ValueFault
from aclog.sources.formats.terraform.values.sets import quoted
from aclog.sources.formats.terraform.values.types import DYNAMIC, STRING, Kind, Type
from aclog.sources.formats.terraform.values.value import (
    NULL,
    OpenEntries,
    Unknown,
    Value,
    object_value,
    string,
    tuple_value,
)

_CALL_WORDS = frozenset({"source", "version", "providers", "depends_on", "count", "for_each"})
_RESOURCE_WORDS = frozenset({"count", "for_each", "provider", "depends_on"})
_STEPS = {"module": 20, "resource": 2}
"""What an instance takes, in rounds of a loop."""
_DEEPEST = 50
"""Calls within calls."""


@define(eq=False, kw_only=True)
class Module:
    """One instance of a module; its names are evaluated when they are asked for. Owned by the reading of a tree."""

    modules: Modules
    source: ModuleSource
    root: str
    """The root module's directory in the tree."""
    functions: Mapping[str, Function]
    progress: Progress
    path: tuple[str, ...] = ()
    """The names of the calls that lead to it from the root module."""
    arguments: Mapping[str, tuple[Attribute, Scope]] | None = None
    """What its call gives, and where that stands; None: it is the root module."""
    given: Mapping[str, tuple[Attribute, Scope]] = field(factory=dict)
    """Of a root module: what its files of variables say."""

    def scope(self, file: str, local: Mapping[str, Value] | None = None) -> Scope:
        """Return the scope of an expression in one of its files."""
        return Scope(file, self, self.functions, local or {}, self.progress.budget)

    # what references mean

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
            return Value(STRING, Unknown("path.cwd, which depends on where Terraform runs", where))
        if name == "terraform.workspace":
            return string("default")
        raise scope.refusal(reference.line, f"{name}: there is no such name")

    def _variable(self, name: str, line: int, scope: Scope) -> Value:
        block = self.source.variables.get(name)
        if block is None:
            raise scope.refusal(line, f"var.{name} is not declared in this module")
        key, where = (self._id, "var", name), f"{scope.file}:{line}"
        return self.progress.once(key, self._shown(f"var.{name}"), where, lambda: self._variable_value(name, block))

    def _variable_value(self, name: str, block: Block) -> Value:
        scope = self.scope(block.file)
        constraint = _constraint(block)
        value, where = self._given_value(name), f"{block.file}:{block.line}"
        if value is None or (value.is_null and _flag(block, "nullable", scope) is False):
            default = attribute_value(block, "default")
            if default is not None:
                value = evaluate(default, Scope(block.file, NoNames(), {}))
            elif value is None:
                what = Unknown(f"var.{name}, which has no value", where)
                value = Value(constraint.type, what)
            else:
                value = NULL
        try:
            value = constraint.apply(value)
        except ValueFault as fault:
            raise ConfigError(f"{self._place_of(name, where)}: var.{name}: {fault}") from fault
        return evolve(value, sensitive=True) if _flag(block, "sensitive", scope) else value

    def _given_value(self, name: str) -> Value | None:
        found = (self.given if self.arguments is None else self.arguments).get(name)
        return None if found is None else evaluate(found[0].value, found[1])

    def _place_of(self, name: str, otherwise: str) -> str:
        found = (self.given if self.arguments is None else self.arguments).get(name)
        return otherwise if found is None else f"{found[0].file}:{found[0].line}"

    def _local(self, name: str, line: int, scope: Scope) -> Value:
        found = self.source.locals.get(name)
        if found is None:
            raise scope.refusal(line, f"local.{name} is not declared in this module")
        where = f"{scope.file}:{line}"
        return self.progress.once(
            (self._id, "local", name),
            self._shown(f"local.{name}"),
            where,
            lambda: evaluate(found.value, self.scope(found.file)),
        )

    def _data(self, reference: Traversal, scope: Scope) -> Value:
        kind, name = self._name(reference, scope), self._name(reference, scope, 1)
        if (kind, name) not in self.source.data:
            raise scope.refusal(reference.line, f"data.{kind}.{name} is not declared in this module")
        return Value(DYNAMIC, Unknown(f"data.{kind}.{name}, a data source", f"{scope.file}:{reference.line}"))

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
        shown = self._shown(".".join(address))
        value = self.progress.once((self._id, *address), shown, where, lambda: self._configured(address, block, where))
        return value, first + 1

    def _configured(self, address: Address, block: Block, where: str) -> Value:
        """Return what is configured of a resource: an object, or one for each instance."""
        instances = self.instances(block)
        if instances.unknown is not None:
            return Value(DYNAMIC, instances.unknown)
        name = self._shown(".".join(address))
        made = {key: self._open(name, block, local, where) for key, local in instances.locals.items()}
        return _collected(instances, made)

    def _open(self, name: str, block: Block, local: Mapping[str, Value], where: str) -> Value:
        """Return an object with the attributes that are configured; one that cannot be evaluated is unknown."""
        entries: dict[str, Value] = {}
        for attribute in block.body.attributes.values():
            if attribute.name not in _RESOURCE_WORDS:
                try:
                    entries[attribute.name] = evaluate(attribute.value, self.scope(attribute.file, local))
                except EvaluationError as error:
                    entries[attribute.name] = Value(
                        DYNAMIC, Unknown(f"{name}.{attribute.name}, which has no value ({error})")
                    )
        kind = Type(Kind.OBJECT, attributes={key: value.type for key, value in entries.items()})
        return Value(
            kind, OpenEntries(entries, Unknown(f"{name}, of which only Terraform learns all attributes", where))
        )

    def instances(self, block: Block) -> Instances:
        """Return the instances of a resource or a call of this module. Raises ConfigError: they cannot be made."""
        key = (self._id, "instances", block.type, *block.labels)
        where = f"{block.file}:{block.line}"
        return self.progress.once(key, self._shown(".".join(block.labels)), where, lambda: self._instances_of(block))

    def _instances_of(self, block: Block) -> Instances:
        found = instances_of(block, self.scope(block.file))
        self.progress.budget.spend(_STEPS[block.type] * len(found.locals))
        return found

    # calls

    def _module(self, reference: Traversal, scope: Scope) -> tuple[Value, int]:
        name = self._name(reference, scope)
        block = self.source.calls.get(name)
        if block is None:
            raise scope.refusal(reference.line, f"module.{name} is not declared in this module")
        instances = self.instances(block)
        if instances.unknown is not None:
            return Value(DYNAMIC, instances.unknown), 1
        where = f"{scope.file}:{reference.line}"
        used, key = 1, None
        if instances.repeated is not None:
            key = _literal_key(reference, scope)
            if key not in instances.locals:
                made = {each: self.child(block, each).outputs(where) for each in instances.locals}
                return _collected(instances, made), 1
            used = 2
        child = self.child(block, key)
        step = reference.steps[used] if used < len(reference.steps) else None
        if isinstance(step, GetAttribute):
            return child.output(step.name, where), used + 1
        return child.outputs(where), used

    def children(self) -> Iterator["Module"]:
        """Yield every instance of every module that it calls. Raises ConfigError: how many there are is unknown."""
        for block in self.source.calls.values():
            for key in self.instances(block).known():
                yield self.child(block, key)

    def child(self, block: Block, key: Key) -> "Module":
        """Return an instance of a module that it calls.

        Raises:
            ConfigError: the module is not found, or its arguments are not those that it declares.

        """
        return self.progress.once(
            (self._id, "child", block.labels[0], key),
            self._shown(f"module.{block.labels[0]}"),
            f"{block.file}:{block.line}",
            lambda: self._called(block, key),
        )

    def _called(self, block: Block, key: Key) -> "Module":
        shown = "" if key is None else f"[{key}]" if isinstance(key, int) else f"[{quoted(key)}]"
        path = (*self.path, block.labels[0] + shown)
        if len(path) > _DEEPEST:
            raise ConfigError(f"{block.file}:{block.line}: modules call each other more than {_DEEPEST} deep")
        plain = tuple(part.partition("[")[0] for part in path)
        directory = self.modules.target(self.root, plain, block, self.source.directory)
        source = self.modules.source(directory)
        scope = self.scope(block.file, self.instances(block).known()[key])
        given = {name: each for name, each in block.body.attributes.items() if name not in _CALL_WORDS}
        _check_arguments(block, given, source)
        return Module(
            modules=self.modules,
            source=source,
            root=self.root,
            functions=self.functions,
            progress=self.progress,
            path=path,
            arguments={name: (each, scope) for name, each in given.items()},
        )

    def output(self, name: str, where: str) -> Value:
        """Return the value of an output. Raises ConfigError: there is none of this name."""
        block = self.source.outputs.get(name)
        if block is None:
            raise ConfigError(f"{where}: module.{'.'.join(self.path)} has no output {name}")
        found = attribute_value(block, "value")
        if found is None:
            raise ConfigError(f"{block.file}:{block.line}: output {name} has no value")
        scope = self.scope(block.file)
        value = self.progress.once(
            (self._id, "output", name), self._shown(f"output.{name}"), where, lambda: evaluate(found, scope)
        )
        return evolve(value, sensitive=True) if _flag(block, "sensitive", scope) else value

    def outputs(self, where: str) -> Value:
        """Return all outputs as an object."""
        return object_value({name: self.output(name, where) for name in self.source.outputs})

    @property
    def _id(self) -> tuple[str, ...]:
        return self.path

    def _shown(self, name: str) -> str:
        return ".".join([*(f"module.{part}" for part in self.path), name])


def _collected(instances: Instances, made: Mapping[Key, Value]) -> Value:
    if instances.repeated is None:
        return made[None]
    if instances.repeated == "count":
        return tuple_value(made.values())
    return object_value({str(key): value for key, value in made.items()})


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


def _check_arguments(block: Block, given: Mapping[str, Attribute], source: ModuleSource) -> None:
    for name, attribute in given.items():
        if name not in source.variables:
            raise ConfigError(f"{attribute.file}:{attribute.line}: module {block.labels[0]} has no variable {name}")
    for name, variable in source.variables.items():
        if name not in given and "default" not in variable.body.attributes:
            raise ConfigError(f"{block.file}:{block.line}: module {block.labels[0]}: the argument {name} is missing")


def _from(root: str, directory: str) -> str:
    """Return a directory as Terraform names it in the root module's directory."""
    if directory == root:
        return "."
    if root == ".":
        return directory
    return posixpath.relpath(directory, root)
