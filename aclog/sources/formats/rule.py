"""ACLs as files state them, with their lines, and code shared by all formats."""

import os
import re
import stat
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar
from uuid import UUID

from attrs import evolve, field

from aclog.authorizer.acl import FileOrigin, Origin, StandardAcl, StandardAclWithId, StatedCluster
from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.control import malformed
from aclog.authorizer.symbols import symbol_part
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.format import LARGEST
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.unread import Dormant, Located, Unread, UnreadKind

if TYPE_CHECKING:
    from aclog.sources.formats.yaml_nodes import BrokenDocument

# A rule, and the line that states it.


@frozen(kw_only=True)
class LocatedRule:
    """A rule that a file states."""

    acl: StandardAcl
    origin: FileOrigin
    id: UUID | None = None

    def of_cluster(self, cluster: StatedCluster | None) -> "LocatedRule":
        """Return the rule of a cluster that the file states; the rule itself without one."""
        return self if cluster is None else evolve(self, origin=evolve(self.origin, cluster=cluster))


@define(eq=False)
class StatedRules:
    """The rules of some files, each once, and all of its locations (aclog.authorizer.acl.Origins)."""

    _origins: dict[StandardAcl, list[FileOrigin]] = field(factory=dict, init=False)
    _ids: dict[StandardAcl, UUID | None] = field(factory=dict, init=False)

    @staticmethod
    def of_rules(rules: Iterable[LocatedRule]) -> "StatedRules":
        """Collect rules."""
        result = StatedRules()
        for rule in rules:
            result._origins.setdefault(rule.acl, []).append(rule.origin)
            result._ids.setdefault(rule.acl, rule.id)
        return result

    def __len__(self) -> int:
        return len(self._origins)

    def rules(self) -> Iterable[StandardAclWithId]:
        """Return each rule once, in the order of reading."""
        return [StandardAclWithId(id=rule_id, acl=acl) for acl, rule_id in self._ids.items()]

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return the location of every statement of a rule."""
        return tuple(self._origins.get(acl, ()))

    def located(self) -> Iterator[LocatedRule]:
        """Yield each statement of each rule, the rules in the order of reading."""
        for acl, origins in self._origins.items():
            for origin in origins:
                yield LocatedRule(acl=acl, origin=origin, id=self._ids[acl])


# A statement of a file that makes one rule.


@frozen(kw_only=True)
class Statement:
    """A rule without its principal; by default ALLOW from every host on a literal name."""

    where: Node
    """The value that states it."""
    resource_type: ResourceType
    name: str
    operation: AclOperation
    pattern_type: PatternType = PatternType.LITERAL
    host: str = WILDCARD
    permission_type: AclPermissionType = AclPermissionType.ALLOW

    def rule(self, principal: str) -> LocatedRule:
        """Return the rule for a principal. Raises ConfigError: CreateAcls would refuse it, with file and line."""
        acl = StandardAcl(
            resource_type=self.resource_type,
            resource_name=self.name,
            pattern_type=self.pattern_type,
            principal=principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission_type,
        )
        refused = malformed(acl)  # a symbol of Terraform is not known yet, and not refused
        if refused is not None:
            raise self.where.error(f"no Kafka accepts this rule: {refused}")
        return LocatedRule(acl=acl, origin=self.where.origin)


def on_cluster(where: Node, operation: AclOperation) -> Statement:
    """Return a statement about the cluster."""
    return Statement(where=where, resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME, operation=operation)


# Kafka's enum names in the spellings of other tools: TRANSACTIONAL_ID, TransactionalId, transactionalid.


_Enum = TypeVar("_Enum", bound=IntEnum)


def folded_name(name: str) -> str:
    """Return a name without underscores and case; two spellings of one name are then equal."""
    return name.replace("_", "").upper()


def find_name(values: Iterable[_Enum], name: str) -> _Enum | None:
    """Return the value that has this name in any spelling; None: unknown. Spaces are part of a name."""
    folded = folded_name(name)
    if not name.isascii():  # some letters become ASCII ones in upper case
        return None
    return next((value for value in values if folded_name(value.name) == folded), None)


def concrete(kind: type[_Enum]) -> tuple[_Enum, ...]:
    """Return the values that a rule of a tool may have: neither UNKNOWN nor ANY, nor the pattern type MATCH."""
    return tuple(value for value in kind if value.name not in {"UNKNOWN", "ANY", "MATCH"})


# Values of Kafka's enums by their names.


def named_value(node: Node, what: str, values: Iterable[_Enum], *, any_case: bool = False) -> _Enum:
    """Return the value whose name a scalar holds; `what` names it in errors. Raises ConfigError: unknown."""
    text = node.text(what)
    by_name = {value.name: value for value in values}
    member = by_name.get(text.upper() if any_case and text.isascii() else text)
    if member is None:
        raise node.error(f"{what} is {text[:60]!r}: expected one of {', '.join(by_name)}")
    return member


# Words of tools for values of Kafka's enums: of the operators for Kubernetes, the permissions of Ansible's modules too.


TYPES: Mapping[str, ResourceType] = MappingProxyType(
    {
        "topic": ResourceType.TOPIC,
        "group": ResourceType.GROUP,
        "cluster": ResourceType.CLUSTER,
        "transactionalId": ResourceType.TRANSACTIONAL_ID,
    }
)
PERMISSIONS: Mapping[str, AclPermissionType] = MappingProxyType(
    {"allow": AclPermissionType.ALLOW, "deny": AclPermissionType.DENY}
)
OPERATIONS: Mapping[str, AclOperation] = MappingProxyType(
    {
        "Read": AclOperation.READ,
        "Write": AclOperation.WRITE,
        "Create": AclOperation.CREATE,
        "Delete": AclOperation.DELETE,
        "Alter": AclOperation.ALTER,
        "Describe": AclOperation.DESCRIBE,
        "ClusterAction": AclOperation.CLUSTER_ACTION,
        "AlterConfigs": AclOperation.ALTER_CONFIGS,
        "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
        "IdempotentWrite": AclOperation.IDEMPOTENT_WRITE,
        "All": AclOperation.ALL,
    }
)


def choice(node: Node | None, what: str, choices: Mapping[str, _Enum], default: str = "") -> _Enum:
    """Return the value that a word denotes, or `default` without a node. Raises ConfigError: not one of the words."""
    if node is None:
        return choices[default]
    value = choices.get(node.text(what))
    if value is None:
        raise node.error(f"{what} {node.raw[:40]!r} is not one of {', '.join(choices)}")
    return value


# Resources in Kubernetes' manner: documents with apiVersion, kind, metadata and spec, one by one or in lists.


@frozen
class Resource:
    """A document that has a kind."""

    node: Node
    api_version: str
    kind: str

    @property
    def name(self) -> str:
        """The name in its metadata. Raises ConfigError: it has none."""
        name = self.node.required("metadata", self.kind).required("name", "metadata")
        if not name.text("metadata.name"):
            raise name.error("metadata.name is empty")
        return name.raw

    @property
    def kubernetes_name(self) -> str:
        """The name as Kubernetes takes it. Raises ConfigError: it has none, or one that is no text, such as 2024."""
        self.node.required("metadata", self.kind).required("name", "metadata").string("metadata.name")
        return self.name

    @property
    def namespace(self) -> Node | None:
        """The namespace in its metadata; None if it is set by the applying command."""
        metadata = self.node.get("metadata")
        return None if metadata is None else metadata.get("namespace")

    @property
    def spec(self) -> Node:
        """The spec. Raises ConfigError: it has none."""
        return self.node.required("spec", self.kind)


def resources(documents: Iterable[Node]) -> Iterator[Resource]:
    """Yield the resources in documents, those of lists one by one, and documents without a kind as of the kind ``.

    Raises:
        ConfigError: kind or apiVersion is not text, or the items of a list are no list.

    """
    for node in documents:
        kind, version = (node.get(key) for key in ("kind", "apiVersion"))
        text = "" if kind is None else kind.text("kind")
        if text.endswith("List") and node.get("items") is not None:
            yield from resources(node.members("items"))
        else:
            yield Resource(node, "" if version is None else version.text("apiVersion"), text)


# Regular expressions of RE2, whose time is linear in the text, for any pattern.


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return a compiled pattern, which has the methods of Python's.

    Raises:
        ValueError: not a pattern.

    """
    import re2  # here: few files have an expression

    options = re2.Options()
    options.log_errors = False  # it writes to stderr
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        message = error.args[0]
        raise ValueError(message.decode(errors="replace") if isinstance(message, bytes) else str(message)) from error


