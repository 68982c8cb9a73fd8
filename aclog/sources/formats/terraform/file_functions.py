"""Functions that read files, and the table of all functions."""

import base64
import hashlib
import posixpath
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from attrs import evolve

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats.rule import FileTree
from aclog.sources.formats.terraform.collection_functions import COLLECTION_FUNCTIONS, Function
from aclog.sources.formats.terraform.functions import (
    ADDRESS_FUNCTIONS,
    ENCODING_FUNCTIONS,
    FORMAT_FUNCTIONS,
    NUMERIC_FUNCTIONS,
    REGEX_FUNCTIONS,
    SET_FUNCTIONS,
    STRING_FUNCTIONS,
    YAML_FUNCTIONS,
)
from aclog.sources.formats.terraform.values import (
    DYNAMIC,
    STRING,
    Unknown,
    Value,
    ValueFault,
    boolean,
    is_sensitive,
    set_value,
    string,
)

# Functions that read files of the tree, and functions on paths.


_LARGEST = 16 << 20


@frozen
class ModuleFiles:
    """Files as the functions of a root module name them: from the directory in which Terraform runs."""

    tree: FileTree
    root: str
    """The root module's directory in the tree."""

    def path(self, name: str) -> str:
        """Return the path in the tree. Raises ValueFault: it is not of the tree."""
        if name.startswith(("/", "~")):
            raise ValueFault("only paths within the repository are read: begin with path.module")
        return posixpath.normpath(posixpath.join(self.root, name))

    def content(self, name: str) -> bytes:
        """Return the content of a file. Raises ValueFault: no such file, or it cannot be read."""
        path = self.path(name)
        if not self.tree.is_file(path):
            raise ValueFault(f"there is no file {self.tree.display(path)}")
        try:
            content = self.tree.read(path)
        except (OSError, ConfigError) as error:
            raise ValueFault(f"cannot be read: {error}") from error
        if len(content) > _LARGEST:
            raise ValueFault(f"{self.tree.display(path)} is larger than {_LARGEST >> 20} MiB")
        return content

    def text(self, name: str) -> str:
        """Return the text of a file. Raises ValueFault: as content(), or it is not UTF-8."""
        try:
            return self.content(name).decode()
        except UnicodeDecodeError as error:
            raise ValueFault(f"{self.tree.display(self.path(name))} is not UTF-8") from error

    def matching(self, directory: str, pattern: str) -> list[str]:
        """Return the paths of the files under a directory that match a pattern, from the directory."""
        base, regex = self.path(directory), _pattern(pattern)
        return [path for path in self._under(base, "", 0) if regex.match(path)]

    def _under(self, directory: str, prefix: str, depth: int) -> list[str]:
        paths: list[str] = []
        if depth > 32:
            return paths
        for name in self.tree.entries(directory):
            path = posixpath.join(directory, name)
            if self.tree.is_file(path):
                paths.append(prefix + name)
            else:
                paths += self._under(path, f"{prefix}{name}/", depth + 1)
        return paths


def _pattern(glob: str) -> re.Pattern[str]:
    """Return the pattern of fileset(): `**` crosses directories, `{a,b}` is a choice."""
    text = []
    tokens = re.compile(r"\*\*/|\*\*|\*|\?|\[\^?[^\]]*\]|\{|\}|,|\\.|.", re.DOTALL)
    depth = 0
    for token in tokens.finditer(glob):
        word = token[0]
        depth += (word == "{") - (word == "}")
        simple = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")"}
        text.append(
            simple.get(word)
            or (word if word[0] == "[" else "|" if word == "," and depth else re.escape(word.removeprefix("\\")))
        )
    try:
        return re.compile("".join(text) + r"\Z")
    except re.error as error:
        raise ValueFault("not a pattern of file names") from error


def file_functions(files: ModuleFiles) -> dict[str, Function]:
    """Return the functions that read files of a module's tree; templatefile() needs an evaluator, and is elsewhere."""

    def _digest(name: str, *, as_base64: bool = False) -> Function:
        def _hash_of(path: Value) -> Value:
            digest = hashlib.new(name, files.content(path.text), usedforsecurity=False).digest()
            return string(base64.b64encode(digest).decode() if as_base64 else digest.hex())

        return Function(parameters=(STRING,), body=_hash_of)

    def _fileset(directory: Value, pattern: Value) -> Value:
        return set_value(map(string, files.matching(directory.text, pattern.text)), STRING)

    def _exists(path: Value) -> Value:
        return boolean(files.tree.is_file(files.path(path.text)))

    def _in_base64(path: Value) -> Value:
        return string(base64.b64encode(files.content(path.text)).decode())

    return {
        "file": Function(parameters=(STRING,), body=lambda path: string(files.text(path.text))),
        "filebase64": Function(parameters=(STRING,), body=_in_base64),
        "filebase64sha256": _digest("sha256", as_base64=True),
        "filebase64sha512": _digest("sha512", as_base64=True),
        "fileexists": Function(parameters=(STRING,), body=_exists),
        "filemd5": _digest("md5"),
        "fileset": Function(parameters=(STRING, STRING), body=_fileset),
        "filesha1": _digest("sha1"),
        "filesha256": _digest("sha256"),
        "filesha512": _digest("sha512"),
    }


def _depends_on_machine(name: str) -> Callable[..., Value]:
    return lambda *_: Value(STRING, Unknown(f"{name}(), which depends on where Terraform runs"))


def _dirname(path: Value) -> Value:
    cut = path.text.rpartition("/")[0] if "/" in path.text else ""
    return string(posixpath.normpath(cut or ("/" if path.text.startswith("/") else ".")))


def _basename(path: Value) -> Value:
    text = path.text.rstrip("/")
    return string(posixpath.basename(text) if text else "/" if path.text else ".")


def _pathexpand(path: Value) -> Value:
    return _depends_on_machine("pathexpand")() if path.text.startswith("~") else path


PATH_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "abspath": Function(parameters=(STRING,), body=_depends_on_machine("abspath")),
        "basename": Function(parameters=(STRING,), body=_basename),
        "dirname": Function(parameters=(STRING,), body=_dirname),
        "pathexpand": Function(parameters=(STRING,), body=_pathexpand),
    }
)


# All functions but those on files, by name.


_AT_APPLY = ("bcrypt", "plantimestamp", "timestamp", "uuid")
"""Their results differ from run to run."""


def _at_apply(name: str) -> Function:
    return Function(rest=DYNAMIC, body=lambda *_: Value(STRING, Unknown(f"{name}(), which differs from run to run")))


_SENSITIVITY = {
    "sensitive": Function(
        parameters=(DYNAMIC,), body=lambda value: evolve(value, sensitive=True), nulls=True, unknowns=True
    ),
    "nonsensitive": Function(parameters=(DYNAMIC,), body=lambda value: value, nulls=True, unknowns=True),
    "issensitive": Function(
        parameters=(DYNAMIC,), body=lambda value: boolean(is_sensitive(value)), nulls=True, unknowns=True
    ),
}
"""A sensitive value stays hidden in messages, even after nonsensitive()."""

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        **ADDRESS_FUNCTIONS,
        **COLLECTION_FUNCTIONS,
        **ENCODING_FUNCTIONS,
        **FORMAT_FUNCTIONS,
        **NUMERIC_FUNCTIONS,
        **PATH_FUNCTIONS,
        **REGEX_FUNCTIONS,
        **SET_FUNCTIONS,
        **STRING_FUNCTIONS,
        **YAML_FUNCTIONS,
        **_SENSITIVITY,
        **{name: _at_apply(name) for name in _AT_APPLY},
    }
)
