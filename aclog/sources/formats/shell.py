"""Commands of kafka-acls.sh in shell scripts, and the ACLs that they add; read on request only."""

import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType

from attrs import field

from aclog.authorizer.acl import FileOrigin, StandardAcl, find_name
from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.control import refusal
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.rule import LocatedRule, ReadContext, SourceFile, concrete
from aclog.sources.formats.unread import UnreadKind

# Words of a script: what a POSIX shell makes of quotes and backslashes, without expansions.


@frozen
class Word:
    """A word of a command, or an operator between commands."""

    text: str
    line: int
    is_open: bool = False
    """Whether the shell would expand it: a variable, a command, a glob."""
    is_operator: bool = False


_OPERATORS = ";&|()<>"
_EXPANSIONS = "$`"
_GLOBS = "*?["


@define
class _Scanner:
    text: str
    at: int = 0
    line: int = 1
    bodies: list[str] = field(factory=list)
    """The words that end the here-documents of this line."""

    def words(self) -> Iterator[Word]:
        """Yield the words; a line end is the operator `;`, and a here-document a word before it."""
        is_marker = False
        while self.at < len(self.text):
            each = self.text[self.at]
            if self.text.startswith("\\\n", self.at):
                self._skip(2)
            elif each == "\n":
                line = self.line
                self._skip(1)
                yield from [self._body(marker) for marker in self.bodies]
                self.bodies.clear()
                yield Word(";", line, is_operator=True)
            elif each.isspace():
                self._skip(1)
            elif each == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif each in _OPERATORS:
                size = 1 + (self.text[self.at : self.at + 2] in ("&&", "||", ";;", "<<", ">>"))
                size += self.text.startswith("<<<", self.at)
                text = self.text[self.at : self.at + size]
                yield Word(text, self.line, is_operator=True)
                self._skip(size)
                is_marker = text == "<<"
                if is_marker and self.text.startswith("-", self.at):
                    self._skip(1)
            else:
                word = self._word()
                if is_marker:
                    self.bodies.append(word.text)
                is_marker = False
                yield word

    def _body(self, marker: str) -> Word:
        """Return the here-document that begins here, up to the line that ends it, as one word that is not judged."""
        start, line = self.at, self.line
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end + 1
            is_end = self.text[self.at : end].strip("\t\n") == marker
            self._skip(end - self.at)
            if is_end:
                break
        return Word(self.text[start : self.at], line, is_open=True)

    def _skip(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count

    def _word(self) -> Word:
        parts, line, is_open, has_brace = list[str](), self.line, False, False
        while self.at < len(self.text):
            each = self.text[self.at]
            if each.isspace() or each in _OPERATORS:
                break
            if each == "'":
                parts.append(self._quoted())
            elif each == '"':
                text, expands = self._double_quoted()
                parts.append(text)
                is_open = is_open or expands
            elif each == "\\":
                parts.append(self.text[self.at + 1 : self.at + 2].replace("\n", ""))
                self._skip(2)
            else:
                is_open = is_open or each in _EXPANSIONS or each in _GLOBS or (each == "~" and not parts)
                has_brace = has_brace or each == "{"
                parts.append(each)
                self._skip(1)
        text = "".join(parts)
        return Word(text, line, is_open or (has_brace and text != "{"))

    def _quoted(self) -> str:
        end = self.text.find("'", self.at + 1)
        end = len(self.text) if end < 0 else end
        text = self.text[self.at + 1 : end]
        self._skip(end + 1 - self.at)
        return text

    def _double_quoted(self) -> tuple[str, bool]:
        """Return the text between double quotes, and whether the shell would expand it."""
        parts, is_open = list[str](), False
        self._skip(1)
        while self.at < len(self.text) and self.text[self.at] != '"':
            each = self.text[self.at]
            if each == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                parts.append(self.text[self.at + 1].replace("\n", ""))
                self._skip(2)
                continue
            is_open = is_open or each in _EXPANSIONS
            parts.append(each)
            self._skip(1)
        self._skip(1)
        return "".join(parts), is_open


# Simple commands, and whether the script may leave them out.


@frozen
class Command:
    """A simple command."""

    words: tuple[Word, ...]
    is_conditional: bool
    """Whether it is in a loop, a condition, a function or a subshell, or follows `||`, the end of the script, or `&&`
    after a command that may fail."""


_OPEN = frozenset({"if", "while", "until", "for", "case", "select", "{"})
_CLOSE = frozenset({"fi", "done", "esac", "}"})
_BEFORE = frozenset({"then", "do", "else", "elif", "!", "time", *_OPEN, *_CLOSE})


_REDIRECTIONS = ("<", ">", "<<", ">>", "<<<")
_ENDING = ("exit", "return", "exec")
"""Commands behind which a script does not continue."""
_SUCCEEDING = ("cd", "set", "export", "echo", "kafka-acls", "kafka-acls.sh")
"""Commands before `&&` that are taken to succeed."""


def _only_redirects(words: Sequence[Word]) -> bool:
    """Return whether a command is an `exec` that changes where output goes, and does not end the script."""
    return words[0].text == "exec" and len(words) > 1 and (words[1].is_operator or words[1].text.isdecimal())


def commands(text: str) -> Iterator[Command]:
    """Yield the simple commands of a script."""
    depth, parentheses, pending, after = 0, 0, list[Word](), ""
    has_ended, may_stop = False, False  # may_stop: a command before `&&` may fail, or may not run
    for word in (*_Scanner(text).words(), Word(";", 0, is_operator=True)):
        if not word.is_operator:
            if not pending and word.text in _BEFORE and not word.is_open:
                depth = max(0, depth + (word.text in _OPEN) - (word.text in _CLOSE))
                continue
            pending.append(word)
            continue
        if word.text in _REDIRECTIONS:
            pending.append(word)
            continue
        if pending:
            depends = bool(depth or parentheses) or after in ("||", "|") or (after == "&&" and may_stop)
            yield Command(tuple(pending), depends or has_ended)
            first = pending[0].text.rpartition("/")[2]
            may_stop = depends or first not in _SUCCEEDING
            has_ended = has_ended or (first in _ENDING and not depends and not _only_redirects(pending))
            pending = []
        parentheses = max(0, parentheses + (word.text == "(") - (word.text == ")"))  # a pattern of `case` ends with one
        after = word.text


# The ACLs of a command (kafka.admin.AclCommand).


_NAMES = ("kafka-acls", "kafka-acls.sh", "kafka-acls.bat")
_MANY = MappingProxyType(
    {
        "--topic": ResourceType.TOPIC,
        "--group": ResourceType.GROUP,
        "--transactional-id": ResourceType.TRANSACTIONAL_ID,
        "--delegation-token": ResourceType.DELEGATION_TOKEN,
        "--user-principal": ResourceType.USER,
    }
)
_WITH_VALUE = frozenset(
    {
        *_MANY,
        *("--allow-principal", "--deny-principal", "--allow-host", "--deny-host", "--operation", "--principal"),
        *("--resource-pattern-type", "--bootstrap-server", "--bootstrap-controller", "--command-config"),
        *("--authorizer", "--authorizer-properties", "--zk-tls-config-file"),
    }
)
_ALONE = frozenset(
    {
        *("--add", "--remove", "--list", "--cluster", "--producer", "--consumer", "--idempotent", "--force", "--help"),
        *("--version", "--zk-tls-config"),
    }
)
_PATTERNS = MappingProxyType({"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED})
_PRODUCER = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_TRANSACTIONS = (AclOperation.WRITE, AclOperation.DESCRIBE)
_CONSUMER = (AclOperation.READ, AclOperation.DESCRIBE)


@define
class _Flags:
    """The flags of one command."""

    command: Word
    values: dict[str, list[str]] = field(factory=dict)
    alone: set[str] = field(factory=set)

    def of(self, name: str) -> list[str]:
        return self.values.get(name, [])

    def error(self, file: SourceFile, what: str) -> ConfigError:
        return file.error(self.command.line, f"kafka-acls: {what}")


def rules_of(command: Command, file: SourceFile, context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules that a command adds; one that may not do so as it is written is reported as unread.

    Raises:
        ConfigError: flags that the tool refuses, with file and line.

    """
    at = _start(command.words)
    if at is None:
        word = next((word for word in command.words if _may_change(word)), None)
        if word is None and command.words[0].is_open and any(word.text == "--add" for word in command.words):
            word = command.words[0]
        if word is not None:
            why = "text of kafka-acls in another command, which may run it"
            context.not_read(UnreadKind.PROGRAM, FileOrigin(file=file.name, line=word.line), why, name="kafka-acls")
        return
    arguments, place = command.words[at + 1 :], FileOrigin(file=file.name, line=command.words[at].line)
    if any(word.text in ("--list", "--help", "--version") for word in arguments):
        return
    if command.is_conditional or any(word.is_open for word in _deciding(arguments)):
        why = "a command of kafka-acls that depends on a condition, a loop, a variable or a glob without quotes"
        context.not_read(UnreadKind.PROGRAM, place, why, name="kafka-acls")
        return
    if any(word.text == "--remove" for word in arguments):
        why = "a command of kafka-acls that removes: whether another one adds the same is not judged"
        context.not_read(UnreadKind.PROGRAM, place, why, name="kafka-acls")
        return
    flags = _parsed(_Flags(command.words[at]), arguments, file)
    if "--add" not in flags.alone:
        raise flags.error(file, "expected --add, --remove or --list")
    for acl in _acls(flags, file):
        refused = refusal(acl)
        if refused is not None:
            raise flags.error(file, f"no Kafka accepts this rule: {refused}")
        yield LocatedRule(acl=acl, origin=place)


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PREFIXES = ("sudo", "nohup", "command", "env")
_CONTAINERS = ("docker", "podman", "docker-compose", "kubectl", "oc")
_WITH_VALUE_OF_EXEC = frozenset(
    {"-u", "--user", "-e", "--env", "-w", "--workdir", "-n", "--namespace", "-c", "--container", "--context"}
)


def _start(words: Sequence[Word]) -> int | None:
    """Return the position of kafka-acls in a command that runs it: the first word, or behind a prefix; else None."""
    at = 0
    while at < len(words):
        text = words[at].text
        if words[at].is_operator:
            return None
        if text.rpartition("/")[2] in _NAMES:
            return at
        if text in _CONTAINERS:
            behind = _behind_exec(words, at + 1)
            return behind if behind < len(words) and words[behind].text.rpartition("/")[2] in _NAMES else None
        if not _ASSIGNMENT.match(text) and text not in _PREFIXES:
            return None
        at += 1
    return None


def _behind_exec(words: Sequence[Word], at: int) -> int:
    """Return the position behind `exec`, its flags and the name of a container; the number of words without these."""
    names, has_exec = 0, False
    while at < len(words):
        text = words[at].text
        if text in _WITH_VALUE_OF_EXEC:
            at += 1
        elif text == "exec" and not has_exec:
            has_exec = True
        elif has_exec and names and text != "--" and not text.startswith("-"):
            return at
        elif has_exec and not text.startswith("-"):
            names += 1
        elif not has_exec and text != "compose" and not text.startswith("-"):
            return len(words)
        at += 1
    return len(words)


def _may_change(word: Word) -> bool:
    """Return whether a word of another command may be, or contain, a command that changes ACLs."""
    return "kafka-acls" in word.text or word.text.startswith(("--allow-principal", "--deny-principal"))


def _deciding(arguments: Sequence[Word]) -> Iterator[Word]:
    """Yield the words that decide on the rules: not the address of the cluster, nor where output goes."""
    aside = False
    for word in arguments:
        if not aside:
            yield word
        aside = word.text in ("--bootstrap-server", "--bootstrap-controller", "--command-config", ">", ">>", "<")


def _parsed(flags: _Flags, arguments: Sequence[Word], file: SourceFile) -> _Flags:
    words = iter(arguments)
    for word in words:
        name, equals, value = word.text.partition("=")
        if word.text in _REDIRECTIONS:
            next(words, None)
        elif name in _WITH_VALUE:
            following = value if equals else next(words, Word("", 0)).text
            flags.values.setdefault(name, []).append(following)
        elif word.text in _ALONE:
            flags.alone.add(word.text)
        elif not word.text.isdecimal():  # of a redirection, as in 2>&1
            raise flags.error(file, f"{word.text[:60]!r} is no flag that aclog knows")
    return flags


def _acls(flags: _Flags, file: SourceFile) -> Iterator[StandardAcl]:
    who = [
        *_entries(flags, "allow", AclPermissionType.ALLOW),
        *_entries(flags, "deny", AclPermissionType.DENY),
    ]
    if not who:
        raise flags.error(file, "expected --allow-principal or --deny-principal")
    patterns = flags.of("--resource-pattern-type") or ["literal"]
    if patterns[-1].lower() not in _PATTERNS:
        raise flags.error(file, f"--resource-pattern-type {patterns[-1][:40]!r}: expected literal or prefixed")
    pattern = _PATTERNS[patterns[-1].lower()]
    statements = list(dict.fromkeys(_stated(flags, file)))
    if not statements:
        raise flags.error(file, "expected a resource, such as --topic")
    for resource_type, name, operation in statements:
        for principal, host, permission in who:
            yield StandardAcl(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=PatternType.LITERAL if resource_type is ResourceType.CLUSTER else pattern,
                principal=principal,
                host=host,
                operation=operation,
                permission_type=permission,
            )


def _entries(flags: _Flags, word: str, permission: AclPermissionType) -> Iterator[tuple[str, str, AclPermissionType]]:
    for principal in flags.of(f"--{word}-principal"):
        for host in flags.of(f"--{word}-host") or [WILDCARD]:
            yield principal, host, permission


def _stated(flags: _Flags, file: SourceFile) -> Iterator[tuple[ResourceType, str, AclOperation]]:
    """Yield resources and operations: those of --producer and --consumer, or of --operation."""
    if not flags.alone & {"--producer", "--consumer"}:
        operations = [_operation(text, flags, file) for text in flags.of("--operation")] or [AclOperation.ALL]
        for resource_type, name in _resources(flags):
            yield from ((resource_type, name, operation) for operation in operations)
        return
    if flags.of("--operation"):
        raise flags.error(file, "--operation together with --producer or --consumer")
    if "--producer" in flags.alone:
        yield from _each(ResourceType.TOPIC, flags.of("--topic"), _PRODUCER)
        yield from _each(ResourceType.TRANSACTIONAL_ID, flags.of("--transactional-id"), _TRANSACTIONS)
        if "--idempotent" in flags.alone:
            yield ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.IDEMPOTENT_WRITE
    if "--consumer" in flags.alone:
        yield from _each(ResourceType.TOPIC, flags.of("--topic"), _CONSUMER)
        yield from _each(ResourceType.GROUP, flags.of("--group"), (AclOperation.READ,))


def _each(
    resource_type: ResourceType, names: Sequence[str], operations: Sequence[AclOperation]
) -> Iterator[tuple[ResourceType, str, AclOperation]]:
    return ((resource_type, name, operation) for name in names for operation in operations)


def _resources(flags: _Flags) -> Iterator[tuple[ResourceType, str]]:
    for flag, resource_type in _MANY.items():
        yield from ((resource_type, name) for name in flags.of(flag))
    if "--cluster" in flags.alone:
        yield ResourceType.CLUSTER, CLUSTER_NAME


def _operation(text: str, flags: _Flags, file: SourceFile) -> AclOperation:
    operation = find_name(concrete(AclOperation), text)
    if operation is None:
        raise flags.error(file, f"--operation {text[:40]!r} is unknown")
    return operation


# Shell scripts as a format.


_SUFFIXES = (".sh", ".bash", ".zsh", ".ksh")


_MARKS = (b"kafka-acls", b"--allow-principal", b"--deny-principal")


def claims(file: SourceFile) -> bool:
    """Return whether a file is a shell script with a command of kafka-acls. Raises OSError: it cannot be read."""
    is_script = file.has_suffix(*_SUFFIXES) or file.content[:64].startswith(b"#!")
    return is_script and any(mark in file.content for mark in _MARKS)


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:
    """Yield the rules that the scripts add.

    Raises:
        ConfigError: flags that kafka-acls.sh refuses, with file and line; OSError: a file cannot be read.

    """
    for file in files:
        for command in commands(file.text):
            yield from rules_of(command, file, context)
