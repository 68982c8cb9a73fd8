"""Modules of a tree: parsed once each, and where a call of one leads."""

import json
import posixpath
from collections.abc import Iterable, Mapping

from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.formats.terraform.hcl.bodies import read_body
from aclog.sources.formats.terraform.hcl.json_bodies import read_json_body
from aclog.sources.formats.terraform.hcl.syntax import Block, Body, Literal
from aclog.sources.formats.terraform.module_source import (
    ModuleSource,
    attribute_value,
    is_module_file,
    is_override,
    merge_files,
    module_files,
)
from aclog.sources.formats.terraform.scope import Budget

_MANIFEST = ".terraform/modules/modules.json"


@define(eq=False)
class Modules:
    """The modules of a tree; owned by one reading of it."""

    context: ReadContext
    budget: Budget = field(factory=Budget, init=False)
    _sources: dict[str, ModuleSource] = field(factory=dict, init=False)
    _manifests: dict[str, Mapping[str, str]] = field(factory=dict, init=False)

    def source(self, directory: str) -> ModuleSource:
        """Return the module in a directory. Raises ConfigError, OSError: its files cannot be read, or are wrong."""
        directory = posixpath.normpath(directory)
        found = self._sources.get(directory)
        if found is None:
            names = module_files(self.context.tree.display(directory), self.context.tree.entries(directory))
            bodies = {name: self._body(posixpath.join(directory, name)) for name in names}
            found = merge_files(
                directory,
                [body for name, body in bodies.items() if not is_override(name)],
                [body for name, body in bodies.items() if is_override(name)],
            )
            self._sources[directory] = found
        return found

    def read(self) -> list[ModuleSource]:
        """Return all modules that were asked for, in the order of their directories."""
        return [self._sources[directory] for directory in sorted(self._sources)]

    def roots(self, directories: Iterable[str]) -> list[str]:
        """Return those of the directories that no other one calls as a module.

        Raises:
            ConfigError: there is none: they call each other; or a file is wrong.

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
        given = self.context.modules.get(source)
        return None if given is None else self._given(given)

    def target(self, root: str, path: tuple[str, ...], call: Block, directory: str) -> str:
        """Return the directory of the module that a call names; `path`: the names of the calls from the root to it.

        Raises:
            ConfigError: it is not in the tree, and nobody told where it is.

        """
        source = _source_text(call)
        found = self.local_target(directory, source)
        if found is None:
            vendored = self._manifest(root).get(".".join(path))
            found = None if vendored is None else posixpath.normpath(posixpath.join(root, vendored))
        if found is None:
            raise ConfigError(
                f"{call.file}:{call.line}: module {call.labels[0]}: {source!r} is not in this tree, and it may hold "
                f"rules: run `terraform init` ({_MANIFEST}), or give its directory by --module '{source}=DIR'"
            )
        if not any(map(is_module_file, self.context.tree.entries(found))):
            shown = self.context.tree.display(found)
            raise ConfigError(f"{call.file}:{call.line}: module {call.labels[0]}: {shown} has no .tf files")
        return found

    def _given(self, directory: str) -> str:
        """Return a directory, absolute or from the top of what the tree is part of, as one from the tree's root."""
        if directory.startswith("/"):
            return posixpath.normpath(directory)
        root = self.context.tree.display(".").rpartition(":")[2]
        return posixpath.normpath(directory) if root.startswith("/") else posixpath.relpath(directory, root or ".")

    def _manifest(self, root: str) -> Mapping[str, str]:
        """Return the directories of the modules that `terraform init` fetched, by their path of calls."""
        known = self._manifests.get(root)
        if known is None:
            path = posixpath.join(root, _MANIFEST)
            known = _manifest_of(SourceFile(self.context.tree, path)) if self.context.tree.is_file(path) else {}
            self._manifests[root] = known
        return known

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
    expression = attribute_value(call, "source")
    if isinstance(expression, Literal) and isinstance(expression.value.payload, str):
        return expression.value.payload
    raise ConfigError(
        f"{call.file}:{call.line}: module {call.labels[0]}: its source must be a string without references"
    )
