"""Git repositories, read without trusting them: commits, the index, and trees of files."""

import os
import posixpath
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self, cast
from urllib.parse import quote

from attrs import field

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.rule import DEEPEST, MOST_FILES, AbsentFileError, repository_root

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

# Runs git on a repository that is not trusted: nothing that its configuration names is run, and nothing is fetched.


_SAFE = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.warnAmbiguousRefs=true"),
)
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # a partial clone would fetch what it lacks, by programs that its settings name
    "GIT_NO_LAZY_FETCH": "1",  # the same, as git names it since 2.44
    "GIT_NO_REPLACE_OBJECTS": "1",  # refs/replace would show other content than the commit has
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


_PATIENCE_S = 300.0
"""The longest time that a command of git takes: settings of a repository can include a pipe, which never ends."""


def git_arguments(*arguments: str, directory: str = os.curdir) -> list[str]:
    """Return the command line of a git command in a directory. Raises ConfigError: there is no git."""
    program = shutil.which("git")
    if program is None:
        raise ConfigError(
            "git is not on the PATH: it is needed to read files as of a commit (--ref, --to-ref, aclog review)"
        )
    return [program, "-C", directory, *_SAFE, *arguments]


def git_environment() -> dict[str, str]:
    """Return the environment of git: ours, and variables that keep it from running or fetching anything.

    GIT_DIR, GIT_INDEX_FILE and similar variables stay: in a hook they name the repository and the committed index.
    """
    return {**os.environ, **_ENVIRONMENT}


@frozen(kw_only=True)
class GitAnswer:
    """The stdout and stderr of a git command; `output` is None if it failed."""

    output: bytes | None
    message: str


