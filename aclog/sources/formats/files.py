"""The files that formats read, and ACLs as files state them, with their lines."""

import codecs
import re
import zlib
from functools import cached_property

from attrs import define

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.rule import LARGEST, FileTree, ReadContext, Resource, resources
from aclog.sources.formats.yaml_nodes import parse_documents

# A file of a tree, read on first use.


_GZIP = b"\x1f\x8b"
_GZIP_HEADER = 31
"""What zlib expects: a window of 2^15 bytes, with the header and the trailer of gzip."""

_ESCAPE = re.compile(rb"\\(?:x([0-7][0-9a-fA-F])|[uU](?:0000)?00([0-7][0-9a-fA-F])|\r?\n[ \t]*)")


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

    @cached_property
    def documents(self) -> list[Node]:
        """Its YAML documents (JSON is YAML). Raises as `content`; ConfigError: not YAML."""
        return parse_documents(self.content, self.name)

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


# Counts resources that cannot make rules, by kind.


_LONGEST = 60
"""The longest kind in messages, in characters."""
_RULE_KIND = re.compile(r"kafka_?(user|principal\w*|\w*acl)s?(list)?|accesscontrol\w*", re.IGNORECASE)
"""Kinds that make ACLs, including those of unknown operators and misspelled ones."""
_OF_CREDENTIALS = re.compile(r"(kafka\.)?jikkou\.io/")
"""Where a KafkaUser has passwords, and no rules."""
_WORDS = (b"Kafka", b"kafka", b"AccessControl", b"accesscontrol")
_TEMPLATES = (".tpl", ".tmpl", ".gotmpl", ".j2", ".jinja", ".jinja2", ".erb", ".hbs", ".mustache")
_KIND_LINE = re.compile(
    rb"^[ \t-]*[\"']?kind[\"']?:[ \t]*[\"']?(KafkaUser|KafkaPrincipal\w+|AccessControlEntry)\b", re.MULTILINE
)
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_SUFFIXES = (".yaml", ".yml", ".json", ".csv", ".txt", ".acls", ".tfstate", ".gz")
_POINTERS = {
    b"version https://git-lfs.github.com/spec/": "a pointer to Git LFS",
    b"\0GITCRYPT": "encrypted by git-crypt",
}
"""How files begin whose content is not there."""
_MARKS = (b"ACLs for ", b"KafkaPrincipal", b"KafkaUser", b"kafka_acl", b"principal")


def leave_out(file: SourceFile, context: ReadContext) -> None:
    """Count a file that no format claims: the resources in it, or else the file."""
    entries = _resources(file)
    if not entries or not all(each.kind for each in entries):
        context.ignore("other file")
        return
    for each in entries:
        _count(each, context)


def check_no_rules(file: SourceFile) -> None:
    """Refuse a file that holds rules and that no format claims.

    Raises:
        ConfigError: it is in UTF-16, as redirected output in Windows' shell; a template of resources; or resources
            of a kind that makes rules, of an unknown version; with its line.
        OSError: it cannot be read.

    """
    pointer = next((what for begin, what in _POINTERS.items() if file.content.startswith(begin)), None)
    if pointer is not None and ("." not in file.base_name or file.has_suffix(*_SUFFIXES)):
        raise file.error(1, f"{pointer}: replace the pointer by its content first")
    start = file.content[:4]
    is_wide = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    if is_wide and file.has_suffix(".txt", ".csv", ".acls"):
        raise file.error(1, "text in UTF-16: save it as UTF-8")
    if is_wide or b"\0" in start:
        narrow = file.content.replace(b"\0", b"")
        if any(mark in narrow for mark in _MARKS):
            raise file.error(1, "text in UTF-16 that may contain rules: save it as UTF-8")
    match = _KIND_LINE.search(file.content) if file.has_suffix(*_TEMPLATES) else None
    if match is not None:
        line = file.content.count(b"\n", 0, match.start(1)) + 1
        raise file.error(line, f"a {match[1].decode()} in a template: render it first, and give the result")
    if file.base_name in _KUSTOMIZATIONS and b"KafkaUser" in file.content:
        line = file.content.count(b"\n", 0, file.content.index(b"KafkaUser")) + 1
        raise file.error(line, "a patch of KafkaUsers: pipe the output of `kustomize build` (--acls -)")
    if file.has_suffix(".yaml", ".yml", ".json") and file.mentions(*_WORDS):
        for document in _documents(file):
            _check_no_rules(document)


def _check_no_rules(node: Node) -> None:
    """Refuse a resource that may make rules, at any depth."""
    if isinstance(node.value, tuple):
        for item in node.value:
            _check_no_rules(item)
    if not isinstance(node.value, dict):
        return
    kind, version = node.get("kind"), node.get("apiVersion")
    if kind is not None and _RULE_KIND.fullmatch(kind.raw) and (node.get("spec") or node.get("items")):
        text = "no apiVersion" if version is None else f"apiVersion {version.raw[:_LONGEST]}"
        if version is None or not _OF_CREDENTIALS.match(version.raw) or not kind.raw.startswith("KafkaUser"):
            raise node.error(
                f"{kind.raw[:_LONGEST]} of {text} may make rules, and is unknown: expected KafkaUser of "
                "kafka.strimzi.io/v1, KafkaPrincipalAuthorization of kafka.jikkou.io/v1, or AccessControlEntry of v1"
            )
    for member in node.value.values():
        _check_no_rules(member)


def leave_out_resource(resource: Resource, context: ReadContext) -> None:
    """Count a resource without rules, and settings of a Strimzi Kafka about access.

    Raises:
        ConfigError: it may make rules, and no format supports it.

    """
    _check_no_rules(resource.node)
    _count(resource, context)


def _count(resource: Resource, context: ReadContext) -> None:
    context.ignore(resource.kind[:_LONGEST] or "document without a kind")
    node = resource.node if resource.kind == "Kafka" else None
    for key in ("spec", "kafka", "authorization"):
        node = None if node is None else node.get(key)
    if node is None:
        return
    kind, users = node.get("type"), node.get("superUsers")
    if kind is not None and kind.raw != "simple":
        context.ignore(f"authorization of a Kafka by {kind.raw[:_LONGEST]}")
    for _ in users.value if users is not None and isinstance(users.value, tuple) else ():
        context.ignore("super user of a Kafka")


def _resources(file: SourceFile) -> list[Resource]:
    if not file.has_suffix(".yaml", ".yml", ".json") or b"kind" not in file.content:
        return []
    try:
        return list(resources(file.documents))
    except ConfigError:
        return []  # such as a template: no format claims it


def _documents(file: SourceFile) -> list[Node]:
    try:
        return file.documents
    except ConfigError:
        return []
