"""Resources of Jikkou: what each document of a file is."""

import re
from collections.abc import Iterator, Sequence

from attrs import define, field

from aclog.sources.formats.left_out import leave_out_resource
from aclog.sources.formats.node import Node
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.resources import Resource
from aclog.sources.formats.source_file import SourceFile

AUTHORIZATION = "KafkaPrincipalAuthorization"
ROLE = "KafkaPrincipalRole"
_LISTS = {f"{AUTHORIZATION}List": AUTHORIZATION, f"{ROLE}List": ROLE}
_VERSIONS = tuple(f"kafka.jikkou.io/{version}" for version in ("v1", "v1beta2", "v1beta1"))
_API_VERSION = re.compile(r"""["']?apiVersion["']?\s*:\s*["']?([a-z]+\.)?jikkou\.io/""")
_TEMPLATE = re.compile(r"\{\{|\{%|\{#")
_IGNORE = "jikkou.io/ignore"
_PROVIDER = "jikkou.io/provider"


@define(kw_only=True)
class Resources:
    """The authorizations and roles of some files, each by its name."""

    authorizations: dict[str, Node] = field(factory=dict)
    roles: dict[str, Node] = field(factory=dict)
    _providers: dict[str, Node] = field(factory=dict, init=False)

    def add(self, kind: str, resource: Node, context: ReadContext) -> None:
        """Take a resource.

        Raises:
            ConfigError: it has no name, its name is taken, or it belongs to another provider than those before it.

        """
        if annotated(resource, _IGNORE):
            context.ignore(f"{kind} with {_IGNORE}")
            return
        metadata = resource.required("metadata", kind)
        name = metadata.required("name", f"metadata of {kind}").text("name")
        self._check_provider(resource)
        found = self.roles if kind == ROLE else self.authorizations
        if name in found:
            first = found[name]
            raise metadata.error(f"{kind} {name[:60]!r} stands twice: it is in {first.file}:{first.line} already")
        found[name] = resource

    def _check_provider(self, resource: Node) -> None:
        """Refuse a second provider: these are rules of another cluster."""
        provider = annotation(resource, _PROVIDER)
        if provider is None:
            return
        first = self._providers.setdefault("", provider)
        if first.text("provider") != provider.text("provider"):
            raise provider.error(
                f"{_PROVIDER} is {provider.raw[:60]!r}, and {first.raw[:60]!r} in {first.file}:{first.line}: "
                "these are rules of two clusters; give the files of one"
            )


def claims(file: SourceFile) -> bool:
    """Return whether a file holds resources of Jikkou, of any kind. Raises ConfigError: not UTF-8."""
    return file.has_suffix(".yaml", ".yml", ".json", ".tpl") and _API_VERSION.search(file.text) is not None


def read_resources(files: Sequence[SourceFile], context: ReadContext) -> Resources:
    """Return the authorizations and roles of files; other kinds are counted.

    Raises:
        ConfigError: a template, or something that is no resource; with file and line.

    """
    found = Resources()
    for file in files:
        template = _TEMPLATE.search(file.text)
        if template is None:
            for document in file.documents:
                for kind, resource in _resources(document):
                    _add(kind, resource, found, context)
        elif "KafkaPrincipal" in file.text:
            line = file.text.count("\n", 0, template.start()) + 1
            raise file.error(line, "a template: render it first, and give what Jikkou prints")
        else:
            context.ignore("template")
    return found


def _resources(document: Node) -> Iterator[tuple[str, Node]]:
    kind = document.required("kind", "the resource").text("kind")
    version = document.required("apiVersion", "the resource")
    if kind in _LISTS:
        for item in document.members("items"):
            yield _LISTS[kind], item
    else:
        if kind in {AUTHORIZATION, ROLE} and version.text("apiVersion") not in _VERSIONS:
            raise version.error(f"{kind} has the version {version.raw[:60]!r}: expected one of {', '.join(_VERSIONS)}")
        yield kind, document


def _add(kind: str, resource: Node, found: Resources, context: ReadContext) -> None:
    if kind in {AUTHORIZATION, ROLE}:
        found.add(kind, resource, context)
    elif kind.startswith("KafkaPrincipal"):
        raise resource.error(f"unknown kind {kind[:60]!r}: expected {AUTHORIZATION} or {ROLE}")
    else:
        leave_out_resource(Resource(resource, "", kind), context)


def annotation(resource: Node, key: str) -> Node | None:
    """Return the value of an annotation."""
    metadata = resource.get("metadata")
    annotations = None if metadata is None else metadata.get("annotations")
    return None if annotations is None else annotations.get(key)


def annotated(resource: Node, key: str) -> bool:
    """Return whether an annotation is true. Raises ConfigError: it is neither true nor false."""
    found = annotation(resource, key)
    if found is None:
        return False
    text = found.text(key).lower()
    if text not in {"true", "false"}:
        raise found.error(f"{key} is {found.raw[:60]!r}: expected true or false")
    return text == "true"
