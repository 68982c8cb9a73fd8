"""Rules that a command writes (`kustomize build`, `helm template`) from the files of a commit or of the work tree.

The command is the user's and is trusted, the files are not. It runs in a copy of the files, which is removed
afterwards: it changes neither the work tree nor the repository, and the files of both sides come about the same way.
The copy has neither `.git` nor files that git ignores, which a commit cannot have either.
"""

import os
import posixpath
import re
import selectors
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import IO, cast

from attrs import field

from aclog.metalog.errors import ConfigError
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.sources.formats.format import LARGEST
from aclog.sources.formats.helm import CHART
from aclog.sources.formats.rule import DEEPEST, MOST_FILES, DirectoryTree, SourceFile
from aclog.sources.formats.unread import Unread, UnreadKind
from aclog.sources.formats.verdicts import KUSTOMIZATIONS
from aclog.sources.git import POINTERS, GitFiles, GitPlace, TreeEntry, TreeNode, ask_git, submodules, top_directory

# The command line.


PATIENCE_S = 120.0
"""The longest time that a command takes on one side, by default."""


@frozen(kw_only=True)
class RenderCommand:
    """A command whose stdout is rules; `parse_command` makes them."""

    text: str
    """As given, in one line."""
    arguments: tuple[str, ...]
    """The absolute path of the program, and its arguments."""
    directory: str
    """Where it runs, from the top of the repository."""
    search_path: str
    """The PATH without directories that the change may have written."""
    patience_s: float = PATIENCE_S


def parse_command(text: str, directory: str, patience_s: float = PATIENCE_S) -> RenderCommand:
    """Parse a command line with the quotes of a shell, which does not run.

    Raises:
        ConfigError: an open quote, no program, one that is not on the PATH, or one in the work tree: it would be a file
            of the change that is reviewed; or an argument with the path of the work tree, which is no side's copy.

    """
    one_line = " ".join(text.split())
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"--render {one_line[:200]!r}: {error}: expected a command line, without a shell") from error
    if not words or "\0" in text:
        raise ConfigError("--render: expected a command line, such as 'kustomize build overlays/prod'")
    top = top_directory()
    tops = {str(top), str(top.resolve())}
    in_work_tree = re.compile(rf"(?:{'|'.join(map(re.escape, tops))})(?![\w.-])")
    for word in words[1:]:
        if in_work_tree.search(word) is not None:
            raise ConfigError(
                f"--render: {word[:200]}: a path in the work tree is the same on both sides: expected one relative to "
                "the directory where the command runs, which is that of the copy"
            )
    search_path = _search_path(top.resolve())
    return RenderCommand(
        text=one_line,
        arguments=(_program(words[0], search_path, top.resolve()), *words[1:]),
        directory=directory,
        search_path=search_path,
        patience_s=patience_s,
    )


def _program(name: str, search_path: str, top: Path) -> str:
    if not os.path.isabs(name) and os.path.dirname(name):  # noqa: PTH117, PTH120
        raise _of_the_change(name)
    program = shutil.which(name, path=search_path)
    if program is None:
        raise ConfigError(f"--render: {name[:200]}: no such program on the PATH")
    if any(each.resolve().is_relative_to(top) for each in (Path(program), Path(program).parent)):
        raise _of_the_change(name)
    return program


def _of_the_change(name: str) -> ConfigError:
    return ConfigError(
        f"--render: {name[:200]}: a program of the change that is reviewed: expected one on the PATH, outside of the "
        "work tree"
    )


def _search_path(top: Path) -> str:
    """Return the PATH without directories of the work tree, or of the copy: the change may have written those."""
    entries = (each for each in os.get_exec_path() if os.path.isabs(each))  # noqa: PTH117
    return os.pathsep.join(each for each in entries if not Path(each).resolve().is_relative_to(top))


# What a command wrote, and the files that it names.


@frozen(eq=False, kw_only=True)
class Rendered:
    """The output of a command on one side."""

    command: RenderCommand
    output: bytes
    warning: str | None
    """The last line that the command wrote to stderr; None without one."""
    left_out: tuple[Unread, ...]
    """What the command did not have though the side has it, by its name in messages."""
    starts: Sequence[int]
    """The lines of the output, from 1, at which another file begins."""
    files: Sequence[str | None]
    """The file that begins at each of them, by its name in messages; None if it is unknown."""

    @property
    def name(self) -> str:
        """What messages call the output."""
        return self.command.text

    def place(self, line: int) -> tuple[str, int]:
        """Return the file that a line of the output is from, with its first line; or else the output and the line.

        Neither Helm nor Kustomize states a line of the file.
        """
        at = bisect_right(self.starts, line) - 1
        file = self.files[at] if at >= 0 else None
        return (self.name, line) if file is None else (file, 1)


