"""Terraform as a format: its files, its plans and states, and their ACLs."""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from attrs import evolve

from aclog.authorizer.acl import FileOrigin, ModuleCall, StandardAcl, StatedCluster
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.control import malformed
from aclog.authorizer.symbols import is_symbol, principal_symbol
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats.rule import LocatedRule, ReadContext, SourceFile
from aclog.sources.formats.terraform.clusters import Providers
from aclog.sources.formats.terraform.collection_functions import Function
from aclog.sources.formats.terraform.evaluation import Budget, NoNames, Progress, Scope, evaluate
from aclog.sources.formats.terraform.file_functions import FUNCTIONS, ModuleFiles, file_functions
from aclog.sources.formats.terraform.hcl import (
    Block,
    Digits,
    LocatedObject,
    parse_located,
    read_template,
)
from aclog.sources.formats.terraform.inputs import STACK_FILE, Stack, assignments, read_stacks, report_unread_files
from aclog.sources.formats.terraform.manifests import ManifestReader
from aclog.sources.formats.terraform.module import Key, Module, Modules, is_module_file
from aclog.sources.formats.terraform.others import HOLDERS, judge_block, judge_object, may_hold_rules
from aclog.sources.formats.terraform.values import (
    DYNAMIC,
    MAPPINGS,
    STRING,
    EvaluationError,
    TooLargeError,
    Value,
    ValueFault,
    convert,
    string,
)
from aclog.sources.formats.unread import Dormant, Unread, UnreadKind
from aclog.sources.formats.verdicts import rule_in_text

# Root modules: their variables' values come from files.


def root_module(modules: Modules, directory: str, stack: Stack | None = None) -> Module:
    """Return the root module in a directory, with the values that files and flags give its variables.

    Raises:
        ConfigError: a file is wrong, with the line; OSError: one cannot be read.

    """
    files = ModuleFiles(modules.context.tree, directory)
    functions = {**FUNCTIONS, **file_functions(files)}
    functions["templatefile"] = _templatefile(files, dict(functions), modules.budget)
    source = modules.source(directory)
    return Module(
        modules=modules,
        source=source,
        root=directory,
        stack="" if stack is None else stack.directory,
        functions=functions,
        progress=Progress(modules.budget),
        assignments=assignments(modules.context, source, stack),
    )


def _templatefile(files: ModuleFiles, functions: dict[str, Function], budget: Budget) -> Function:
    def _render(path: Value, names: Value) -> Value:
        if names.type.kind not in MAPPINGS:
            raise ValueFault("the second argument must be a map or an object")
        text, display = files.text(path.text), files.tree.display(files.path(path.text))
        scope = Scope(display, NoNames(), functions, names.entries, budget)
        return evaluate(read_template(text, display), scope)

    return Function(parameters=(STRING, DYNAMIC), body=_render, structural=True)


# The resources that make rules: Mongey's `kafka_acl`, and Confluent's `confluent_kafka_acl`.


_Member = TypeVar("_Member")
MakeError: TypeAlias = Callable[[str, str], ConfigError]
"""Makes an error about an attribute: its name, and the problem."""

_META = frozenset(
    {"count", "for_each", "provider", "depends_on", "lifecycle", "connection", "provisioner", "id", "timeouts"}
)
"""The attributes and blocks that every resource may have."""


