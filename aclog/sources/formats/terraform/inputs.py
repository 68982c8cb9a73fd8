"""The values that a root module's variables get from outside: files of variables, flags, and terragrunt.hcl."""

import os
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import field

from aclog.authorizer.acl import FileOrigin
from aclog.authorizer.symbols import hidden_part
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats.rule import ReadContext, SourceFile
from aclog.sources.formats.terraform.evaluation import NoNames, Scope, evaluate
from aclog.sources.formats.terraform.hcl import (
    Attribute,
    Block,
    Body,
    Expression,
    Literal,
    ObjectOf,
    literal_text,
    read_body,
    read_expression,
    read_json_values,
)
from aclog.sources.formats.terraform.module import (
    VARIABLE_SUFFIXES,
    Module,
    Modules,
    ModuleSource,
    attribute_value,
    is_module_file,
)
from aclog.sources.formats.terraform.others import node_of
from aclog.sources.formats.terraform.values import Unknown, first_unknown, string, unknown_name
from aclog.sources.formats.unread import UnreadKind
from aclog.sources.formats.verdicts import rule_in

Assignments = Mapping[str, tuple[Attribute, Scope]]
"""The expression that each variable gets, and where it is evaluated."""

# Values in Terraform's order of precedence. TF_VAR_ variables of the environment are not read: the same files give the
# same rules everywhere.


_LITERAL_TYPES = re.compile(r"\A\"?(string|number|bool)\"?\Z")


def assignments(context: ReadContext, source: ModuleSource, stack: "Stack | None" = None) -> Assignments:
    """Return the values of the variables of a root module; later ones win.

    In this order: inputs of terragrunt.hcl, terraform.tfvars, terraform.tfvars.json, *.auto.tfvars and
    *.auto.tfvars.json by name, the files of --var-file in their order, --var.

    Raises:
        ConfigError: a file is no file of variables, a value of --var no expression, or set by --var-file as well.
        OSError: a file cannot be read.

    """
    result: dict[str, tuple[Attribute, Scope]] = {} if stack is None else dict(stack.inputs)
    for path in automatic_files(context, source.directory):
        file = SourceFile(context.tree, path)
        result.update(_scoped(_values(file.content, file.name), file.name))
    for name, content in context.inputs.files:
        result.update(_scoped(_values(content, name), name))
    for name, text in context.inputs.values.items():
        if name in result and result[name][0].file in {file for file, _ in context.inputs.files}:
            first = result[name][0]
            what = "Terraform takes the last flag, and their order is not known here: expected one of the two"
            raise ConfigError(f"--var {name}: {first.file}:{first.line} of --var-file sets it as well; {what}")
        block = source.variables.get(name)
        if block is not None:
            where = f"--var {name}"
            attribute = Attribute(where, 1, name, _value_of_flag(text, block, where))
            result[name] = (attribute, Scope(where, NoNames(), {}))
    return result


def automatic_files(context: ReadContext, directory: str) -> list[str]:
    """Return the files of variables that Terraform reads by itself, in its order, by their paths in the tree."""
    names = context.tree.entries(directory)
    automatic = sorted(name for name in names if name.endswith((".auto.tfvars", ".auto.tfvars.json")))
    ordered = ("terraform.tfvars", "terraform.tfvars.json", *automatic)
    return [posixpath.join(directory, name) for name in ordered if name in names]


def _scoped(values: Mapping[str, Attribute], name: str) -> Assignments:
    scope = Scope(name, NoNames(), {})
    return {key: (attribute, scope) for key, attribute in values.items()}


def _values(content: bytes, name: str) -> Mapping[str, Attribute]:
    if name.endswith(".json"):
        return read_json_values(content, name)
    body = read_body(content, name)
    for block in body.blocks:
        raise ConfigError(f"{block.file}:{block.line}: {block.type}: a file of variables holds no blocks")
    return body.attributes


def _value_of_flag(text: str, block: Block, where: str) -> Expression:
    """Return the value of a variable in a flag: the text itself for a simple type or none, else an expression."""
    kind = attribute_value(block, "type")
    root = getattr(kind, "root", None)
    word = root if root is not None else literal_text(kind)
    is_text = kind is None or (isinstance(word, str) and _LITERAL_TYPES.match(word) is not None)
    return Literal(1, string(text)) if is_text else read_expression(text, where, 1)