def render(command: RenderCommand, ref: str | None, side: str) -> Rendered:
    """Return the output of a command on a commit, or, without a `ref`, on the working tree.

    `side`: its name in messages.

    Raises:
        ConfigError: the command fails, does not end in time, or writes more than LARGEST; the files are too many or
            too large, or are not in this clone.
        OSError: the files cannot be copied, or the program cannot be run.

    """
    with tempfile.TemporaryDirectory(prefix="aclog-render-") as name:
        copy = _Copy(top=Path(name), ref=ref)
        if ref is None:
            _copy_working_tree(copy)
        else:
            _copy_commit(copy, ref)
        copy.add_links()
        directory = copy.top / command.directory
        if not directory.is_dir():
            raise ConfigError(f"{side}: {command.text}: there is no directory {command.directory} to run it in")
        output, warning = _output(command, directory, side)
        starts, files = _sources(output, copy, command)
        return Rendered(
            command=command,
            output=output,
            warning=warning,
            left_out=tuple(copy.left_out),
            starts=starts,
            files=files,
        )


# Copies of files.


_LARGEST_COPY = 2 << 30
"""In bytes, of all files."""
_TEXTS = (".yaml", ".yml", ".json", ".tpl", ".tgz", ".env", ".properties")
"""Suffixes of files that decide what is rendered: a picture that is in Git LFS makes no difference."""


@define(eq=False, kw_only=True, slots=False)
class _Copy:
    """A copy of the files of a side. Owned by `render`."""

    top: Path
    ref: str | None
    files: set[str] = field(factory=set, init=False)
    """The regular files, from the top of the repository."""
    left_out: list[Unread] = field(factory=list, init=False)
    _links: dict[str, str] = field(factory=dict, init=False)
    _size: int = field(default=0, init=False)
    _in_place: dict[str, bool] = field(factory=dict, init=False)

    def display(self, path: str) -> str:
        """Return a path from the top of the repository as messages name it."""
        return os.path.relpath(self.origin / path) if self.ref is None else f"{self.ref}:{path}"

    @cached_property
    def origin(self) -> Path:
        """The top of the work tree."""
        return top_directory()

    def is_in_place(self, path: str) -> bool:
        """Return whether no symbolic link is on the way to a file of the work tree."""
        directory = posixpath.dirname(path)
        if directory not in self._in_place:
            real = (self.origin / directory).resolve()
            self._in_place[directory] = real == self.origin.resolve() / directory
        return self._in_place[directory]

    def place_for(self, path: str, size: int) -> Path:
        """Return where a file goes, whose directory is made. Raises ConfigError: too many files, or too large."""
        self._size += size
        if len(self.files) + len(self._links) >= MOST_FILES or self._size > _LARGEST_COPY:
            raise ConfigError(
                f"{self.display(path)}: more than {MOST_FILES:,} files or {_LARGEST_COPY >> 20:,} MiB, which are "
                "copied for --render"
            )
        self.files.add(path)
        return self.directory(path)

    def directory(self, path: str) -> Path:
        """Return the path of a file in the copy, whose directory is made."""
        target = self.top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def check_content(self, path: str, start: bytes) -> None:
        """Report a file whose content is not in the repository; `start`: its first bytes."""
        why = next((what for beginning, what in POINTERS.items() if start.startswith(beginning)), None)
        if why is not None and path.lower().endswith(_TEXTS):
            self.leave_out(UnreadKind.ENCODED, path, f"{why}: the command of --render had the pointer only")

    def add_link(self, path: str, target: str) -> None:
        """Add a symbolic link, which is made when all files and directories are there."""
        self._links[path] = target

    def leave_out(self, kind: UnreadKind, path: str, reason: str) -> None:
        """Report content that the command lacks."""
        self.left_out.append(Unread(kind=kind, file=self.display(path), line=1, reason=reason))

    def add_links(self) -> None:
        """Make the links that lead to other files of the copy: files may be written through no link."""
        for path, target in self._links.items():
            if _stays_inside(path, target):
                self.directory(path).symlink_to(target)
            else:
                why = f"a symbolic link to {target[:80]!r}, which the command of --render did not have"
                self.leave_out(UnreadKind.LINK, path, why)


_LONGEST_LINK = 1_000


def _stays_inside(path: str, target: str) -> bool:
    """Return whether a link leads to another file of the tree, no matter which other links are on the way.

    It goes up first and then down: a `..` behind the name of a link would begin at the directory which that leads to.
    """
    steps = [each for each in target.split("/") if each not in ("", ".")]
    ups = next((at for at, each in enumerate(steps) if each != ".."), len(steps))
    is_name = bool(target) and "\0" not in target and len(target) <= _LONGEST_LINK
    return is_name and not target.startswith("/") and ups <= path.count("/") and ".." not in steps[ups:]