@frozen(kw_only=True)
class AclSchema:
    """How a kind of resource names the parts of a rule, and their values."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str
    defaults: Mapping[str, str]
    resource_types: Mapping[str, ResourceType]
    pattern_types: Mapping[str, PatternType]
    operations: Mapping[str, AclOperation]
    permission_types: Mapping[str, AclPermissionType]
    others: frozenset[str]
    """Attributes and blocks that do not affect the rule."""

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that make the rule."""
        return (
            self.resource_type,
            self.resource_name,
            self.pattern_type,
            self.principal,
            self.host,
            self.operation,
            self.permission_type,
        )

    @property
    def symbolic(self) -> tuple[str, ...]:
        """The attributes whose values may be known after apply only."""
        return self.resource_name, self.principal, self.host

    def rule(self, texts: Mapping[str, str], hidden: Collection[str], error: MakeError) -> StandardAcl:
        """Return the rule of the attributes; hidden ones are not shown in errors.

        Raises:
            ConfigError: a word that the provider does not define, or a rule that no Kafka accepts.

        """

        def _word(name: str, words: Mapping[str, _Member]) -> _Member:
            member = words.get(texts[name])
            if member is None:
                value = "" if name in hidden else f" {texts[name][:40]!r}"
                raise error(name, f"{name}{value} is not one of {', '.join(words)}")
            return member

        acl = StandardAcl(
            resource_type=_word(self.resource_type, self.resource_types),
            resource_name=texts[self.resource_name],
            pattern_type=_word(self.pattern_type, self.pattern_types),
            principal=texts[self.principal],
            host=texts[self.host],
            operation=_word(self.operation, self.operations),
            permission_type=_word(self.permission_type, self.permission_types),
        )
        refused = malformed(acl)
        if refused is not None:
            raise error("", f"no Kafka accepts this rule: {refused}")
        return acl


_TYPES = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.DELEGATION_TOKEN,
)
_OPERATIONS = (
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
)
_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
_PERMISSIONS = (AclPermissionType.DENY, AclPermissionType.ALLOW)


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")).removesuffix("Id") + (
        "ID" if name.endswith("_ID") else ""
    )


_KAFKA = AclSchema(
    resource_type="resource_type",
    resource_name="resource_name",
    pattern_type="resource_pattern_type_filter",
    principal="acl_principal",
    host="acl_host",
    operation="acl_operation",
    permission_type="acl_permission_type",
    defaults=MappingProxyType({"resource_pattern_type_filter": "Literal"}),
    resource_types=MappingProxyType({_camel(each.name): each for each in _TYPES}),
    pattern_types=MappingProxyType({_camel(each.name): each for each in _PATTERNS}),
    operations=MappingProxyType({_camel(each.name): each for each in _OPERATIONS}),
    permission_types=MappingProxyType({_camel(each.name): each for each in _PERMISSIONS}),
    others=_META,
)
_CONFLUENT = AclSchema(
    resource_type="resource_type",
    resource_name="resource_name",
    pattern_type="pattern_type",
    principal="principal",
    host="host",
    operation="operation",
    permission_type="permission",
    defaults=MappingProxyType({}),
    resource_types=MappingProxyType({each.name: each for each in _TYPES}),
    pattern_types=MappingProxyType({each.name: each for each in _PATTERNS}),
    operations=MappingProxyType({each.name: each for each in _OPERATIONS}),
    permission_types=MappingProxyType({each.name: each for each in _PERMISSIONS}),
    others=_META | {"kafka_cluster", "rest_endpoint", "http_endpoint", "credentials"},
)

_REDPANDA = evolve(
    _CONFLUENT,
    pattern_type="resource_pattern_type",
    permission_type="permission_type",
    others=_META | {"cluster_api_url", "cluster_id", "allow_deletion"},
)
"""Also that of `confluentacl_acl`: both have the words of Confluent's, and other names of two attributes."""

SCHEMAS: Mapping[str, AclSchema] = MappingProxyType(
    {
        "kafka_acl": _KAFKA,
        "confluent_kafka_acl": _CONFLUENT,
        "confluentcloud_kafka_acl": _CONFLUENT,
        "redpanda_acl": _REDPANDA,
        "confluentacl_acl": evolve(_REDPANDA, others=_CONFLUENT.others | _REDPANDA.others | {"environment", "cluster"}),
    }
)
"""By the kind of resource; `confluentcloud` is what Confluent's provider was called before."""

# Rules of a Terraform configuration: every root module of a tree, expanded.


