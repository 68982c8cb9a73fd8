"""Rules in GitOps files: of a directory, or of one file that is not of JSON lines."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from aclog.authorizer.acl import FileOrigin, StandardAcl, origin_text
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.acl_lines import LineTable, accept
from aclog.sources.formats.clusters import Layout, clusters_of
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.reading import ReadFiles, is_array, is_claimed, read_tree, why_unclaimed
from aclog.sources.formats.rule import (
    AbsentFileError,
    DirectoryTree,
    FileTree,
    LocatedRule,
    ReadContext,
    SourceFile,
    StatedRules,
)
from aclog.sources.git import GitTree, ignored_files
from aclog.sources.module_inputs import root_inputs, with_modules
from aclog.sources.read_options import FoundRules, ReadOptions

if TYPE_CHECKING:
    from aclog.sources.rendering import Rendered

_OTHER_SUFFIXES = (".yaml", ".yml", ".csv", ".tf")
"""Suffixes of files that hold no JSON lines."""


def content_rules(
    name: str, content: bytes, beside: FileTree, options: ReadOptions, *, check: Callable[[StandardAcl], None]
) -> FoundRules:
    """Return the rules of one file whose first line is no rule as JSON; `beside` are the files around it.

    Raises:
        ConfigError: as aclog.sources.choice.find_rules.

    """
    alone = _OneFile(name, content, beside)
    if options.form is not AclsFormat.AUTO or alone.file.has_suffix(*_OTHER_SUFFIXES):
        return tree_rules(alone, options, check)
    claimed = next((each for each in alone.guesses() if is_claimed(each.file) or is_array(each.file)), None)
    if claimed is None:
        if (reason := why_unclaimed(alone.file)) is not None:
            raise ConfigError(reason)
        table = LineTable(name)
        # an error of JSON lines, which most files are
        return FoundRules(rules=table.parsed([content.split(b"\n")], check), origins=table)
    return tree_rules(claimed, options, check)


def rendered_rules(
    rendered: "Rendered", options: ReadOptions, check: Callable[[StandardAcl], None] = accept
) -> FoundRules:
    """Return the rules in the output of a command, with their locations in the files that it names.

    Raises:
        ConfigError: as content_rules; a document that is not YAML, or has a template in it.

    """
    output = tree_rules(_Output(rendered), options, check)
    rules = [
        LocatedRule(acl=each.acl, id=each.id, origin=_placed(origin, rendered))
        for each in output.rules
        for origin in output.origins.of(each.acl)
        if isinstance(origin, FileOrigin)
    ]
    places = [rendered.place(each.line) for each in output.unread]
    unread = [evolve(each, file=file, line=line) for each, (file, line) in zip(output.unread, places, strict=True)]
    stated = StatedRules.of_rules(rules)
    layout = None if output.layout is None else evolve(output.layout, stated=stated)
    return evolve(output, origins=stated, unread=(*rendered.left_out, *unread), layout=layout)


def _placed(origin: FileOrigin, rendered: "Rendered") -> FileOrigin:
    file, line = rendered.place(origin.line)
    return evolve(origin, file=file, line=line)


def tree_rules(tree: FileTree, options: ReadOptions, check: Callable[[StandardAcl], None] = accept) -> FoundRules:
    """Return the rules of a tree. Raises as content_rules."""
    source = tree.beside if isinstance(tree, _OneFile) else tree
    commit = source if isinstance(source, GitTree) else None
    whole, modules = with_modules(tree, options.modules, commit=commit)
    inputs, notes = root_inputs(options.inputs, commit=commit)
    context = ReadContext(
        inputs=inputs,
        tree=whole,
        topics=options.topics,
        modules=modules,
        exclude=_excluded(options.exclude),
        ignored_files=partial(_ignored_by_git, source, options),
        may_be_empty=options.may_be_empty,
        is_output=isinstance(tree, _Output),
        strict=options.strict,
    )
    context.notes.extend(notes)
    try:
        files: ReadFiles = read_tree(context, options.form)
    except ConfigError as error:
        if not notes:
            raise
        raise ConfigError("; ".join((str(error), *notes))) from error  # a missing file of variables may be the cause
    rules = files.stated.rules()
    for rule in rules:
        try:
            check(rule.acl)
        except ConfigError as error:
            raise ConfigError(f"{origin_text(files.stated.of(rule.acl)[0])}: {error}") from error
    return FoundRules(
        rules=rules,
        origins=files.stated,
        notes=(*files.notes, *(union_notes(tree.name, [files.layout]) if options.notes_clusters else ())),
        unread=files.unread,
        dormant=files.dormant,
        nothing_read=files.nothing_read,
        layout=files.layout,
        topics=files.topics,
    )


def union_notes(name: str, layouts: Sequence[Layout]) -> Iterator[str]:
    """Yield that rules of several clusters are read as those of one, if they are; `name`: of the tree."""
    clusters = clusters_of(layouts)
    if clusters is not None:
        yield (
            f"{name}: rules of several clusters are read as those of one, if these are {clusters.listed()}: give the "
            f"files of one, or state them: {clusters.statement()}"
        )


def _ignored_by_git(tree: FileTree, options: ReadOptions, paths: Sequence[str]) -> frozenset[str]:
    """Return the files that git ignores in a directory; none where all rules must come, or of a commit."""
    if options.strict or not isinstance(tree, DirectoryTree):
        return frozenset()
    return ignored_files(tree.name, paths)


def _excluded(globs: Sequence[str]) -> Callable[[str], bool]:
    if not globs:
        return lambda _: False
    from pathspec import GitIgnoreSpec  # here: few trees have files that are not read

    return GitIgnoreSpec.from_lines(globs).match_file


@frozen
class _OneFile:
    """A file whose content was read already, as a tree; the others beside it are within reach."""

    name: str
    content: bytes
    beside: FileTree
    suffix: str = ""
    """Added to a name without a suffix, such as stdin: formats check the suffix before the content."""

    @property
    def file(self) -> SourceFile:
        return SourceFile(self, self.paths()[0])

    def guesses(self) -> "Iterator[_OneFile]":
        """Yield the file as it is named, then, if its name indicates no format, as JSON and as YAML."""
        yield self
        if "." not in self.paths()[0]:
            yield from (evolve(self, suffix=suffix) for suffix in (".json", ".yaml"))

    def paths(self) -> list[str]:
        return [self.name.rsplit("/", 1)[-1] + self.suffix]

    def read(self, path: str) -> bytes:
        return self.content if path == self.paths()[0] else self.beside.read(path)

    def is_file(self, path: str) -> bool:
        return path == self.paths()[0] or self.beside.is_file(path)

    def entries(self, path: str) -> list[str]:
        return self.beside.entries(path)

    def display(self, path: str) -> str:
        return self.name if path == self.paths()[0] else self.beside.display(path)

    def flag_value(self, path: str) -> str:
        return self.beside.flag_value(path)


@frozen
class _Output:
    """What a command wrote, as a tree of one file; no other file is within reach."""

    rendered: "Rendered"

    @property
    def name(self) -> str:
        return self.rendered.name

    def paths(self) -> list[str]:
        return [_OUTPUT]

    def read(self, path: str) -> bytes:
        if path != _OUTPUT:
            raise AbsentFileError(f"{self.display(path)}: no file of the output of {self.name}")
        return self.rendered.output

    def is_file(self, path: str) -> bool:
        return path == _OUTPUT

    def entries(self, path: str) -> list[str]:  # noqa: ARG002  # FileTree
        return []

    def display(self, path: str) -> str:
        return self.name if path == _OUTPUT else path

    def flag_value(self, path: str) -> str:
        return self.display(path)


_OUTPUT = "output.yaml"
"""Formats check the suffix before the content; JSON is YAML."""