def matches(pattern: Any, text: str) -> Iterator[Any]:
    """Yield each match in turn, as Go finds them: none that is empty and touches the one before."""
    end = None
    for match in pattern.finditer(text):
        if match.end() != end or match.start() != end:
            end = match.end()
            yield match


# Where GitOps files are read from: a directory, or one file.


class AbsentFileError(ConfigError):
    """A path of a tree has no content: a symbolic link that leads nowhere, or a submodule."""


class FileTree(Protocol):
    """Files by their path from a root; paths have `/` between their parts."""

    @property
    def name(self) -> str:
        """The path as given, for messages."""
        ...

    def paths(self) -> list[str]:
        """Return all files beneath the root, sorted; none whose name, or that of its directory, begins with a dot.

        Raises:
            OSError, ConfigError: a directory cannot be read.

        """
        ...

    def read(self, path: str) -> bytes:
        """Return the content of a file; `..` may lead out of the root.

        Raises OSError, ConfigError: it cannot be read; AbsentFileError: it has none.

        """
        ...

    def is_file(self, path: str) -> bool:
        """Return whether there is such a file."""
        ...

    def entries(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none if it is no directory."""
        ...

    def display(self, path: str) -> str:
        """Return a path as messages name it."""
        ...

    def flag_value(self, path: str) -> str:
        """Return a path as flags name it, such as --var-file: from the working directory, without a commit."""
        ...


MOST_FILES = 200_000
"""Of one tree, with its directories: symbolic links, and in git a directory that occurs several times, can make few of
them look like endlessly many."""
DEEPEST = 200
"""Levels of directories: more than people make, and few enough for a recursive walk."""


class Destination(Enum):
    """Where a path leads, symbolic links followed."""

    INSIDE = "INSIDE"
    OUTSIDE = "OUTSIDE"
    GIT = "GIT"
    """Into a `.git`, in any case of its letters, which may hold credentials."""


def destination(path: Path, boundary: Path) -> Destination:
    """Return where an untrusted path leads: nothing outside the boundary may be read."""
    real, root = Path(os.path.realpath(path)), Path(os.path.realpath(boundary))
    if not real.is_relative_to(root):
        return Destination.OUTSIDE
    is_git = any(part.lower() == ".git" for part in real.relative_to(root).parts)
    return Destination.GIT if is_git else Destination.INSIDE


def repository_root(start: Path) -> Path | None:
    """Return the root of the git repository that a directory is in; None if it is in none.

    `.git` is a directory, or the file of a worktree or submodule.
    """
    start = start.absolute()
    return next((each for each in (start, *start.parents) if (each / ".git").exists()), None)


@define(eq=False, slots=False)
class DirectoryTree:
    """The files under a directory; of a single file, that one, with the others beside it within reach of `read`.

    Files may be untrusted, from a pull request: neither `..` nor a symbolic link leads out of the repository that
    they are in, or, outside of one, out of the working directory.
    """

    name: str
    strict: bool = False
    """Whether a path under the root that is neither a regular file nor a directory is refused, instead of left out."""

    def paths(self) -> list[str]:
        """Return all regular files, symbolic links followed, and links that lead nowhere.

        Raises:
            OSError: a directory cannot be read; ConfigError: more than MOST_FILES or DEEPEST, one leads out, or
                `strict` refuses it.

        """
        if self._is_one_file:
            return [Path(self.name).name]
        root, files = Path(self.name), []
        for number, (path, is_directory) in enumerate(self._entries(root, ())):
            if number == MOST_FILES:
                raise ConfigError(f"{self.name}: more than {MOST_FILES:,} files")
            if not is_directory:
                files.append(path.relative_to(root).as_posix())
        return sorted(files)

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises OSError: unreadable; ConfigError: not a regular file, or it leads out; AbsentFileError: a link to
        nothing.

        """
        file = self._inside(path)
        if not file.is_file():
            if file.is_symlink() and not file.exists():
                raise AbsentFileError(f"{file}: a symbolic link that leads nowhere: remove it, or add the file")
            if file.exists():
                raise ConfigError(f"{file}: not a regular file")
        return file.read_bytes()

    def is_file(self, path: str) -> bool:
        """Return whether there is such a file. Raises ConfigError: it leads out."""
        return self._inside(path).is_file()

    def entries(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none if it is no directory. Raises ConfigError: it leads out."""
        directory = self._inside(path)
        return sorted(each.name for each in directory.iterdir()) if directory.is_dir() else []

    def display(self, path: str) -> str:
        """Return the path from the working directory, or as it was given."""
        return os.path.normpath(os.path.join(self._root, path))  # noqa: PTH118

    def flag_value(self, path: str) -> str:
        """Return the path as `display` does: flags name files in the same way."""
        return self.display(path)

    @cached_property
    def _is_one_file(self) -> bool:
        return not Path(self.name).is_dir()

    @cached_property
    def _root(self) -> str:
        return os.path.dirname(self.name) if self._is_one_file else self.name  # noqa: PTH120

    @cached_property
    def _boundary(self) -> Path:
        root = Path(os.path.realpath(self._root or os.curdir))
        repository = repository_root(root)
        if repository is not None:
            return repository
        working = Path.cwd().resolve()
        return working if root.is_relative_to(working) else root

    def _inside(self, path: str) -> Path:
        text = self.display(path)
        target = Path(text)
        if self._is_one_file and path == Path(self.name).name:
            return target  # the user named it
        directory, name = os.path.split(text)
        is_plain = name.lower() not in ("", os.curdir, os.pardir, ".git") and not target.is_symlink()
        if not is_plain or not self._leads_inside(directory):
            self._check_inside(target)
        return target

    def _leads_inside(self, directory: str) -> bool:
        """Return whether a directory leads to one inside: then so does a file in it that is no link."""
        inside = self._directories.get(directory)
        if inside is None:
            inside = destination(Path(directory), self._boundary) is Destination.INSIDE
            self._directories[directory] = inside
        return inside

    @cached_property
    def _directories(self) -> dict[str, bool]:
        """Directories, and whether they lead inside: nearly all files are in a few."""
        return {}

    def _check_inside(self, target: Path) -> None:
        match destination(target, self._boundary):
            case Destination.OUTSIDE:
                raise ConfigError(f"{target}: leads out of {self._boundary}: files outside are not read")
            case Destination.GIT:
                raise ConfigError(f"{target}: leads into .git, which may hold credentials: nothing in it is read")

    def _entries(self, directory: Path, above: tuple[tuple[int, int], ...]) -> Iterator[tuple[Path, bool]]:
        """Yield the entries of a directory, and whether each is a directory; no entry that leads back to one above."""
        status = directory.stat()
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            return
        if len(above) == DEEPEST:
            raise ConfigError(f"{directory}: more than {DEEPEST} levels of directories")
        for path in directory.iterdir():
            if path.name.startswith("."):
                continue
            if path.is_symlink() and (path.is_dir() or path.is_file()):  # a link to /dev/null masks a file
                self._check_inside(path)  # before a directory outside is listed, or a file is opened
            if path.is_symlink() and not path.exists() and not self.strict:
                yield path, False  # to `read` it is an error of its own
            elif path.is_dir():
                yield path, True  # before its content: the reader may stop
                yield from self._entries(path, (*above, identity))
            elif stat.S_ISREG(path.stat().st_mode):
                yield path, False
            elif self.strict:
                raise ConfigError(f"{path}: neither a regular file nor a directory: its rules cannot be read")


@define(eq=False, slots=False)
class EditedTree(DirectoryTree):
    """A directory, or a file, of which some files have other contents than on the disk."""

    contents: Mapping[str, bytes] = field(factory=dict)
    """By the path as messages name it."""

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises as DirectoryTree.read."""
        content = self.contents.get(self.display(path))
        return super().read(path) if content is None else content


# Inputs of readers of GitOps files besides the files, and counts of skipped resources.


@frozen(kw_only=True)
class RootInputs:
    """What flags give the root modules of Terraform."""

    files: Sequence[tuple[str, bytes]] = ()
    """The name and the content of each file of variables, in the order in which they are read."""
    values: Mapping[str, str] = field(factory=dict)
    """Values of variables, by name, as a flag states them."""
    workspace: str = "default"


@define(eq=False, kw_only=True)
class ReadContext:
    """One reading of a tree; owned by its reader."""

    tree: FileTree
    topics: Callable[[], Sequence[str]] | None = None
    """Returns the existing topics; None if unknown."""
    modules: Mapping[str, str] = field(factory=dict)
    """The directory of each module of Terraform that is not in the tree, by its source."""
    inputs: RootInputs = field(factory=RootInputs)
    exclude: Callable[[str], bool] = field(default=lambda _: False)
    """Whether a file, by its path in the tree, is not read."""
    ignored_files: Callable[[Sequence[str]], frozenset[str]] = field(default=lambda _: frozenset())
    """Returns the files among some that are not part of the repository, such as build output."""
    may_be_empty: bool = False
    """Whether a tree without a file of rules is a state without rules."""
    is_output: bool = False
    """Whether the tree is the output of a command, which has to be read as a whole."""
    strict: bool = False
    """Whether a stated rule that the tool makes nothing of is refused, instead of left out as the tool does; and a file
    that was emptied."""
    claims: Callable[["SourceFile"], bool] = field(default=lambda _: False, init=False)
    """Whether a format claims a file; set by the reader of the tree."""
    ignored: Counter[str] = field(factory=Counter, init=False)
    """How many things of each kind cannot make rules, such as `KafkaTopic`."""
    left_out: Counter[str] = field(factory=Counter, init=False)
    """How many files were not looked at, by the reason."""
    notes: list[str] = field(factory=list, init=False)
    """Further notes for the user."""
    unread: list[Unread] = field(factory=list, init=False)
    """What may hold rules and was not read, in the order of reading."""
    dormant: list[Dormant] = field(factory=list, init=False)
    """What makes no rules by the values that were read."""
    topics_declared: dict[tuple[str, FileOrigin], None] = field(factory=dict, init=False)
    """The names of the topics that files declare, and where; one with an unknown part is a symbol
    (aclog.authorizer.symbols)."""
    twins: set[str] = field(factory=set, init=False)
    """The directories, by their paths in the tree, with resources that would replace each other in one cluster."""
    overlays: Mapping[str, frozenset[str]] = field(factory=dict, init=False)
    """The root kustomizations that take each file of rules, where several take the same ones."""

    def for_part(self) -> "ReadContext":
        """Return a context for a part of the files, which has noted nothing."""
        part = evolve(self)
        part.claims = self.claims
        return part

    def noted(self) -> "Noted":
        """Return what was noted of the files, without those that were not looked at."""
        return Noted(
            ignored=self.ignored,
            notes=self.notes,
            unread=self.unread,
            dormant=self.dormant,
            topics_declared=self.topics_declared,
            twins=self.twins,
        )

    def add(self, noted: "Noted") -> None:
        """Add what was noted of the next part of the files."""
        self.ignored.update(noted.ignored)
        self.notes.extend(noted.notes)
        self.unread.extend(noted.unread)
        self.dormant.extend(noted.dormant)
        self.topics_declared.update(noted.topics_declared)
        self.twins.update(noted.twins)

    def declare_topic(self, name: str | None, place: Located, cluster: StatedCluster | None = None) -> None:
        """Report a topic that a file declares; None: its name is not known."""
        text = symbol_part("a topic") if name is None else name
        self.topics_declared[text, FileOrigin(file=place.file, line=place.line, cluster=cluster)] = None

    def paths(self) -> list[str]:
        """Return the files of the tree that are read, sorted. Raises as FileTree.paths."""
        paths = self.tree.paths()
        included = [path for path in paths if not self.exclude(path)]
        ignored = self.ignored_files(included)
        for kind, number in (("excluded file", len(paths) - len(included)), ("file that git ignores", len(ignored))):
            self.left_out.update({kind: number} if number else {})
        return [path for path in included if path not in ignored]

    def not_read(self, kind: UnreadKind, place: Located, reason: str, *, name: str = "") -> None:
        """Report content that may hold rules and that is not read; see aclog.sources.formats.unread."""
        self.unread.append(Unread(kind=kind, file=place.file, line=place.line, reason=reason, name=name))

    def ignore(self, kind: str) -> None:
        """Count something that cannot make a rule."""
        self.ignored[kind] += 1

    def makes_nothing(self, kind: str, rule: Node, why: str) -> None:
        """Count a stated rule that the tool ignores. Raises ConfigError: `strict`; with its location and the reason."""
        if self.strict:
            raise rule.error(why)
        self.ignore(kind)


@frozen(kw_only=True)
class Noted:
    """What the reading of some files leaves besides rules; the fields are those of ReadContext."""

    ignored: Counter[str]
    notes: list[str]
    unread: list[Unread]
    dormant: list[Dormant]
    topics_declared: dict[tuple[str, FileOrigin], None]
    twins: set[str]


# The files that formats read, and ACLs as files state them, with their lines.


# A file of a tree, read on first use.


_GZIP = b"\x1f\x8b"
_GZIP_HEADER = 31
"""What zlib expects: a window of 2^15 bytes, with the header and the trailer of gzip."""

_ESCAPE = re.compile(rb"\\(?:x([0-7][0-9a-fA-F])|[uU](?:0000)?00([0-7][0-9a-fA-F])|\r?\n[ \t]*)")


Parsed: TypeAlias = "tuple[list[Node], list[BrokenDocument]]"
"""The documents of a file, and those that are not YAML."""


@define(eq=False, slots=False)
class SourceFile:
    """A file by its path in a tree. Gzip is detected."""

    tree: FileTree
    path: str

    @property
    def name(self) -> str:
        """The path as messages name it."""
        return self.tree.display(self.path)

    @property
    def base_name(self) -> str:
        """The last part of the path, without `.gz`."""
        return self.path.rsplit("/", 1)[-1].removesuffix(".gz")

    @cached_property
    def content(self) -> bytes:
        """Its content. Raises OSError, ConfigError: unreadable, damaged, or larger than 64 MiB."""
        content = unzipped(self.tree.read(self.path), self.name)
        if len(content) > LARGEST:
            raise ConfigError(f"{self.name}: larger than {LARGEST >> 20} MiB")
        return content

    @cached_property
    def text(self) -> str:
        """Its text, without a byte order mark. Raises as `content`; ConfigError: not UTF-8."""
        try:
            return self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.content.count(b"\n", 0, error.start) + 1
            raise ConfigError(f"{self.name}:{line}: byte {error.start} is not UTF-8") from error

    def line_at(self, position: int) -> int:
        """Return the line, from 1, of a position in the text. Raises as `text`."""
        return bisect_left(self._line_ends, position) + 1

    @cached_property
    def _line_ends(self) -> Sequence[int]:
        """The positions of the line feeds in the text, 4 bytes each: a file may have nothing else."""
        return array("I", (match.start() for match in re.finditer("\n", self.text)))

    @property
    def documents(self) -> list[Node]:
        """Its YAML documents (JSON is YAML), without those of `broken_documents`. Raises as `content`."""
        return self._parsed[0]

    @property
    def broken_documents(self) -> "list[BrokenDocument]":
        """The documents that are not YAML, such as templates: who reads the file judges them. Raises as `content`."""
        return self._parsed[1]

    def whole_documents(self) -> list[Node]:
        """Return its YAML documents. Raises as `content`; ConfigError: one is not YAML, with the line."""
        if self.broken_documents:
            broken = self.broken_documents[0]
            raise ConfigError(f"{self.name}:{broken.error_line}: {broken.problem}")
        return self.documents

    @staticmethod
    def of_document(file: "SourceFile", node: Node, text: str) -> "SourceFile":
        """Return a file that has one document of another only."""
        alone = SourceFile(file.tree, file.path)
        alone.__dict__.update(content=text.encode(), text=text, _parsed=([node], []))
        return alone

    @property
    def parsed(self) -> "Parsed | None":
        """Its documents, and the broken ones, if they were read already; None if not."""
        return self.__dict__.get("_parsed")

    def take_parsed(self, parsed: "Parsed") -> None:
        """Take the documents, and the broken ones, that another process has read."""
        self.__dict__["_parsed"] = parsed

    @cached_property
    def _parsed(self) -> "Parsed":
        from aclog.sources.formats.yaml_nodes import parse_each_document  # here: rules as JSON lines take no YAML

        return parse_each_document(self.content, self.name)

    def mentions(self, *words: bytes) -> bool:
        """Return whether one of some words of ASCII may be in a YAML or JSON file, as it is or with escapes."""
        return any(word in self.content or word in self._unescaped for word in words)

    @cached_property
    def _unescaped(self) -> bytes:
        """The content without the escapes of characters of ASCII and of line ends; empty if it has no escape."""
        if b"\\" not in self.content:
            return b""
        return _ESCAPE.sub(lambda match: bytes.fromhex((match[1] or match[2] or b"").decode()), self.content)

    def has_suffix(self, *suffixes: str) -> bool:
        """Return whether the name ends in one of them, in any case."""
        return self.base_name.lower().endswith(suffixes)

    def error(self, line: int, what: str) -> ConfigError:
        """Return an error about a line."""
        return ConfigError(f"{self.name}:{line}: {what}")


def unzipped(content: bytes, name: str) -> bytes:
    """Return the content of a file, decompressed if it is gzip; of several members in a row, all.

    Decompression ends soon after LARGEST bytes.

    Raises:
        ConfigError: damaged or truncated, or something else follows.

    """
    if content[:2] != _GZIP:
        return content
    members, size, rest = list[bytes](), 0, content
    while rest and size <= LARGEST:
        decompressor = zlib.decompressobj(wbits=_GZIP_HEADER)
        try:
            members.append(decompressor.decompress(rest, LARGEST + 1 - size))
        except zlib.error as error:
            raise ConfigError(f"{name}: damaged gzip file: {error}") from error
        size += len(members[-1])
        if size <= LARGEST and not decompressor.eof:
            raise ConfigError(f"{name}: truncated gzip file")
        rest = decompressor.unused_data.lstrip(b"\0")  # padding, as gzip itself skips
    return b"".join(members)