def read_configuration(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of the root modules among the directories of these files.

    A file that is given alone yields the rules of its own blocks; its whole module is evaluated.

    Raises:
        ConfigError: something on the way to a rule is wrong, unknown or not understood, with file and line.
        OSError: a file cannot be read.

    """
    modules = Modules(context)
    configuration = [file for file in files if is_module_file(file.base_name)]
    directories = _without_broken(
        modules, {file.path.rpartition("/")[0] or "." for file in configuration}, configuration
    )
    alone = files[0].name if context.tree.paths() == [files[0].path] else None
    stacks = list(read_stacks([file for file in files if file.base_name == STACK_FILE], modules))
    staged = {each.target for each in stacks}
    roots = [root_module(modules, each) for each in modules.roots(directories) if each not in staged]
    roots += [root_module(modules, each.target, each) for each in stacks]
    manifests = ManifestReader(context=context)
    yield from _rules_of_roots(roots, alone, manifests, context)
    report_unread_files(roots, context)
    declared = {name for root in roots for name in root.source.variables}
    for name in context.inputs.values:
        if roots and name not in declared:
            context.notes.append(f"--var {name}: no root module declares it, so it has no effect")
    for root in roots:  # last: which variables decide a rule has been reported
        _declare_topics(root, Providers(root=root))
    _count_others(modules, context)


def _rules_of_roots(
    roots: Sequence[Module], alone: str | None, manifests: ManifestReader, context: ReadContext
) -> Iterator[LocatedRule]:
    """Yield the rules of root modules; one with an error is unread if others have rules, and the tree is no plan's.

    Raises:
        ConfigError: the first error, if no other root module has rules, or `context` is strict.

    """
    errors, has_rules = dict[str, ConfigError](), False
    for root in roots:
        directory = root.source.directory
        try:
            rules = list(_rules(root, alone, "", (), manifests, Providers(root=root)))
        except ConfigError as error:
            if context.strict or alone is not None or root.progress.budget.is_spent:
                raise  # of work without end, all root modules have a share
            errors[directory] = error
            continue
        has_rules = has_rules or bool(rules)
        yield from rules
    for directory, problem in errors.items():
        if not has_rules:
            raise problem
        at = _AT_A_LINE.fullmatch(str(problem))
        file, line = (context.tree.display(directory), 1) if at is None else (at["file"], int(at["line"]))
        why = f"a root module has an error: {problem if at is None else at['what']}"
        context.not_read(UnreadKind.BROKEN, FileOrigin(file=file, line=line), why, name="root-module")


_AT_A_LINE = re.compile(r"(?P<file>.+?):(?P<line>[0-9]+): (?P<what>.+)", re.DOTALL)
"""An error about a line of a file (SourceFile.error)."""


_TOPICS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("kafka_topic", "redpanda_topic", "rhoas_topic", "yandex_mdb_kafka_topic"), "name"),
        **dict.fromkeys(("confluent_kafka_topic", "confluentcloud_kafka_topic", "aiven_kafka_topic"), "topic_name"),
        "digitalocean_database_kafka_topic": "name",
        "google_managed_kafka_topic": "topic_id",
        "confluent_kafka_mirror_topic": "mirror_topic_name",
    }
)
"""The attributes with the names of topics, by the kinds of resources that declare them."""


def _declare_topics(module: Module, providers: Providers) -> None:
    """Report the topics that a module and the modules in it declare; one that cannot be evaluated as unknown."""
    context = module.modules.context
    for (kind, _), block in module.source.resources.items():
        if kind in _TOPICS:
            for name, cluster in _topic_names(module, block, providers):
                context.declare_topic(name, block, cluster)
    for block in module.source.calls.values():
        try:
            for key in module.instances(block).by_key():
                _declare_topics(module.child(block, key), providers.of_call(block))
        except ConfigError:
            context.declare_topic(None, block, providers.of_root())


def _topic_names(module: Module, block: Block, providers: Providers) -> Iterator[tuple[str | None, StatedCluster]]:
    attribute = block.body.attributes.get(_TOPICS[block.labels[0]])
    if attribute is None:
        yield None, providers.of_root()
        return
    try:
        for local in module.instances(block).by_key().values():
            value = evaluate(attribute.value, module.scope(attribute.file, local))
            is_text = value.unknown is None and not value.is_null and not value.sensitive
            name = convert(value, STRING).text if is_text else value.symbol or None
            yield name, providers.cluster(module, block, local)
    except (ConfigError, EvaluationError, TooLargeError, ValueFault):
        yield None, providers.of_root()


_CALL = re.compile(r'(?m)^\s*"?module"?\s*[":{]')
"""A call of a module, whose rules may be elsewhere."""


def _without_broken(modules: Modules, directories: Collection[str], files: Sequence[SourceFile]) -> set[str]:
    """Return the directories whose files are Terraform's language; others are unread, or cannot hold rules.

    Raises:
        ConfigError: none is.

    """
    errors: dict[str, ConfigError] = {}
    for directory in sorted(directories):
        try:
            modules.source(directory)
        except ConfigError as error:
            errors[directory] = error
    if errors and len(errors) == len(directories):
        raise next(iter(errors.values()))
    for directory, problem in errors.items():
        own = [file for file in files if (file.path.rpartition("/")[0] or ".") == directory]
        texts = [(file, file.content.decode(errors="replace")) for file in own]
        stating = next((file for file, text in texts if rule_in_text(text) is not None or _CALL.search(text)), None)
        if stating is None:
            modules.context.ignore("module that is not Terraform")
        else:
            why = f"a module that may state rules has an error: {problem}"
            modules.context.not_read(UnreadKind.BROKEN, FileOrigin(file=stating.name, line=1), why)
    return set(directories) - errors.keys()


def _rules(
    module: Module,
    only_file: str | None,
    above: str,
    calls: tuple[ModuleCall, ...],
    manifests: ManifestReader,
    providers: Providers,
) -> Iterator[LocatedRule]:
    """Yield the rules of a module; `above` is its own address with a dot behind it, empty for the root.

    `calls`: those that lead to the module. `providers`: those that it has.
    """
    for (kind, name), block in module.source.resources.items():
        if only_file not in (None, block.file):
            continue
        if kind in SCHEMAS:
            for key, local in _instances(module, block, above).items():
                address = f"{above}{kind}.{name}{_index(key)}"
                acl, cluster = _acl(module, block, SCHEMAS[kind], local), providers.cluster(module, block, local)
                origin = FileOrigin(file=block.file, line=block.line, address=address, calls=calls, cluster=cluster)
                yield LocatedRule(acl=acl, origin=origin)
        elif kind in HOLDERS:
            for rule in _in_manifests(module, block, above, manifests):
                cluster = rule.origin.cluster or providers.of_root()
                yield evolve(rule, origin=evolve(rule.origin, calls=calls, cluster=cluster))
    for name, block in module.source.calls.items():
        if only_file in (None, block.file):
            missing, context = module.missing(block), module.modules.context
            if missing is not None and only_file == context.tree.name:
                raise missing
            if missing is not None:
                context.not_read(UnreadKind.TERRAFORM, block, _without_place(missing), name="module")
                continue
            for key in _instances(module, block, above):
                part = f"module.{name}{_index(key)}"
                call = ModuleCall(file=block.file, line=block.line, name=part)
                inner = providers.of_call(block)
                yield from _rules(module.child(block, key), None, f"{above}{part}.", (*calls, call), manifests, inner)


def _instances(module: Module, block: Block, above: str) -> Mapping[Key, Mapping[str, Value]]:
    """Return the local names of each instance; report a block that has none, maybe by a default of the root module."""
    instances = module.instances(block).by_key()
    if instances or not module.takes_defaults or not _may_make_rules(module, block):
        return instances
    address = above + ".".join(block.labels if block.type == "resource" else (block.type, *block.labels))
    what = "for_each is empty" if "for_each" in block.body.attributes else "count is 0"
    why = f"{address} makes no rule here: its {what}, maybe by a default: expected --var-file FILE, or --var"
    kind = block.labels[0] if block.type == "resource" else block.type
    unread = Unread(kind=UnreadKind.VARIABLES, file=block.file, line=block.line, reason=why, name=kind)
    content = sha256(repr(module.structure_of(block)).encode()).hexdigest()
    module.modules.context.dormant.append(Dormant(unread=unread, address=address, content=content))
    return instances


def _may_make_rules(module: Module, block: Block) -> bool:
    if block.type == "module":
        return module.states_rules(block, SCHEMAS.keys() | HOLDERS.keys())
    return block.labels[0] in SCHEMAS or may_hold_rules(block)


def _without_place(error: ConfigError) -> str:
    """Return an error without the file and the line at its beginning."""
    return str(error).split(": ", 1)[-1]


def _in_manifests(module: Module, block: Block, above: str, manifests: ManifestReader) -> Iterator[LocatedRule]:
    """Yield the rules of users of Kubernetes in a resource; of most, nothing is known to make any."""
    try:
        instances = _instances(module, block, above)
    except ConfigError as error:
        manifests.not_counted(block, str(error))
        return
    for key, local in instances.items():
        yield from manifests.rules(module, block, local, f"{above}{'.'.join(block.labels)}{_index(key)}")


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
    values = {name: _value(module, block, schema, name, local) for name in schema.names}
    texts = {name: value.text for name, value in values.items()}
    hidden = [name for name, value in values.items() if value.sensitive]
    return schema.rule(texts, hidden, lambda name, what: _error(block, name, what))


def _value(module: Module, block: Block, schema: AclSchema, name: str, local: Mapping[str, Value]) -> Value:
    """Return the string that an attribute is; a symbol, if only Terraform knows it."""
    attribute, default = block.body.attributes.get(name), schema.defaults.get(name)
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
    if value.unknown is not None and name in schema.symbolic and value.symbol:
        return string(principal_symbol(value.symbol) if name == schema.principal else value.symbol)
    if value.unknown is not None:
        here = str(_error(block, name, ""))
        what = value.unknown.what if here.startswith(f"{value.unknown.where}:") else str(value.unknown)
        fix = value.unknown.fix or "read a plan or a state instead (terraform show -json)"
        raise _error(block, name, f"{name} depends on {what}: {fix}")
    try:
        value = convert(value, STRING)
    except ValueFault as fault:
        raise _error(block, name, f"{name}: {fault}") from fault
    if is_symbol(value.text):
        raise _error(block, name, f"{name} has U+FDD0 before ${{, which no name has")
    return value


def _error(block: Block, name: str, what: str) -> ConfigError:
    """Return an error at an attribute of a block, or at the block."""
    attribute = block.body.attributes.get(name)
    line = block.line if attribute is None else attribute.line
    file = block.file if attribute is None else attribute.file
    return ConfigError(f"{file}:{line}: {what}")


def _count_others(modules: Modules, context: ReadContext) -> None:
    for source in modules.read():
        for (kind, _), block in source.resources.items():
            if kind not in SCHEMAS and kind not in HOLDERS:
                judge_block(kind, block, context)
        for kind, _ in source.data:
            if kind not in SCHEMAS:
                context.ignore(kind)


# Terraform's JSON: plans and states by `terraform show -json`, and state files (terraform.tfstate).


_MARKS = (b'"format_version"', b'"lineage"')
_PARTS = (b'"planned_values"', b'"root_module"', b'"terraform_version"')
"""A plan or a state has one of each; other programs' files have one of the former at most."""
_FORMATS = ("0.", "1.")


def claims_json(file: SourceFile) -> bool:
    """Return whether a file is a plan or a state. Raises ConfigError, OSError: it cannot be read."""
    if file.has_suffix(".tfstate"):
        return True
    return file.has_suffix(".json") and file.mentions(*_MARKS) and file.mentions(*_PARTS)


def read_json(file: SourceFile, context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of a plan (as it will be once applied) or a state.

    Raises:
        ConfigError: neither, of an unknown version, or a part of a rule is known after apply only.

    """
    top = parse_located(file.content, file.name)
    if not isinstance(top, LocatedObject):
        raise file.error(1, "neither a plan nor a state of Terraform")
    if "format_version" in top:
        version = str(top["format_version"])
        if not version.startswith(_FORMATS):
            raise file.error(top.line_of("format_version"), f"format_version {version[:20]!r}: expected 0.x or 1.x")
        yield from _show_output(file, top, context)
    elif str(top.get("version")) == "4":
        yield from _state(file, top, context)
    else:
        raise file.error(top.line, "neither `terraform show -json` nor a state of version 4")


def _show_output(file: SourceFile, top: LocatedObject, context: ReadContext) -> Iterator[LocatedRule]:
    if top.get("errored") is True:
        raise file.error(top.line_of("errored"), "the plan failed: it does not hold all resources")
    unknowns = _unknown_after(top)
    key = "planned_values" if "planned_values" in top else "values"
    values = top.get(key)
    if values is None and key == "values":
        return  # an empty state
    if not isinstance(values, LocatedObject):
        raise file.error(top.line, f"{key} is not an object")
    pending = [values.get("root_module")]
    while pending:
        module = pending.pop()
        if module is None:
            continue
        if not isinstance(module, LocatedObject):
            raise file.error(top.line_of(key), "a module is not an object")
        for resource in _objects(file, module, "resources"):
            address = str(resource.get("address"))
            if resource.get("mode") != "managed":
                context.ignore(str(resource.get("type")))
            elif resource.get("type") in SCHEMAS:
                yield _rule(file, resource, resource.get("values"), address, unknowns.get(address))
            else:
                _declare_topic(file, resource, resource.get("values"), unknowns.get(address), context)
                judge_object(str(resource.get("type")), file.name, resource, resource.get("values"), context)
        pending.extend(reversed(_objects(file, module, "child_modules")))


def _unknown_after(top: LocatedObject) -> Mapping[str, object]:
    """Return the attributes of each resource that are known after apply only, by a plan."""
    changes = top.get("resource_changes")
    by_address: dict[str, object] = {}
    for change in changes if isinstance(changes, list) else []:
        inner = change.get("change") if isinstance(change, LocatedObject) else None
        if isinstance(change, LocatedObject) and isinstance(inner, LocatedObject):
            by_address[str(change.get("address"))] = inner.get("after_unknown")
    return by_address


def _state(file: SourceFile, top: LocatedObject, context: ReadContext) -> Iterator[LocatedRule]:
    for resource in _objects(file, top, "resources"):
        kind = resource.get("type")
        if resource.get("mode") != "managed":
            context.ignore(str(kind))
            continue
        if kind not in SCHEMAS:
            for instance in _objects(file, resource, "instances") if kind in _TOPICS else ():
                _declare_topic(file, resource, instance.get("attributes"), None, context)
            judge_object(str(kind), file.name, resource, resource.get("instances"), context)
            continue
        name = ".".join(str(resource[key]) for key in ("module", "type", "name") if key in resource)
        for instance in _objects(file, resource, "instances"):
            if "deposed" in instance:
                raise file.error(
                    instance.line, f"{name}: an object to be destroyed is still there: apply the change first"
                )
            index = instance.get("index_key")
            address = name if index is None else f"{name}[{json.dumps(index, ensure_ascii=False)}]"
            typed = LocatedObject([*instance.items(), ("type", kind)], instance.line, [])
            yield _rule(file, typed, instance.get("attributes"), address, None)


def _declare_topic(
    file: SourceFile, resource: LocatedObject, values: object, unknown: object, context: ReadContext
) -> None:
    """Report the topic of a resource that declares one; its name is unknown if it is known after apply only."""
    key = _TOPICS.get(str(resource.get("type")))
    if key is not None:
        name = values.get(key) if isinstance(values, LocatedObject) else None
        is_text = isinstance(name, str) and not isinstance(name, Digits)
        is_unknown = isinstance(unknown, LocatedObject) and unknown.get(key) is True
        place = FileOrigin(file=file.name, line=resource.line)
        context.declare_topic(str(name) if is_text and not is_unknown else None, place, _of_file(file))


def _of_file(file: SourceFile) -> StatedCluster:
    """Return the cluster of a plan or a state, which is of one root module."""
    return StatedCluster(basis="plan or state of Terraform", name=file.path)


def _objects(file: SourceFile, owner: LocatedObject, key: str) -> list[LocatedObject]:
    items = owner.get(key, [])
    if not isinstance(items, list) or not all(isinstance(item, LocatedObject) for item in items):
        raise file.error(owner.line_of(key), f"{key} is not a list of objects")
    return items


def _rule(file: SourceFile, resource: LocatedObject, values: object, address: str, unknown: object) -> LocatedRule:
    schema = SCHEMAS[str(resource["type"])]
    if not isinstance(values, LocatedObject):
        raise file.error(resource.line, f"{address} has no values")
    unexpected = [name for name in values if name not in schema.names and name not in schema.others]
    if unexpected:
        raise file.error(
            values.line_of(unexpected[0]), f"{address} has an attribute {unexpected[0]!r}, which is unknown"
        )
    texts = {name: _text(file, values, schema, name, address, unknown) for name in schema.names}

    def _error(name: str, what: str) -> ConfigError:
        return file.error(values.line_of(name) if name in values else resource.line, f"{address}: {what}")

    origin = FileOrigin(file=file.name, line=resource.line, address=address, cluster=_of_file(file))
    return LocatedRule(acl=schema.rule(texts, (), _error), origin=origin)


def _text(file: SourceFile, values: LocatedObject, schema: AclSchema, name: str, address: str, unknown: object) -> str:
    if isinstance(unknown, LocatedObject) and unknown.get(name) is True:
        raise file.error(values.line, f"{address}: {name} is known after apply only: read the state once it is applied")
    value = values.get(name)
    if value is None and name in schema.defaults:
        return schema.defaults[name]
    if not isinstance(value, str) or isinstance(value, Digits):
        raise file.error(values.line, f"{address}: {name} is missing, or not text")
    return value


# Terraform as a format: which files are its, and their rules.


_MOST_FRAMES = 20_000
"""References lead to others, and through modules: a few frames each. Frames of Python take no stack of C."""


def claims(file: SourceFile) -> bool:
    """Return whether a file is of a module, a stack of Terragrunt, a plan or a state."""
    return _is_configuration(file) or claims_json(file)


def _is_configuration(file: SourceFile) -> bool:
    return is_module_file(file.base_name) or file.base_name == STACK_FILE


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules of all modules, plans and states.

    Raises:
        ConfigError: something on the way to a rule is wrong, unknown or not understood, with file and line.
        OSError: a file cannot be read.

    """
    configuration = [file for file in files if _is_configuration(file)]
    for file in files:
        if _is_configuration(file):
            continue
        if configuration:
            context.ignore("plan or state beside a configuration")
        else:
            yield from read_json(file, context)
    if configuration:
        with _deep_recursion():
            try:
                rules = list(read_configuration(configuration, context))
            except RecursionError as error:
                raise ConfigError(f"{context.tree.name}: references or calls lead too deep") from error
        yield from rules


@contextmanager
def _deep_recursion() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _MOST_FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