# Stacks of Terragrunt: terragrunt.hcl names a module, and gives its variables values.


STACK_FILE = "terragrunt.hcl"
_UNREAD_BLOCKS = ("include", "generate", "dependency", "dependencies", "feature", "unit", "stack")


@frozen(kw_only=True)
class Stack:
    """A terragrunt.hcl whose module is in the tree."""

    directory: str
    """Its own, in the tree."""
    target: str
    """The directory of the module."""
    inputs: Assignments = field(factory=dict)


def read_stacks(files: Sequence[SourceFile], modules: Modules) -> Iterator[Stack]:
    """Yield the stacks of these files; what else they may do is reported as unread.

    Raises:
        ConfigError: not HCL, with the line; OSError: a file cannot be read.

    """
    for file in files:
        body, context = read_body(file.content, file.name), modules.context
        for block in body.blocks:
            if block.type in _UNREAD_BLOCKS:
                why = f"the block {block.type} of a {STACK_FILE}, which may give a module other values"
                context.not_read(UnreadKind.VARIABLES, block, why, name=STACK_FILE)
        inputs = dict(_inputs(body, hidden_part(_directory(file.path)), context))
        target = _target(file, body, modules)
        if target is not None:
            yield Stack(directory=_directory(file.path), target=target, inputs=inputs)
        elif inputs:
            place = body.attributes["inputs"]
            why = "values for a module that is not in this tree: give its directory by --module 'SOURCE=DIR'"
            context.not_read(UnreadKind.VARIABLES, place, why, name=STACK_FILE)


def _inputs(body: Body, mark: str, context: ReadContext) -> Iterator[tuple[str, tuple[Attribute, Scope]]]:
    """Yield the inputs; one that is not literal is unknown. `mark`: distinguishes it from other stacks' ones."""
    attribute = body.attributes.get("inputs")
    if attribute is None:
        return
    if not isinstance(attribute.value, ObjectOf):
        why = f"inputs of a {STACK_FILE} that are not literal"
        context.not_read(UnreadKind.VARIABLES, attribute, why, name=STACK_FILE)
        return
    scope = Scope(attribute.file, NoNames(), {})
    for key, item in attribute.value.items:
        try:
            name = evaluate(key, scope).text
        except ConfigError:
            why = f"an input of a {STACK_FILE} whose name is not literal"
            context.not_read(UnreadKind.VARIABLES, attribute, why, name=STACK_FILE)
            continue
        yield name, (Attribute(attribute.file, item.line, name, _literal(name, item, attribute, mark, context)), scope)


def _literal(name: str, item: Expression, attribute: Attribute, mark: str, context: ReadContext) -> Expression:
    """Return an input that has a value without Terragrunt; else one that is unknown, which is reported."""
    place = Attribute(attribute.file, item.line, name, item)
    try:
        if first_unknown(evaluate(item, Scope(attribute.file, NoNames(), {}))) is None:
            return item
    except ConfigError:
        pass
    context.not_read(UnreadKind.VARIABLES, place, f"inputs.{name} of a {STACK_FILE} is not literal", name=STACK_FILE)
    what = Unknown(f"inputs.{name}, which only Terragrunt knows", f"{place.file}:{place.line}")
    return Literal(item.line, unknown_name(what, f"inputs.{name}{mark}"))


def _target(file: SourceFile, body: Body, modules: Modules) -> str | None:
    """Return the directory of the module of a stack: that of its source, or its own; None: it is not in the tree."""
    directory, context = _directory(file.path), modules.context
    for block in body.blocks:
        source = attribute_value(block, "source") if block.type == "terraform" else None
        if source is None:
            continue
        text = literal_text(source)
        target = None if text is None else modules.local_target(directory, text)
        if target is not None and any(map(is_module_file, context.tree.entries(target))):
            return target
        why = "the module of a stack of Terragrunt is not in this tree: give its directory by --module 'SOURCE=DIR'"
        context.not_read(UnreadKind.TERRAFORM, block, why, name=STACK_FILE)
        return None
    return directory if any(map(is_module_file, context.tree.entries(directory))) else None


