"""ACLs from files: JSON lines and GitOps files, of a directory or a commit."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from attrs import define, field

from aclog.authorizer.acl import ChangePlace, StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.metalog.errors import ConfigError, ReplayError
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment, moment_text
from aclog.sources.acl_lines import STDIN, FoundRules, accept, blocks, display_name, line_rules
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.rule import LARGEST, DirectoryTree, FileTree
from aclog.sources.notes import Notify
from aclog.sources.read_options import ReadOptions

# Rules from `--acls PATH` and `--ref GITREF:PATH`: JSON lines, as a stream, or GitOps files, as a whole.
#
# The parsers of all formats take a tenth of a second to import: JSON lines are read without them.


_BLOCK_LINES = 1_000


def find_rules(path: str, options: ReadOptions, check: Callable[[StandardAcl], None] = accept) -> FoundRules:
    """Return the rules of a file, of stdin (`-`) or of a directory.

    Raises:
        ConfigError: something that is not a rule, or refused by `check`, with its location; a damaged file; or a log or
            a checkpoint, which another flag reads.
        OSError: a file cannot be read.

    """
    if path == STDIN:
        return _file_rules(display_name(path), blocks(path, options.advance), DirectoryTree(path), options, check=check)
    location = Path(path)
    if location.is_dir():
        from aclog.metalog.filelog.files import list_checkpoints, list_segments
        from aclog.sources.rule_trees import tree_rules

        if list_segments(location) or list_checkpoints(location):
            raise ConfigError(f"{path}: a directory with a log, no files of rules: expected --log instead of --acls")
        return tree_rules(DirectoryTree(path, strict=options.strict), options, check)
    if location.suffix == ".checkpoint":
        raise ConfigError(f"{path}: a checkpoint, no file of rules: expected --snapshot instead of --acls")
    return _file_rules(path, blocks(path, options.advance), DirectoryTree(path), options, check=check)


def ref_rules(text: str, options: ReadOptions, check: Callable[[StandardAcl], None] = accept) -> FoundRules:
    """Return the rules of a file or a directory as of a git commit: GITREF:PATH. Raises ConfigError as find_rules."""
    from aclog.sources.formats.files import unzipped
    from aclog.sources.git import GitTree, parse_git_place
    from aclog.sources.rule_trees import tree_rules

    with GitTree(place=parse_git_place(text)) as tree:
        if tree.file is None:
            return tree_rules(tree, options, check)
        lines = unzipped(tree.read(tree.file), tree.name).split(b"\n")
        chunks = (lines[at : at + _BLOCK_LINES] for at in range(0, len(lines), _BLOCK_LINES))
        return _file_rules(tree.display(tree.file), chunks, tree, options, check=check)


def _file_rules(
    name: str,
    chunks: Iterator[list[bytes]],
    beside: FileTree,
    options: ReadOptions,
    *,
    check: Callable[[StandardAcl], None],
) -> FoundRules:
    """Return the rules of one file, whose lines arrive in blocks; JSON lines are not read as a whole."""
    bounded = _bounded(name, chunks)
    first = [] if options.form is AclsFormat.JSONL else list(_until_text(bounded))
    if options.form is AclsFormat.JSONL or (options.form is AclsFormat.AUTO and _is_json_line(first)):
        return line_rules(name, chain(first, chunks), check)
    from aclog.sources.rule_trees import content_rules

    content = b"\n".join(line for lines in chain(first, bounded) for line in lines)
    return content_rules(name, content, beside, options, check=check)


def _bounded(name: str, chunks: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Yield the blocks of a file that is held as a whole: a small file may decompress to more than the memory."""
    size = 0
    for lines in chunks:
        size += sum(map(len, lines)) + len(lines)
        if size > LARGEST:
            raise ConfigError(f"{name}: larger than {LARGEST >> 20} MiB")
        yield lines


def _until_text(chunks: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Yield blocks until one has a line that is not blank."""
    for lines in chunks:
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


# A state source of ACLs in files: JSON lines, or files of GitOps tools in a repository.


@define(eq=False)
class AclsSource:
    """ACLs in JSON lines, from a file or stdin, or in GitOps files."""

    path: str
    """The path of a file or directory; with `is_ref` GITREF:PATH."""
    check: Callable[[StandardAcl], None] = accept
    """Raises ConfigError on an ACL that the command refuses; called before the first image."""
    options: ReadOptions = field(factory=ReadOptions)
    notify: Notify | None = None
    is_ref: bool = field(default=False, kw_only=True)
    """Whether they are read as of a git commit."""
    _image: Image | None = field(default=None, init=False)
    _origins: Origins = field(default=NO_ORIGINS, init=False)

    log: None = field(default=None, init=False)
    """None: there is no log to follow."""

    change_place: ChangePlace = field(factory=ChangePlace, init=False)
    """A cluster with an unknown address."""

    @property
    def name(self) -> str:
        """The file or directory."""
        return display_name(self.path)

    @property
    def origins(self) -> Origins:
        """The locations of the image's rules; empty before there is one."""
        return self._origins

    def image(self) -> Image:
        """Return a state with these ACLs and nothing else.

        Raises:
            ConfigError: a line that is not an ACL, or a duplicate ACL or id.
            OSError: the file cannot be read.

        """
        if self._image is None:
            find = ref_rules if self.is_ref else find_rules
            rules = find(self.path, self.options, self.check)
            if self.notify is not None:
                for text in rules.notes:
                    self.notify(text)
            try:
                acls = AclsImage.from_acls(rules.rules)
            except ReplayError as error:
                raise ConfigError(f"{self.name}: {error.what}") from error
            self._image, self._origins = Image(acls=acls), rules.origins
        return self._image

    def freshness(self) -> None:
        """Return None: a file is read as it is."""

    def close(self) -> None:
        """Do nothing: no file is kept open."""

    def image_at(self, moment: Moment) -> Image:
        """Raise ConfigError: a file of ACLs has no history."""
        raise ConfigError(f"{self.name}: as of {moment_text(moment)}: a file of ACLs has one state only")