def _copy_commit(copy: _Copy, ref: str) -> None:
    """Copy the files of a commit as they are in it: no filter of git runs. Raises as `render`."""
    files = GitFiles(place=GitPlace(ref=ref, path=""))
    try:
        top = files.find("")
        for node in () if top is None else _below(files, top):
            _copy_entry(copy, files, node)
    finally:
        files.close()


def _below(files: GitFiles, top: TreeNode) -> Iterator[TreeNode]:
    """Yield all entries under a directory that are no directories.

    A directory may occur many times, so that few objects have endlessly many entries.
    """
    waiting, number = [top], 0
    while waiting:
        directory = waiting.pop()
        if directory.path.count("/") >= DEEPEST:
            raise ConfigError(f"{files.display(directory.path)}: more than {DEEPEST} levels of directories")
        for name, entry in files.directory(directory).items():
            number += 1
            if number > MOST_FILES:
                raise ConfigError(f"{files.display(directory.path)}: more than {MOST_FILES:,} files and directories")
            node = TreeNode(path=posixpath.join(directory.path, name), entry=entry)
            if entry.is_directory:
                waiting.append(node)
            else:
                yield node


_SUBMODULE = "a submodule: its files are in another repository, and the command of --render did not have them"


def _copy_entry(copy: _Copy, files: GitFiles, node: TreeNode) -> None:
    if node.entry.is_submodule:
        copy.leave_out(UnreadKind.LINK, node.path, _SUBMODULE)
        return
    content = files.content(node)
    if node.entry.is_link:
        copy.add_link(node.path, os.fsdecode(content))
        return
    target = copy.place_for(node.path, len(content))
    target.write_bytes(content)
    target.chmod(0o755 if _is_executable(node.entry) else 0o644)
    copy.check_content(node.path, content)


def _is_executable(entry: TreeEntry) -> bool:
    return entry.mode == "100755"


def _copy_working_tree(copy: _Copy) -> None:
    """Copy the files of the work tree that git has or would add, as they are now. Raises as `render`."""
    listed = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--full-name", ":/")
    answer = ask_git(*listed)
    if answer.output is None:
        raise ConfigError(f"git ls-files: {answer.message.removeprefix('fatal: ')}")
    for path in submodules(""):
        copy.leave_out(UnreadKind.LINK, path, _SUBMODULE)
    for path in sorted({os.fsdecode(each) for each in answer.output.split(b"\0") if each}):
        if copy.is_in_place(path):
            _copy_file(copy, copy.origin / path, path)


def _copy_file(copy: _Copy, source: Path, path: str) -> None:
    if path.endswith("/"):
        copy.leave_out(UnreadKind.LINK, path, "another repository, whose files the command of --render did not have")
        return
    try:
        status = source.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return  # deleted since it was added
    if stat.S_ISLNK(status.st_mode):
        copy.add_link(path, str(source.readlink()))
    elif stat.S_ISREG(status.st_mode):
        target = copy.place_for(path, status.st_size)
        shutil.copyfile(source, target, follow_symlinks=False)
        target.chmod(0o755 if status.st_mode & stat.S_IXUSR else 0o644)
        with target.open("rb") as file:
            copy.check_content(path, file.read(max(map(len, POINTERS))))


# Runs a command.


_LAST = 1 << 14
"""Bytes of stderr that are kept."""
_LONGEST_LINE = 300


def _output(command: RenderCommand, directory: Path, side: str) -> tuple[bytes, str | None]:
    """Return the stdout of a command and the last line of stderr; no process of its group outlives this call.

    Raises as `render`.
    """
    process = subprocess.Popen(  # noqa: S603  # no shell, and the command is the user's
        command.arguments,
        cwd=directory,
        env=_environment(command, directory),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a group of its own, which can be ended as a whole
    )
    try:
        return _awaited(process, command, side)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for stream in (process.stdout, process.stderr):
            cast("IO[bytes]", stream).close()
        process.wait()


def _environment(command: RenderCommand, directory: Path) -> dict[str, str]:
    """Return the environment of a command: ours without programs of the change, and without the repository for git."""
    own = {key: value for key, value in os.environ.items() if key not in _OF_REPOSITORY}
    return {**own, "PATH": command.search_path, "PWD": str(directory)}


_OF_REPOSITORY = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE"),
    }
)


