"""What Terraform says in JSON: plans and states by `terraform show -json`, and state files (terraform.tfstate)."""

import json
from collections.abc import Iterator, Mapping

from aclog.authorizer.origin import FileOrigin
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.formats.terraform.acl_schema import SCHEMAS, AclSchema, may_make_rules
from aclog.sources.formats.terraform.located_json import Digits, LocatedObject, parse_located

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
        ConfigError: neither, of a version that is not known, or a part of a rule is known after apply only.

    """
    top = parse_located(file.content, file.name)
    if not isinstance(top, LocatedObject):
        raise file.error(1, "neither a plan nor a state of Terraform")
    if "format_version" in top:
        version = str(top["format_version"])
        if not version.startswith(_FORMATS):
            raise file.error(top.line_of("format_version"), f"format_version {version[:20]!r}: expected 0.x or 1.x")
        yield from _shown(file, top, context)
    elif str(top.get("version")) == "4":
        yield from _state(file, top, context)
    else:
        raise file.error(top.line, "neither `terraform show -json` nor a state of version 4")


def _shown(file: SourceFile, top: LocatedObject, context: ReadContext) -> Iterator[LocatedRule]:
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
            if resource.get("mode") == "managed":
                _check_kind(file, resource)
            if resource.get("mode") == "managed" and resource.get("type") in SCHEMAS:
                yield _rule(file, resource, resource.get("values"), address, unknowns.get(address))
            else:
                context.ignore(str(resource.get("type")))
        pending.extend(reversed(_objects(file, module, "child_modules")))


def _unknown_after(top: LocatedObject) -> Mapping[str, object]:
    """Return what a plan says of each resource that is known after apply only."""
    changes = top.get("resource_changes")
    found: dict[str, object] = {}
    for change in changes if isinstance(changes, list) else []:
        inner = change.get("change") if isinstance(change, LocatedObject) else None
        if isinstance(change, LocatedObject) and isinstance(inner, LocatedObject):
            found[str(change.get("address"))] = inner.get("after_unknown")
    return found


def _state(file: SourceFile, top: LocatedObject, context: ReadContext) -> Iterator[LocatedRule]:
    for resource in _objects(file, top, "resources"):
        kind = resource.get("type")
        if resource.get("mode") == "managed":
            _check_kind(file, resource)
        if resource.get("mode") != "managed" or kind not in SCHEMAS:
            context.ignore(str(kind))
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


def _check_kind(file: SourceFile, resource: LocatedObject) -> None:
    kind = str(resource.get("type"))
    if may_make_rules(kind):
        raise file.error(resource.line, f"a {kind[:60]} may make rules: expected one of {', '.join(SCHEMAS)}")


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
            values.line_of(unexpected[0]), f"{address} has an attribute {unexpected[0]!r}, which is not known"
        )
    texts = {name: _text(file, values, schema, name, address, unknown) for name in schema.names}

    def _error(name: str, what: str) -> ConfigError:
        return file.error(values.line_of(name) if name in values else resource.line, f"{address}: {what}")

    origin = FileOrigin(file=file.name, line=resource.line, address=address)
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