def _directory(path: str) -> str:
    return path.rpartition("/")[0] or "."


# Files of variables that nothing names: Terraform reads them if a flag names them.


def is_variables_file(file: SourceFile) -> bool:
    """Return whether a file has values of variables, by its name."""
    return file.path.endswith(VARIABLE_SUFFIXES)


def judge_variables(file: SourceFile, context: ReadContext) -> None:
    """Judge a file of variables in a tree without a module: what its values state may become rules. Raises OSError."""
    try:
        values = _values(file.content, file.name)
    except ConfigError as error:
        context.not_read(UnreadKind.VARIABLES, FileOrigin(file=file.name, line=1), str(error), name=_LABEL)
        return
    rule = rule_in(node_of(file.name, 1, Body(values, ())))
    if rule is None:
        context.ignore(_COUNTED)
    else:
        why = "values of variables with keys of a rule, and no module of Terraform is here"
        context.not_read(UnreadKind.VARIABLES, rule, why, name=_LABEL)


_LABEL = "tfvars"
_COUNTED = "file of variables"


def report_unread_files(roots: Collection[Module], context: ReadContext) -> None:
    """Report files of variables that may decide: those that set an evaluated variable otherwise, or state rules."""
    directories = {each.root for each in roots}
    read = {path for each in directories for path in automatic_files(context, each)}
    paths = set(context.tree.paths())
    for directory in directories:
        paths.update(posixpath.normpath(posixpath.join(directory, name)) for name in context.tree.entries(directory))
    named = {os.path.abspath(name) for name, _ in context.inputs.files}  # noqa: PTH100  # GITREF:PATH is one as well
    for path in sorted(paths - {posixpath.normpath(each) for each in read}):
        file = SourceFile(context.tree, path)
        is_named = os.path.abspath(file.name) in named  # noqa: PTH100
        if is_variables_file(file) and not context.exclude(path) and not is_named:
            _report(file, _owners(path, roots), context)


def _owners(path: str, roots: Collection[Module]) -> list[Module]:
    """Return the root modules that a file of variables may be for: the nearest above it, else all."""
    above = [each for each in roots if each.root == "." or path.startswith(f"{each.root}/")]
    nearest = max((len(each.root) if each.root != "." else 0 for each in above), default=0)
    return [each for each in above if (len(each.root) if each.root != "." else 0) == nearest] or list(roots)


def _report(file: SourceFile, owners: Sequence[Module], context: ReadContext) -> None:
    try:
        values = _values(file.content, file.name)
    except (ConfigError, OSError) as error:
        place = FileOrigin(file=file.name, line=1)
        context.not_read(UnreadKind.VARIABLES, place, f"a file of variables: {error}", name=_LABEL)
        return
    flags = {name for name, _ in context.inputs.files} | {f"--var {name}" for name in context.inputs.values}
    for attribute in values.values():
        why = next(_reasons(attribute, owners, flags), None)
        if why is not None:
            why = f"it sets var.{attribute.name}, {why}: expected --var-file {context.tree.flag_value(file.path)}"
            context.not_read(UnreadKind.VARIABLES, attribute, why, name=_LABEL)
            return
    declared = {name for each in owners for name in each.source.variables}
    others = {name: attribute for name, attribute in values.items() if name not in declared}
    rule = rule_in(node_of(file.name, 1, Body(others, ())))
    if rule is None:
        context.ignore(_COUNTED)
    else:
        why = "values of variables with keys of a rule, which no module of Terraform here declares"
        context.not_read(UnreadKind.VARIABLES, rule, why, name=_LABEL)


def _reasons(attribute: Attribute, owners: Sequence[Module], flags: Collection[str]) -> Iterator[str]:
    """Yield why a value of a file that no flag names may decide, for each root module that it is for.

    `flags`: what states the values of flags, as an attribute names its file.
    """
    for each in owners:
        effective = each.assignments.get(attribute.name)
        if effective is None and each.has_evaluated(attribute.name):
            yield "whose default decides otherwise"
        elif effective is not None and effective[0].file not in flags and each.differs(attribute):
            yield f"which overrides what {effective[0].file} states"