def _awaited(process: "subprocess.Popen[bytes]", command: RenderCommand, side: str) -> tuple[bytes, str | None]:
    output, errors = bytearray(), bytearray()
    deadline = elapsed_seconds() + command.patience_s
    late = ConfigError(f"{side}: {command.text}: not at its end within {command.patience_s:g} s (--render-timeout)")
    with selectors.DefaultSelector() as selector:
        for stream, buffer in ((process.stdout, output), (process.stderr, errors)):
            selector.register(cast("IO[bytes]", stream), selectors.EVENT_READ, buffer)
        while selector.get_map():
            remaining = deadline - elapsed_seconds()
            if remaining <= 0:
                raise late
            for key, _ in selector.select(remaining):
                block = os.read(key.fd, 1 << 16)
                key.data.extend(block)
                if not block:
                    selector.unregister(key.fileobj)
            if len(output) > LARGEST:
                raise ConfigError(f"{side}: {command.text}: more than {LARGEST >> 20} MiB of output")
            del errors[:-_LAST]
    try:
        code = process.wait(max(0.0, deadline - elapsed_seconds()))
    except subprocess.TimeoutExpired:
        raise late from None
    warning = _last_line(bytes(errors))
    if code != 0:
        raise ConfigError(f"{side}: {command.text}: {_exit_text(code)}: {warning or 'nothing on stderr'}")
    return bytes(output), warning


def _exit_text(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"ended by signal {-code}"


def _last_line(errors: bytes) -> str | None:
    lines = [each.strip() for each in errors.decode(errors="replace").splitlines() if each.strip()]
    return lines[-1][:_LONGEST_LINE] if lines else None


# The files that an output names: Helm's `# Source: CHART/templates/users.yaml`, by the name of the chart, and the
# annotation that Kustomize adds to each resource (`buildMetadata: [originAnnotations]`).


_SOURCE = re.compile(rb"# Source: (\S.*?)\s*")
_ORIGIN = b"    config.kubernetes.io/origin: |"
_ORIGIN_PATH, _ORIGIN_REPOSITORY = b"      path: ", b"      repo: "


def _sources(output: bytes, copy: _Copy, command: RenderCommand) -> tuple[list[int], list[str | None]]:
    """Return the lines at which the output of another file begins, and the file; None if it is unknown."""
    starts, files, names = [1], list[str | None]([None]), _Names(copy=copy, command=command)
    lines = output.split(b"\n")
    for number, line in enumerate(lines, 1):
        match = _SOURCE.fullmatch(line)
        if match is not None or line.startswith(b"---"):
            starts.append(number)
            files.append(None if match is None else names.template(match[1].decode(errors="replace")))
        elif line == _ORIGIN and files[-1] is None:
            files[-1] = names.origin(lines[number : number + 3])
    return starts, files


@define(eq=False, kw_only=True, slots=False)
class _Names:
    """The files of a copy by the names that outputs have for them. Owned by `_sources`."""

    copy: _Copy
    command: RenderCommand

    def template(self, source: str) -> str | None:
        """Return the file of a template of Helm; None if several charts of the name have it, or none."""
        chart, _, path = source.partition("/")
        return self._only(posixpath.join(directory, path) for directory in self._charts.get(chart, ()))

    def origin(self, lines: Sequence[bytes]) -> str | None:
        """Return the file in the value of Kustomize's annotation, whose path begins at the built directory."""
        if not lines[0].startswith(_ORIGIN_PATH) or any(each.startswith(_ORIGIN_REPOSITORY) for each in lines[1:]):
            return None
        path = os.fsdecode(lines[0].removeprefix(_ORIGIN_PATH))
        return self._only(posixpath.normpath(posixpath.join(root, path)) for root in self._roots)

    def _only(self, candidates: Iterable[str]) -> str | None:
        existing = {each for each in candidates if each in self.copy.files}
        return self.copy.display(existing.pop()) if len(existing) == 1 else None

    @cached_property
    def _roots(self) -> list[str]:
        """The directories that may have been built: those among the arguments, or else all with a kustomization."""
        every = {posixpath.dirname(each) for each in self.copy.files if posixpath.basename(each) in KUSTOMIZATIONS}
        arguments = [
            posixpath.normpath(posixpath.join(self.command.directory, each)) for each in self.command.arguments[1:]
        ]
        return [each for each in arguments if each in every] or sorted(every)

    @cached_property
    def _charts(self) -> dict[str, list[str]]:
        """The directories of the charts, by the names of the charts."""
        tree, charts = DirectoryTree(str(self.copy.top)), dict[str, list[str]]()
        for path in sorted(self.copy.files):
            if posixpath.basename(path) != CHART:
                continue
            try:
                documents = SourceFile(tree, path).documents
                name = documents[0].get("name") if documents else None
            except (ConfigError, OSError):
                continue  # what Helm would refuse is no chart that its output is of
            if name is not None:
                charts.setdefault(name.raw, []).append(posixpath.dirname(path))
        return charts
