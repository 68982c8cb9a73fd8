"""Rules from `--acls PATH` and `--ref GITREF:PATH`: JSON lines, as a stream, or GitOps files, as a whole.

The parsers of all formats take a tenth of a second to import: JSON lines are read without them.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from aclog.authorizer.acl import StandardAcl
from aclog.metalog.errors import ConfigError
from aclog.sources.acl_lines import accept
from aclog.sources.formats.file_tree import LARGEST, DirectoryTree, FileTree
from aclog.sources.formats.format import AclsFormat
from aclog.sources.read_options import ReadOptions
from aclog.sources.rule_lines import FoundRules, line_rules
from aclog.sources.text_lines import STDIN, blocks, display_name

_BLOCK_LINES = 1_000


def find_rules(path: str, options: ReadOptions, check: Callable[[StandardAcl], None] = accept) -> FoundRules:
    """Return the rules of a file, of stdin (`-`) or of a directory.

    Raises:
        ConfigError: something that is not a rule, or refused by `check`, with its place; a damaged file; or a log or
            a checkpoint, which another flag reads.
        OSError: a file cannot be read.

    """
    if path == STDIN:
        return _file_rules(display_name(path), blocks(path, options.advance), DirectoryTree(path), options, check=check)
    found = Path(path)
    if found.is_dir():
        from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
        from aclog.sources.rule_trees import tree_rules

        if list_segments(found) or list_checkpoints(found):
            raise ConfigError(f"{path}: a directory with a log, no files of rules: expected --log instead of --acls")
        return tree_rules(DirectoryTree(path, strict=options.strict), options, check)
    if found.suffix == ".checkpoint":
        raise ConfigError(f"{path}: a checkpoint, no file of rules: expected --snapshot instead of --acls")
    return _file_rules(path, blocks(path, options.advance), DirectoryTree(path), options, check=check)


def ref_rules(text: str, options: ReadOptions, check: Callable[[StandardAcl], None] = accept) -> FoundRules:
    """Return the rules of a file or a directory as of a git commit: GITREF:PATH. Raises ConfigError as find_rules."""
    from aclog.sources.formats.source_file import unzipped
    from aclog.sources.git.git_place import parse_git_place
    from aclog.sources.git.git_tree import GitTree
    from aclog.sources.rule_trees import tree_rules

    with GitTree(place=parse_git_place(text)) as tree:
        if tree.file is None:
            return tree_rules(tree, options, check)
        lines = unzipped(tree.read(tree.file), tree.name).split(b"\n")
        found = (lines[at : at + _BLOCK_LINES] for at in range(0, len(lines), _BLOCK_LINES))
        return _file_rules(tree.display(tree.file), found, tree, options, check=check)


def _file_rules(
    name: str,
    found: Iterator[list[bytes]],
    beside: FileTree,
    options: ReadOptions,
    *,
    check: Callable[[StandardAcl], None],
) -> FoundRules:
    """Return the rules of one file, whose lines arrive in blocks; JSON lines are not read as a whole."""
    bounded = _bounded(name, found)
    first = [] if options.form is AclsFormat.JSONL else list(_until_text(bounded))
    if options.form is AclsFormat.JSONL or (options.form is AclsFormat.AUTO and _is_json_line(first)):
        return line_rules(name, chain(first, found), check)
    from aclog.sources.rule_trees import content_rules

    content = b"\n".join(line for lines in chain(first, bounded) for line in lines)
    return content_rules(name, content, beside, options, check=check)


def _bounded(name: str, found: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Yield the blocks of what is held as a whole: a small file may decompress to more than the memory."""
    size = 0
    for lines in found:
        size += sum(map(len, lines)) + len(lines)
        if size > LARGEST:
            raise ConfigError(f"{name}: larger than {LARGEST >> 20} MiB")
        yield lines


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
