"""Rules from `--acls PATH`: JSON lines, as a stream, or GitOps files, as a whole."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from attrs import evolve, frozen

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.origin import Origins, origin_text
from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.sources.acl_lines import accept, parse_acls
from aclog.sources.formats.file_tree import DirectoryTree, FileTree
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.reading import ReadFiles, is_claimed, read_tree
from aclog.sources.formats.source_file import SourceFile, unzipped
from aclog.sources.git.git_place import parse_git_place
from aclog.sources.git.git_tree import GitTree
from aclog.sources.line_table import LineTable
from aclog.sources.module_tree import with_modules
from aclog.sources.read_options import ReadOptions
from aclog.sources.text_lines import STDIN, blocks, display_name, numbered_lines

_OTHER_SUFFIXES = (".yaml", ".yml", ".csv", ".tf")
"""Of files that hold no JSON lines."""


@frozen(kw_only=True)
class FoundRules:
    """Rules, to be read once; then `origins` tells where they stand."""

    rules: Iterable[StandardAclWithId]
    origins: Origins
    notes: tuple[str, ...] = ()


def find_rules(path: str, options: ReadOptions, check: Callable[[StandardAcl], None] = accept) -> FoundRules:
    """Return the rules of a file, of stdin (`-`) or of a directory.

    Raises:
        ConfigError: something that is not a rule, or refused by `check`, with its place; a damaged file; or a log or
            a checkpoint, which another flag reads.
        OSError: a file cannot be read.

    """
    if path == STDIN:
        return _file_rules(display_name(path), blocks(path), DirectoryTree(path), options, check=check)
    found = Path(path)
    if found.is_dir():
        if list_segments(found) or list_checkpoints(found):
            raise ConfigError(f"{path}: a directory with a log, no files of rules: expected --log instead of --acls")
        return tree_rules(DirectoryTree(path), options, check)
    if found.suffix == ".checkpoint":
        raise ConfigError(f"{path}: a checkpoint, no file of rules: expected --snapshot instead of --acls")
    return _file_rules(path, blocks(path), DirectoryTree(path), options, check=check)


def ref_rules(text: str, options: ReadOptions, check: Callable[[StandardAcl], None] = accept) -> FoundRules:
    """Return the rules of a file or a directory as of a git commit: GITREF:PATH. Raises ConfigError as find_rules."""
    with GitTree(place=parse_git_place(text)) as tree:
        if tree.file is None:
            return tree_rules(tree, options, check)
        content = unzipped(tree.read(tree.file), tree.name)
        return _file_rules(tree.display(tree.file), iter([content.split(b"\n")]), tree, options, check=check)


def _file_rules(
    name: str,
    found: Iterator[list[bytes]],
    beside: FileTree,
    options: ReadOptions,
    *,
    check: Callable[[StandardAcl], None],
) -> FoundRules:
    """Return the rules of one file, whose lines arrive in blocks; JSON lines are not read as a whole."""
    first = [] if options.form is AclsFormat.JSONL else list(_until_text(found))
    if options.form is AclsFormat.JSONL or (options.form is AclsFormat.AUTO and _is_json_line(first)):
        return _line_rules(name, chain(first, found), check)
    content = b"\n".join(line for lines in chain(first, found) for line in lines)
    alone = _OneFile(name, content, beside)
    if options.form is not AclsFormat.AUTO or alone.file.has_suffix(*_OTHER_SUFFIXES):
        return tree_rules(alone, options, check)
    claimed = next((each for each in alone.guesses() if is_claimed(each.file)), None)
    if claimed is None:
        return _line_rules(name, [content.split(b"\n")], check)  # an error of JSON lines, which most files are
    return tree_rules(claimed, options, check)


def _line_rules(name: str, lines: Iterable[list[bytes]], check: Callable[[StandardAcl], None]) -> FoundRules:
    table = LineTable(name)
    return FoundRules(rules=table.filled_by(parse_acls(numbered_lines(lines), name, check)), origins=table)


def tree_rules(tree: FileTree, options: ReadOptions, check: Callable[[StandardAcl], None] = accept) -> FoundRules:
    """Return the rules of a tree. Raises as find_rules."""
    source = tree.beside if isinstance(tree, _OneFile) else tree
    whole, modules = with_modules(tree, options.modules, commit=source if isinstance(source, GitTree) else None)
    context = ReadContext(tree=whole, topics=options.topics, modules=modules)
    found: ReadFiles = read_tree(context, options.form)
    rules = found.stated.rules()
    for rule in rules:
        try:
            check(rule.acl)
        except ConfigError as error:
            raise ConfigError(f"{origin_text(found.stated.of(rule.acl)[0])}: {error}") from error
    return FoundRules(rules=rules, origins=found.stated, notes=found.notes)


def _until_text(found: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Yield blocks until one has a line that is not blank."""
    for lines in found:
        yield lines
        if any(line and not line.isspace() for line in lines):
            return


def _is_json_line(first: Sequence[Sequence[bytes]]) -> bool:
    """Return whether the first line that is not blank may be an ACL; so is that of an empty file."""
    line = next((line for lines in first for line in lines if line and not line.isspace()), None)
    if line is None:
        return True
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "resourceType" in value


@frozen
class _OneFile:
    """A file whose content was read already, as a tree; the others beside it are within reach."""

    name: str
    content: bytes
    beside: FileTree
    suffix: str = ""
    """Added to a name that has none, such as stdin: formats ask for it before they look into a file."""

    @property
    def file(self) -> SourceFile:
        return SourceFile(self, self.paths()[0])

    def guesses(self) -> "Iterator[_OneFile]":
        """Yield the file as it is named, then, if its name tells no format, as JSON and as YAML."""
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