def ask_git(*arguments: str, directory: str = os.curdir, standard_input: bytes = b"") -> GitAnswer:
    """Run a git command that only reads, and return its answer.

    Raises:
        ConfigError: there is no git, the directory is in no repository that git reads, or git does not end.

    """
    try:
        done = subprocess.run(  # noqa: S603  # no shell, and no argument that begins with a dash comes from outside
            git_arguments(*arguments, directory=directory),
            env=git_environment(),
            input=standard_input,
            capture_output=True,
            check=False,
            timeout=_PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        problem = f"git {arguments[0]} has not ended within {_PATIENCE_S:g} s"
        raise ConfigError(f"{Path.cwd()}: {problem}: do its settings include a pipe, or lead to a slow disk?") from None
    message = done.stderr.decode(errors="replace").strip()
    if done.returncode == 0:
        return GitAnswer(output=done.stdout, message=message)
    if "not a git repository" in message:
        raise ConfigError(
            f"{Path.cwd()}: not in a git repository: commits are read from the one around the working directory"
        )
    if "dubious ownership" in message or "cannot use bare repository" in message:
        raise ConfigError(f"git refuses to read this repository: {_flat(message)}")
    return GitAnswer(output=None, message=message)


def without_filters() -> list[str]:
    """Return the options of git that switch off the filters of its settings, which a comparison of files would run.

    Raises:
        ConfigError: one has a name that an option cannot have.

    """
    keys = (
        ask_git("config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$").output
        or b""
    )
    options: list[str] = []
    for key in keys.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        if "=" in key:
            raise ConfigError(f"git's setting {key!r}: the name of a filter with =, which cannot be switched off")
        options += ("-c", f"{key}=")
    return options


def is_partial_clone() -> bool:
    """Return whether git has a remote with the objects that this clone lacks."""
    return ask_git("config", "--get-regexp", r"^remote\..*\.promisor$").output is not None


def _flat(message: str) -> str:
    """Return git's stderr as one line, with its advice."""
    return " ".join(message.removeprefix("fatal: ").split())


# The objects of a git repository, from one `git cat-file --batch`.


LARGEST = 1 << 30
"""The largest file, in bytes: git keeps larger ones elsewhere (LFS)."""
_LARGEST = {b"blob": LARGEST, b"tree": 64 << 20}
"""By the kind of an object. A pack of a megabyte can hold a gigabyte."""

_MODE_TREE, _MODE_LINK, _MODE_SUBMODULE = "40000", "120000", "160000"
_MODES = frozenset((b"40000", b"100644", b"100755", b"100664", b"120000", b"160000"))
"""Of tree objects; old versions of git wrote 100664."""
_HEADER_FIELDS = 3


@frozen(kw_only=True)
class TreeEntry:
    """An entry of a directory: a file, a directory, a symbolic link or a submodule."""

    mode: str
    """Octal, as in a tree object."""
    id: str
    """The id of the object, in hexadecimal; of a directory of the index, its path."""

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.mode == _MODE_TREE

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return self.mode == _MODE_LINK

    @property
    def is_submodule(self) -> bool:
        """Whether it is a commit of another repository."""
        return self.mode == _MODE_SUBMODULE


def directory_entry(id_: str) -> TreeEntry:
    """Return the entry of a directory."""
    return TreeEntry(mode=_MODE_TREE, id=id_)


class MissingObjectError(Exception):
    """An object is not in this clone; raised and caught in this package only."""


@define(eq=False)
class GitObjects:
    """Reads objects by their ids. Owned by the reader of a tree; close it: a process runs until then."""

    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)
    _owner: int = field(default=0, init=False)
    """The process that started it: a fork of it has the same pipes, but starts another one."""

    def tree(self, id_: str) -> dict[str, TreeEntry]:
        """Return the entries of a tree object, by name. Raises MissingObjectError, ConfigError: it cannot be read."""
        return _parsed(self._read(id_, b"tree"), len(id_) // 2)

    def blob(self, id_: str) -> bytes:
        """Return the content of a blob. Raises MissingObjectError, ConfigError: it cannot be read."""
        return self._read(id_, b"blob")

    def close(self) -> None:
        """End the process; idempotent."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                cast("IO[bytes]", stream).close()
        process.kill()
        process.wait()

    def _read(self, id_: str, kind: bytes) -> bytes:
        source, target = self._streams()
        try:
            target.write(id_.encode() + b"\n")
            target.flush()
        except OSError as error:
            raise _ended(id_) from error
        header = source.readline().split()
        if header[1:] == [b"missing"]:
            raise MissingObjectError
        if len(header) != _HEADER_FIELDS or header[1] != kind or int(header[2]) > _LARGEST[kind]:
            self.close()  # the rest is not read
            raise _unexpected(id_, kind, header) if header else _ended(id_)
        content = source.read(int(header[2]))
        if len(content) < int(header[2]) or source.read(1) != b"\n":
            raise _ended(id_)
        return content

    def _streams(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None or self._owner != os.getpid():
            self._owner = os.getpid()
            self._process = subprocess.Popen(  # noqa: S603  # no shell, and fixed arguments
                git_arguments("cat-file", "--batch"),
                env=git_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return cast("IO[bytes]", self._process.stdout), cast("IO[bytes]", self._process.stdin)


def _ended(id_: str) -> Exception:
    if is_partial_clone():
        return MissingObjectError()  # git before 2.44 ends at an object that a partial clone lacks
    return ConfigError(f"git cat-file --batch ended at object {id_}: is the repository damaged? try git fsck")


def _unexpected(id_: str, kind: bytes, header: list[bytes]) -> ConfigError:
    if header[1:2] == [kind]:
        return ConfigError(f"git object {id_}: {int(header[2]):,} bytes: expected at most {_LARGEST[kind]:,}")
    actual = b" ".join(header[1:2]).decode(errors="replace")
    return ConfigError(f"git object {id_}: expected a {kind.decode()}, found {actual or 'nothing'}")


def _parsed(content: bytes, id_size: int) -> dict[str, TreeEntry]:
    """Return the entries of a tree object: mode, blank, name, zero byte, id in binary."""
    entries, at = {}, 0
    while at < len(content):
        blank = content.find(b" ", at)
        end = content.find(b"\0", blank)
        begin, after = end + 1, end + 1 + id_size
        if blank < 0 or end < 0 or len(content) < after:
            raise ConfigError(f"a git tree object is damaged at byte {at}: try git fsck")
        name, mode = content[blank + 1 : end].decode("utf-8", "surrogateescape"), content[at:blank]
        # git checks out none of these, or only one of two: what is reviewed would not be what is deployed.
        if mode not in _MODES or name in {"", ".", ".."} or "/" in name or name.lower() == ".git" or name in entries:
            problem = "twice in its directory" if name in entries else f"mode {mode.decode(errors='replace')}"
            raise ConfigError(
                f"a git tree object has an entry {name!r}, {problem}, which git does not write: try git fsck"
            )
        entries[name] = TreeEntry(mode=mode.decode("ascii"), id=content[begin:after].hex())
        at = after
    return entries


# The files of git's index: the content of the next commit.


ROOT = "/"
"""The id of the top directory; that of another one is its path."""


def read_index() -> dict[str, dict[str, TreeEntry]]:
    """Return the directories of the index by their ids.

    Raises:
        ConfigError: not in a repository with an index, or it holds a merge that is not resolved.

    """
    answer = ask_git("ls-files", "--stage", "-z", "--full-name", ":/")
    if answer.output is None:
        raise ConfigError(f"no index (:PATH): {answer.message.removeprefix('fatal: ')}")
    directories: dict[str, dict[str, TreeEntry]] = {ROOT: {}}
    for line in answer.output.split(b"\0")[:-1]:
        fields, _, raw = line.partition(b"\t")
        mode, id_, stage = fields.decode("ascii").split()
        path = raw.decode("utf-8", "surrogateescape")
        if stage != "0":
            raise ConfigError(f":{path}: a merge that is not resolved yet: resolve it, and git add it")
        parent, _, name = path.rpartition("/")
        _directory(directories, parent)[name] = TreeEntry(mode=mode, id=id_)
    return directories


def submodules(path: str) -> list[str]:
    """Return the submodules of the index at a path from the top, or below it."""
    answer = ask_git("ls-files", "--stage", "-z", "--full-name", "--", f":(top,literal){path}")
    lines = (answer.output or b"").split(b"\0")[:-1]
    paths = (line.partition(b"\t")[2] for line in lines if line.startswith(_MODE_SUBMODULE.encode()))
    return [each.decode("utf-8", "surrogateescape") for each in paths]


def _directory(directories: dict[str, dict[str, TreeEntry]], path: str) -> dict[str, TreeEntry]:
    """Return a directory, made with all above it; not by recursion: a path may have two thousand levels."""
    at, below = path, ""
    while True:
        is_known = (at or ROOT) in directories
        entries = directories.setdefault(at or ROOT, {})
        if below:
            entries[below.rpartition("/")[2]] = directory_entry(below)
        if is_known:
            return directories[path or ROOT]
        at, below = at.rpartition("/")[0], at


# The value of `--ref`: a commit, or the index, and a path in it.


_EXPECTED = "expected GITREF:PATH, such as main:kafka or HEAD~1:kafka/acls.yaml (:PATH is the index)"


@frozen(kw_only=True)
class GitPlace:
    """A path in a commit, or in the index; `parse_git_place` makes them."""

    ref: str
    """A branch, tag or commit as git names it; empty for the index."""
    path: str
    """The path from the top of the repository; with `./` or `../` in front, from the working directory, as in git."""

    @property
    def name(self) -> str:
        """The value as given."""
        return f"{self.ref}:{self.path}"


def parse_git_place(text: str) -> GitPlace:
    """Parse the value of the flag.

    Raises:
        ConfigError: no colon, a range of commits, or a reference that git would take for an option.

    """
    end = _colon(text)
    if end is None:
        raise ConfigError(f"{text!r}: no path in the repository: {_EXPECTED}")
    ref, path = text[:end], text[end + 1 :]
    if "\0" in text or "\n" in text:
        raise ConfigError(f"{text!r}: {_EXPECTED}")
    if ref.startswith(("-", "^")):
        raise ConfigError(f"{text!r}: {ref!r} is no branch, tag or commit: {_EXPECTED}")
    # dots in braces are a text to look for, as in `main^{/a..b}`
    if ".." in ref.split("{", 1)[0] or ref.endswith(("^!", "^@")):
        raise ConfigError(f"{text!r}: {ref!r} is a range of commits: {_EXPECTED}")
    if path.startswith("/"):
        raise ConfigError(f"{text!r}: an absolute path: expected one from the top of the repository")
    return GitPlace(ref=ref, path=path)


def _colon(text: str) -> int | None:
    """Return where the path begins; a time in braces (`main@{2026-11-20 10:00}`) may hold colons."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == ":" and depth <= 0:
            return at
    return None


# Finds the files of a commit, or explains how to get it.


_COMMIT_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def tree_id(place: GitPlace) -> str:
    """Return the id of the tree of a commit.

    Raises:
        ConfigError: there is no such commit in this clone, with the command that fetches it; the name is ambiguous; a
            time that the reflog does not reach.

    """
    answer = ask_git("rev-parse", "--verify", f"{place.ref}^{{tree}}")
    if "only goes back to" in answer.message or "only has" in answer.message:
        reach = answer.message.splitlines()[0].removeprefix("warning: ")
        raise ConfigError(f"{place.name}: this clone does not have {place.ref}: {reach}")
    if "is ambiguous" in answer.message:
        raise ConfigError(f"{place.name}: {place.ref!r} is ambiguous: expected refs/heads/... or refs/tags/...")
    if answer.output is None and "Needed a single revision" not in answer.message:
        raise ConfigError(f"{place.name}: git rev-parse: {answer.message.splitlines()[0].removeprefix('fatal: ')}")
    if answer.output is None:
        raise ConfigError(
            f"{place.name}: no branch, tag or commit {place.ref!r} in this clone{way_out(place.ref, place.name)}"
        )
    return answer.output.decode().strip()


def way_out(ref: str, name: str) -> str:
    """Return the fix for a missing commit, given as `name`; empty if unknown."""
    remotes = _lines("remote")
    if not remotes:
        return ""
    origin = "origin" if "origin" in remotes else remotes[0]
    if _COMMIT_ID.fullmatch(ref):
        return f"; fetch it: git fetch {origin} {ref}"
    if re.search(r"[~^@]", ref):
        is_shallow = _lines("rev-parse", "--is-shallow-repository") == ["true"]
        return f"; the clone is shallow, fetch its history: git fetch --unshallow {origin}" if is_shallow else ""
    remote, _, branch = ref.partition("/")
    if remote in remotes and branch:
        return f"; fetch it: git fetch {remote} {branch}:refs/remotes/{remote}/{branch}"
    if ask_git("rev-parse", "--verify", f"refs/remotes/{origin}/{ref}").output is not None:
        return f": did you mean {origin}/{name}?"
    return f"; if {origin} has it: git fetch {origin} {ref}:refs/remotes/{origin}/{ref}, then {origin}/{name}"


def _lines(*arguments: str) -> list[str]:
    return (ask_git(*arguments).output or b"").decode(errors="replace").splitlines()


# Paths in a commit, or in the index: they are followed as in a file system, within the repository.


_LINKS = 40
"""Symbolic links that may be followed for one path, those on the way to others included; Linux has the same limit."""
_LONGEST_LINK = 4096
"""The longest target of a symbolic link, in bytes, as Linux's PATH_MAX."""


@frozen(kw_only=True)
class TreeNode:
    """An entry, and its path from the top of the repository, without symbolic links; empty for the top itself."""

    path: str
    entry: TreeEntry


@define(eq=False, kw_only=True)
class GitFiles:
    """The files of one commit, or of the index. Owned by a GitTree, which closes it: a process of git may run."""

    place: GitPlace
    _top: TreeEntry = field(init=False)
    _directories: dict[str, dict[str, TreeEntry]] = field(init=False)
    """Cached objects, by id."""
    _objects: GitObjects = field(factory=GitObjects, init=False)

    def __attrs_post_init__(self) -> None:
        self._directories = {} if self.place.ref else read_index()
        self._top = directory_entry(tree_id(self.place) if self.place.ref else ROOT)

    def close(self) -> None:
        """End the process of git; idempotent."""
        self._objects.close()

    def find(self, path: str) -> TreeNode | None:
        """Return the entry at a path from the top of the repository, symbolic links followed; None if not found.

        Raises:
            ConfigError: the path leads out of the repository, or into a submodule; a symbolic link leads nowhere; an
                object is not in this clone.

        """
        return self._find(path, path, [_LINKS])

    def directory(self, node: TreeNode) -> dict[str, TreeEntry]:
        """Return the entries of a directory, by name. Raises ConfigError: it is not in this clone."""
        id_ = node.entry.id
        if id_ not in self._directories:
            try:
                self._directories[id_] = self._objects.tree(id_)
            except MissingObjectError:
                raise self._missing(node.path) from None
        return self._directories[id_]

    def content(self, node: TreeNode) -> bytes:
        """Return the content of a file. Raises ConfigError: it is not in this clone."""
        try:
            return self._objects.blob(node.entry.id)
        except MissingObjectError:
            raise self._missing(node.path) from None

    def display(self, path: str) -> str:
        """Return a path from the top as messages name it."""
        return f"{self.place.ref}:{path}"

    def _find(self, path: str, name: str, links: list[int]) -> TreeNode | None:
        """`links`: how many may be followed yet, in all: `a -> b/b`, `b -> c/c` and so on double with each name."""
        node = TreeNode(path="", entry=self._top)
        parts = [part for part in path.split("/") if part not in {"", "."}]
        for at, part in enumerate(parts):
            if not node.entry.is_directory:
                return None
            if part == "..":
                node = self._parent(node, name)
                continue
            entry = self.directory(node).get(part)
            if entry is None:
                return None
            node = TreeNode(path=posixpath.join(node.path, part), entry=entry)
            if entry.is_submodule:
                raise AbsentFileError(f"{self.display(node.path)}: a submodule: its files are in another repository")
            if entry.is_link:
                return self._follow(node, "/".join(parts[at + 1 :]), links)
        return node

    def _parent(self, node: TreeNode, name: str) -> TreeNode:
        if not node.path:
            raise ConfigError(f"{self.display(name)}: leads out of the repository")
        parent = self.find(posixpath.dirname(node.path))
        return parent or TreeNode(path="", entry=self._top)

    def _follow(self, link: TreeNode, rest: str, links: list[int]) -> TreeNode | None:
        content = self.content(link)
        if len(content) > _LONGEST_LINK:
            raise ConfigError(f"{self.display(link.path)}: a symbolic link of more than {_LONGEST_LINK:,} bytes")
        target = content.decode("utf-8", "surrogateescape")
        name = f"{self.display(link.path)}: a symbolic link to {target}"
        if target.startswith("/"):
            raise ConfigError(f"{name}, which is not in the repository")
        links[0] -= 1
        if links[0] < 0:
            raise ConfigError(f"{name}, which leads to more than {_LINKS} others")
        to = posixpath.join(posixpath.dirname(link.path), target)
        node = self._find(to, link.path, links)
        if node is None:
            raise AbsentFileError(f"{name}: path not found")
        return self._find(posixpath.join(node.path, rest), link.path, links) if rest else node

    def _missing(self, path: str) -> ConfigError:
        if not is_partial_clone():
            return ConfigError(f"{self.display(path)}: not in this clone, which is damaged: try git fsck")
        ref = self.place.ref or "HEAD"
        return ConfigError(
            f"{self.display(path)}: not in this clone, which is a partial one; "
            f"fetch it: git archive {ref} {path or '.'} > /dev/null"
        )


# Comparison of two commits: their merge base, and the files that differ.


def top_directory() -> Path:
    """Return the top of the work tree. Raises ConfigError: the working directory is in none."""
    answer = ask_git("rev-parse", "--show-toplevel")
    if answer.output is None:
        raise ConfigError(f"{Path.cwd()}: in no work tree of git: {answer.message.removeprefix('fatal: ')}")
    return Path(os.fsdecode(answer.output.rstrip(b"\n")))


def path_from_top(path: str, top: Path | None = None) -> str:
    """Return a path of the file system from the top of the repository; empty for the top itself.

    `top` saves a call of git.

    Raises:
        ConfigError: it is not in the repository of the working directory.

    """
    root, full = (top or top_directory()).resolve(), Path(path).absolute()
    resolved = Path(os.path.normpath(full.parent.resolve() / full.name))
    if not resolved.is_relative_to(root):
        raise ConfigError(f"{path}: not in the repository {root}: the files of both sides must be in it")
    relative = resolved.relative_to(root).as_posix()
    return "" if relative == "." else relative


def merge_base(one: str, other: str) -> str | None:
    """Return the id of the commit at which two parted; None if they have none in common, or this clone lacks it."""
    for ref in (one, other):
        parse_git_place(f"{ref}:")
    answer = ask_git("merge-base", one, other)
    return None if answer.output is None else answer.output.decode().strip()


def commit_id(ref: str) -> str | None:
    """Return the id of a commit; None if this clone does not have it. Raises ConfigError: no name of a commit."""
    parse_git_place(f"{ref}:")
    answer = ask_git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    return None if answer.output is None else answer.output.decode().strip()


def exists(place: GitPlace) -> bool:
    """Return whether a commit has a file or directory; False as well if there is no such commit."""
    return ask_git("cat-file", "-e", f"{place.ref}:{place.path}").output is not None


def file_count(text: str) -> int:
    """Return how many files are below GITREF:PATH, links and submodules included; 0 if that is not known."""
    place = parse_git_place(text)
    if not place.ref:
        return 0
    answer = ask_git("ls-tree", "-r", "-z", "--name-only", f"{place.ref}:{_from_top(place)}")
    return (answer.output or b"").count(b"\0")


def file_content(ref: str, path: str) -> bytes | None:
    """Return the content of a file in a commit; None if it does not exist. Raises ConfigError: larger than LARGEST."""
    size = ask_git("cat-file", "-s", f"{ref}:{path}").output
    if size is not None and int(size) > LARGEST:
        raise ConfigError(f"{ref}:{path}: {int(size):,} bytes: expected at most {LARGEST:,}")
    return ask_git("cat-file", "blob", f"{ref}:{path}").output


def changed_files(base: str, head: str | None) -> set[str]:
    """Return the files that differ between a commit and another, or the work tree, from the top of the repository.

    Untracked files count as well.

    Raises:
        ConfigError: an unknown commit.

    """
    refs = (base,) if head is None else (base, head)
    # Neither filters nor work trees of submodules: git would run the programs in their settings.
    without = f"--ignore-submodules={'all' if head is None else 'dirty'}"
    compared = ("diff", "--no-ext-diff", "--no-textconv", "--no-renames", without, "--name-only", "-z")
    answer = ask_git(*without_filters(), *compared, *refs, "--")
    if answer.output is None:
        raise ConfigError(f"{' '.join(refs)}: {answer.message.removeprefix('fatal: ')}")
    names = set(answer.output.split(b"\0"))
    if head is None:
        new = ask_git("ls-files", "--others", "--exclude-standard", "--full-name", "-z", ":/")
        names |= set((new.output or b"").split(b"\0"))
    return {name.decode("utf-8", "surrogateescape") for name in names if name}


# Files that git ignores: those that a .gitignore names, and that are not in the index.


_IGNORE_FILE = ".gitignore"


def ignored_files(directory: str, paths: Sequence[str]) -> frozenset[str]:
    """Return those of the paths below a directory that git ignores; none if it ignores the directory itself.

    No process of git runs unless a .gitignore of the repository may name one of the paths; without a git that reads
    the repository, none is ignored.
    """
    here = Path(directory).absolute()
    top = repository_root(here)
    candidates = [] if top is None else list(_named_by_ignore_files(top, here, paths))
    if not candidates:
        return frozenset()
    names = b"".join(os.fsencode(each) + b"\0" for each in (".", *candidates))
    try:
        answer = ask_git("check-ignore", "-z", "--stdin", directory=directory, standard_input=names)
    except ConfigError:
        return frozenset()
    ignored = {os.fsdecode(each) for each in (answer.output or b"").split(b"\0") if each}
    return frozenset() if "." in ignored else frozenset(ignored)


def _named_by_ignore_files(top: Path, here: Path, paths: Sequence[str]) -> Iterator[str]:
    """Yield the paths that a line of some .gitignore matches; git decides, as it knows the index and the order."""
    prefix = here.relative_to(top).as_posix()
    full = {path: posixpath.normpath(posixpath.join(prefix, path)) for path in paths}
    directories = {parent for each in full.values() for parent in _parents(each)}
    specs = {each: spec for each in sorted(directories) if (spec := _ignore_spec(top / each)) is not None}
    for path, name in full.items():
        if any(spec.match_file(posixpath.relpath(name, each)) for each in _parents(name) if (spec := specs.get(each))):
            yield path


def _parents(path: str) -> Iterator[str]:
    """Yield the directories that a path is in, `.` for the top."""
    while path:
        path = posixpath.dirname(path)
        yield path or "."


def _ignore_spec(directory: Path) -> "GitIgnoreSpec | None":
    file = directory / _IGNORE_FILE
    if not file.is_file() or file.is_symlink():  # git follows no link either
        return None
    from pathspec import GitIgnoreSpec  # here: for trees in a work tree alone

    lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return GitIgnoreSpec.from_lines(each for each in lines if not each.startswith("!"))


def default_base() -> str:
    """Return the branch that changes are merged into: that of the job, the remote's default, or main or master.

    Raises:
        ConfigError: this clone has no such branch.

    """
    target = next((os.environ[name] for name in _TARGETS if os.environ.get(name)), None)
    branch = _first_commit([f"origin/{target}", target] if target else []) or default_branch()
    if branch is None:
        raise ConfigError("no default branch in this clone (origin/HEAD, main, master): name the commit with --base")
    return branch


def default_branch() -> str | None:
    """Return the remote's default branch, or else main or master; None if this clone has no such branch."""
    remote = _lines("symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    return _first_commit([*remote, "origin/main", "origin/master", "main", "master"])


def _first_commit(names: Iterable[str]) -> str | None:
    for name in names:
        if not name.startswith("-") and ask_git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").output:
            return name
    return None


_TARGETS = (
    "GITHUB_BASE_REF",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
    "BITBUCKET_PR_DESTINATION_BRANCH",
    "CHANGE_TARGET",
)
"""The variables in which jobs have the target branch: GitHub, GitLab, Bitbucket, Jenkins."""


# The address of a line on the site that hosts the repository.


_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:_~-]+(?:/[A-Za-z0-9._~-]+)+")
_REMOTE = re.compile(r"(?:(?:https?|ssh|git)://)?(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9.-]+)(?::\d+/|[:/])(?P<path>[^\s]+)")
_LINES_OF_SITES = {
    "github": "/blob/{commit}/{path}#L{line}",
    "gitlab": "/-/blob/{commit}/{path}#L{line}",
    "bitbucket": "/src/{commit}/{path}#lines-{line}",
    "codeberg": "/src/commit/{commit}/{path}#L{line}",
    "gitea": "/src/commit/{commit}/{path}#L{line}",
    "forgejo": "/src/commit/{commit}/{path}#L{line}",
}
"""The paths of lines, by a word in the name of the host."""


@frozen
class HostedLines:
    """The addresses of lines of a repository."""

    _template: str
    """With the fields commit, path and line."""

    @staticmethod
    def of_repository() -> "HostedLines | None":
        """Return those of the job's repository, or of the remote `origin`; None if the site is unknown.

        No setting of the repository is read except the remote: a pull request could make links lead elsewhere.
        """
        read = os.environ.get
        if read("GITHUB_SERVER_URL") and read("GITHUB_REPOSITORY"):
            site = "gitea" if read("GITEA_ACTIONS") else "github"
            return HostedLines._at(f"{read('GITHUB_SERVER_URL')}/{read('GITHUB_REPOSITORY')}", site)
        for name, site in (("CI_PROJECT_URL", "gitlab"), ("BITBUCKET_GIT_HTTP_ORIGIN", "bitbucket")):
            if read(name):
                return HostedLines._at(str(read(name)), site)
        url = next(iter(_lines("config", "--get", "remote.origin.url")), "")
        match = _REMOTE.fullmatch(url)
        if match is None:
            return None
        site = next((each for each in _LINES_OF_SITES if each in match["host"].split(".")), "")
        path = match["path"].removesuffix("/").removesuffix(".git")
        return HostedLines._at(f"https://{match['host']}/{path}", site) if site else None

    @staticmethod
    def _at(address: str, site: str) -> "HostedLines | None":
        return HostedLines(address + _LINES_OF_SITES[site]) if _ADDRESS.fullmatch(address) else None

    def address(self, commit: str, path: str, line: int) -> str:
        """Return the address of a line of a file, given from the top of the repository."""
        return self._template.format(commit=commit, path=quote(path, safe="/", errors="surrogateescape"), line=line)


# A directory or a file, as of a commit or as in the index, as a FileTree.


POINTERS = {
    b"version https://git-lfs.github.com/spec/": "a pointer to Git LFS, which has its content",
    b"\0GITCRYPT": "encrypted by git-crypt",
}
"""How files begin whose content is not in the repository."""


@define(eq=False, kw_only=True)
class GitTree:
    """Files below a path; `..` leads to other files of the repository, not outside.

    Close it, or use it in a `with` block: a process of git runs until then.
    """

    place: GitPlace
    _files: GitFiles = field(init=False)
    _root: str = field(init=False)
    """The directory that was named, or that of the file, from the top of the repository."""
    file: str | None = field(init=False)
    """The name of the file, if one was named."""

    def __attrs_post_init__(self) -> None:
        path = _from_top(self.place)
        self._files = GitFiles(place=self.place)
        try:
            node = self._existing(path)
        except ConfigError:
            self.close()
            raise
        is_directory = node.entry.is_directory
        self._root, self.file = (path, None) if is_directory else posixpath.split(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process of git; idempotent."""
        self._files.close()

    @property
    def name(self) -> str:
        """The commit and the path, as they were given."""
        return self.place.name

    def paths(self) -> list[str]:
        """Return all files beneath the root, sorted; none whose name, or that of its directory, begins with a dot.

        With them are submodules, and symbolic links that lead nowhere; to read one is an AbsentFileError.

        Raises:
            ConfigError: a symbolic link that leads out of the repository, or a directory that is not in this clone.

        """
        if self.file is not None:
            return [self.file]
        files = []
        for number, path in enumerate(self._below("", self._existing(self._root), ())):
            if number == MOST_FILES:
                raise ConfigError(f"{self.name}: more than {MOST_FILES:,} files")
            if not path.endswith("/"):
                files.append(path)
        return sorted(files)

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises ConfigError: not a file, or its content is not in the repository."""
        node = self._existing(self._full(path))
        if node.entry.is_directory:
            raise ConfigError(f"{self.display(path)}: not a regular file")
        content = self._files.content(node)
        for start, what in POINTERS.items():
            if content.startswith(start):
                raise ConfigError(f"{self.display(path)}: {what}")
        return content

    def is_file(self, path: str) -> bool:
        """Return whether there is such a file. Raises as `paths`."""
        node = self._files.find(self._full(path))
        return node is not None and not node.entry.is_directory

    def entries(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none if it is no directory. Raises as `paths`.

        A path that begins with `/` is from the top of the repository.
        """
        node = self._files.find(self._full(path))
        return sorted(self._files.directory(node)) if node is not None and node.entry.is_directory else []

    def display(self, path: str) -> str:
        """Return the path from the top of the repository, after the commit."""
        return self._files.display(self._full(path))

    def flag_value(self, path: str) -> str:
        """Return the path from the working directory; from the top of the repository if there is no work tree."""
        full = self._full(path)
        try:
            return os.path.relpath(top_directory() / full)
        except ConfigError:
            return full

    def _full(self, path: str) -> str:
        full = posixpath.normpath(posixpath.join(self._root, path))
        return "" if full == "." else full

    def _existing(self, path: str) -> TreeNode:
        node = self._files.find(path)
        if node is None:
            where = f"in {self.place.ref}" if self.place.ref else "in the index"
            raise ConfigError(f"{self._files.display(path)}: no such file or directory {where}")
        return node

    def _below(self, path: str, directory: TreeNode, above: tuple[str, ...]) -> Iterator[str]:
        """Yield the files under a directory, and the directories, ending in `/`; none that leads back to one above."""
        if directory.path in above:
            return
        if len(above) == DEEPEST:
            raise ConfigError(f"{self._files.display(directory.path)}: more than {DEEPEST} levels of directories")
        for name in self._files.directory(directory):
            if name.startswith("."):
                continue
            try:
                each = self._existing(posixpath.join(directory.path, name))
            except AbsentFileError:
                yield f"{path}{name}"  # to `read` it is an error of its own
                continue
            if each.entry.is_directory:
                yield f"{path}{name}/"
                yield from self._below(f"{path}{name}/", each, (*above, directory.path))
            else:
                yield f"{path}{name}"


def _from_top(place: GitPlace) -> str:
    """Return the path from the top of the repository, empty for the top; `./` and `../` begin at the working directory.

    Raises:
        ConfigError: it leads out of the repository, or the working directory is in no work tree.

    """
    path = place.path
    if path.split("/", 1)[0] in {".", ".."}:
        answer = ask_git("rev-parse", "--show-prefix")
        if answer.output is None:
            raise ConfigError(f"{place.name}: ./ and ../ are for a working directory within a repository")
        path = posixpath.join(answer.output.decode("utf-8", "surrogateescape").rstrip("\n"), path)
    path = posixpath.normpath(path)
    if path.split("/", 1)[0] == "..":
        raise ConfigError(f"{place.name}: leads out of the repository")
    return "" if path == "." else path
