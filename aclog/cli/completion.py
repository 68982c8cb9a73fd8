"""Completion of command lines for a shell."""

import json
import os
import re
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from enum import StrEnum
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import click
from click.shell_completion import CompletionItem, _resolve_context, _resolve_incomplete

from aclog.authorizer.codes import WILDCARD, ResourceType
from aclog.authorizer.settings import name_text
from aclog.cli.flags.common import group_from
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Argument, FilePath, Group, complete_contexts
from aclog.metalog.errors import printable
from aclog.metalog.values import frozen
from aclog.sources.choice import SourceSelection, choose_source
from aclog.terminal.output import emit

# `aclog completion`: the script that a shell loads.


app = Group()


class Shell(StrEnum):
    """The shells that have a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command("completion")
def completion(shell: Annotated[Shell, Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the script that makes a shell complete commands, flags, and the names in a source.

    Topics, groups, principals and similar names are those of the source on the
    command line, and are cached for one minute. A source that does not answer
    within a second completes nothing, and completion never prompts.

    [bold]Examples[/]

      echo 'source <(aclog completion bash)' >> ~/.bashrc
      echo 'source <(aclog completion zsh)' >> ~/.zshrc     # after compinit
      aclog completion fish > ~/.config/fish/completions/aclog.fish
    """
    emit(files("aclog.cli").joinpath(f"aclog.{shell}").read_text(encoding="utf-8").rstrip("\n"))


# A command line as bash holds it while it is typed: its words without quotes, and the text that replaces the last one.
#
# Bash gives a completion function the line and the part of the last word after its last break character (`:` and `=`
# are two of them): what is completed must begin there.


_SPECIAL = frozenset(" \t\\'\"`$&|;()<>*?[]#~!{}^%")
"""Characters before which an unquoted name needs a backslash. `%` and `^` mean something only elsewhere; it is safe."""
_SPECIAL_IN_DOUBLE = frozenset('\\"$`')


@frozen(kw_only=True)
class TypedLine:
    """The words of a line; the last one is being typed, and may be empty."""

    words: tuple[str, ...]
    raw: str
    """The last word as it was typed, with its quotes."""
    quote: str
    """The quote that is open in it, or none."""

    @property
    def word(self) -> str:
        """The last word without its quotes."""
        return self.words[-1]


def parse_line(line: str) -> TypedLine:
    """Return the words of a line, as far as quotes and backslashes make them; nothing in it is expanded."""
    words: list[str] = []
    start, quote, word, begun = 0, "", [], False
    position = 0
    while position < len(line):
        character = line[position]
        if quote:
            if character == quote:
                quote = ""
            elif character == "\\" and quote == '"' and line[position + 1 : position + 2] in {*'\\"$`'}:
                position += 1
                word.append(line[position])
            else:
                word.append(character)
        elif character in " \t\n":
            if begun:
                words.append("".join(word))
            word, begun, start = [], False, position + 1
        else:
            begun = True
            if character in "'\"":
                quote = character
            elif character == "\\":
                position += 1
                word.append(line[position : position + 1])
            else:
                word.append(character)
        position += 1
    return TypedLine(words=(*words, "".join(word)), raw=line[start:], quote=quote)


def to_type(value: str, line: TypedLine, tail: str) -> str | None:
    """Return what bash puts in the place of `tail`, the end of the last word, so that the word becomes `value`.

    None if that cannot be typed in the open quote.
    """
    head = parse_line(line.raw[: len(line.raw) - len(tail)] if line.raw.endswith(tail) else "")
    rest = value[len(head.word) :]
    if line.quote == "'":
        return None if "'" in rest else rest
    if line.quote == '"':
        if "!" in rest:  # of the history: a backslash before it would stay
            return None
        return "".join("\\" * (each in _SPECIAL_IN_DOUBLE) + each for each in rest)
    return "".join("\\" * (each in _SPECIAL) + each for each in rest)


# The kinds of names that flags take.


class NameKind(StrEnum):
    """What a name names."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    DELEGATION_TOKEN = "delegation-token"  # noqa: S105 - a kind
    PRINCIPAL = "principal"


# Work in a child process, for which a caller waits for a while and then no longer.


_LONGEST = 10
"""Seconds after which a child ends, even while it waits."""


def words_in_child(work: Callable[[], Sequence[str]], *, wait_seconds: float) -> Sequence[str]:
    """Return the words that the work returns in a forked process; none if that takes longer. See `in_child`."""
    with tempfile.TemporaryFile() as answer:

        def write() -> None:
            """Leave the words where this process reads them."""
            answer.write(json.dumps(work()).encode())
            answer.flush()

        if not in_child(write, wait_seconds=wait_seconds):
            return ()
        answer.seek(0)
        words: list[str] = json.loads(answer.read() or b"[]")
        return words


def in_child(work: Callable[[], None], *, wait_seconds: float) -> bool:
    """Do the work in a forked process, until it is done or the time is over; it then continues by itself.

    Returns whether it has ended. Its exceptions are not reported.

    The child has no terminal, so that nothing in it can prompt for a password, and none of this process' output, whose
    reader waits until every holder has closed it. Without `fork` (Windows) nothing is done.
    """
    if not hasattr(os, "fork"):
        return False
    child = os.fork()
    if child == 0:
        _become_silent()
        try:
            work()
        finally:
            os._exit(0)
    deadline = time.monotonic() + wait_seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _become_silent() -> None:
    os.setsid()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_LONGEST)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.environ.update(GIT_TERMINAL_PROMPT="0", GIT_SSH_COMMAND="ssh -oBatchMode=yes", SSH_ASKPASS_REQUIRE="never")


# The names of a source, kept for a minute under the user's cache directory.
#
# One SQLite file per source, replaced as a whole, readable by its owner only: names of topics and principals are
# confidential.


_FRESH_SECONDS = 60
_KEPT_SECONDS = 86_400
"""What is older is removed when something is stored."""


@frozen(kw_only=True)
class NameCache:
    """The file of one source."""

    path: Path

    @classmethod
    def of(cls, source: object) -> "NameCache":
        """Return the cache of a source, whose `repr` distinguishes it from others."""
        key = sha256(f"{Path.cwd()}\n{source!r}".encode(errors="surrogatepass")).hexdigest()[:32]
        return cls(path=cache_directory() / f"{key}.sqlite")

    def is_fresh(self) -> bool:
        """Return whether it was stored within the last minute."""
        try:
            return 0 <= time.time() - self.path.stat().st_mtime < _FRESH_SECONDS
        except OSError:
            return False

    def names(self, kind: str, start: str, *, most: int) -> Iterator[str]:
        """Yield the names of a kind that begin so, in the order of their UTF-8; none if nothing is stored."""
        if not self.path.exists():
            return
        query = "SELECT name FROM names WHERE kind = ? AND name >= ? ORDER BY name LIMIT ?"
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as database:
            for (name,) in database.execute(query, (kind, start, most)):
                if not name.startswith(start):
                    return
                yield name

    def store(self, names: Mapping[str, Iterable[str]]) -> None:
        """Replace what is stored. Raises OSError, sqlite3.Error: it cannot be written."""
        directory = self.path.parent
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_old(directory)
        handle, temporary = tempfile.mkstemp(dir=directory, suffix=".new")  # 0600
        os.close(handle)
        with closing(sqlite3.connect(temporary)) as database:
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("CREATE TABLE names (kind TEXT, name TEXT, PRIMARY KEY (kind, name)) WITHOUT ROWID")
            for kind, values in names.items():
                rows = ((kind, name) for name in sorted(set(values)))
                database.executemany("INSERT INTO names VALUES (?, ?)", rows)
            database.commit()
        Path(temporary).replace(self.path)


def cache_directory() -> Path:
    """Return where completions are kept: below $XDG_CACHE_HOME, or ~/.cache."""
    path = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(path) if Path(path).is_absolute() else Path.home() / ".cache"
    return base / "aclog" / "completion"


def _remove_old(directory: Path) -> None:
    for path in directory.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                path.unlink()


# The names that flags take: topics, groups, principals, ... of the source on the command line.


SECONDS = 1.0
"""How long a user waits after Tab for a source that is not in the cache."""


_FLAGS = {
    **dict.fromkeys(("--topic", "--topic-prefix", "--input-topic", "--output-topic"), NameKind.TOPIC),
    **dict.fromkeys(("--group", "--group-prefix"), NameKind.GROUP),
    **dict.fromkeys(("--transactional-id", "--transactional-id-prefix"), NameKind.TRANSACTIONAL_ID),
    "--delegation-token": NameKind.DELEGATION_TOKEN,
    **dict.fromkeys(
        (
            "--principal",
            "--from-principal",
            "--to-principal",
            "--allow-principal",
            "--deny-principal",
            "--except-principal",
            "--from-principal",
            "--to-principal",
            "--user-principal",
            "--owner-principal",
            "--renewer-principal",
            "--super-users",
            "--to-super-users",
            "--grantprincipal",
            "--revokeprincipal",
        ),
        NameKind.PRINCIPAL,
    ),
}


_NOTATED = frozenset(
    (
        "--topic",
        "--group",
        "--transactional-id",
        "--delegation-token",
        "--user-principal",
        "--input-topic",
        "--output-topic",
    )
)
"""Options whose values are names as questions write them (aclog.authorizer.settings), except in `acls`."""


def kind_of(parameter: Any) -> NameKind | None:
    """Return what the value of an option names; None if it is not one of these kinds."""
    return next((_FLAGS[name] for name in parameter.opts if name in _FLAGS), None)


def names_like(context: Any, parameter: Any, typed: str, *, most: int) -> Iterator[str]:
    """Yield the names of the source that begin with what was typed, at most so many; none if it cannot be read in time.

    What was read is cached for a minute. A source that takes longer than a second is read on in the background,
    so that the next Tab finds it.
    """
    kind, source = kind_of(parameter), _source(context.params)
    if kind is None or source is None:
        return
    cache = NameCache.of(source)
    if not cache.is_fresh():
        in_child(lambda: _collect(cache, source), wait_seconds=SECONDS)
    before, separator, last = typed.rpartition(_separator(parameter))
    names: Iterable[str] = cache.names(kind, last, most=most)
    if not _NOTATED.isdisjoint(parameter.opts) and "acls" not in context.command_path.split():
        names = filter(None, (_as_asked(name, kind) for name in names))
    yield from (before + separator + name for name in names)


def _as_asked(name: str, kind: NameKind) -> str | None:
    """Return a name as a question writes it; None if no question can. The `*` of a rule is every name."""
    if name == WILDCARD:
        return name
    return None if kind is NameKind.TOPIC and WILDCARD in name else name_text(name)


def _separator(parameter: Any) -> str:
    """Return what stands between the values of an option that takes several; nothing that is ever typed otherwise."""
    if parameter.metavar == "USERS":
        return ";"
    return "," if (parameter.metavar or "").endswith(",...") else "\0"


@frozen(kw_only=True)
class _Source:
    """What the options before the word name."""

    flags: SourceFlags
    stores: tuple[str, ...]
    """KEY=VALUE properties of a ZooKeeper."""


def _source(values: Mapping[str, Any]) -> _Source | None:
    """Return the source that the options before the word name; None if they name none, or stdin."""
    flags = group_from(SourceFlags, values)
    stores = tuple(values.get("authorizer_properties") or ())
    if values.get("acls") == "-" or not (flags.is_given() or stores):  # stdin is the command's to read
        return None
    return _Source(flags=flags, stores=stores)


def _collect(cache: NameCache, source: _Source) -> None:
    from attrs import evolve

    cache.store(collect(evolve(source.flags.selection(), authorizer_properties=source.stores)))


# Candidates for a word on a command line of aclog.


_MOST = 1000
_MARKUP = re.compile(r"(?<!\\)\[/?[a-z ]*\]")
_FILES = re.compile(r"^(FILE|PATH|CONFIG|PROPERTIES|SOURCE|SECOND)\b")


class Kind(StrEnum):
    """What a shell does with the candidates."""

    WORDS = "words"
    JOINED = "joined"
    """No space after them: more is to be typed."""
    FILES = "files"
    """None from here: the shell completes files."""
    DIRECTORIES = "directories"


@frozen(kw_only=True)
class Candidate:
    """A word, and what it means."""

    value: str
    help: str = ""


@frozen(kw_only=True)
class Candidates:
    """All candidates."""

    kind: Kind = Kind.WORDS
    items: Sequence[Candidate] = ()


def candidates(command: Any, words: Sequence[str], word: str) -> Candidates:
    """Return what `word` may become, after the words before it; `command` is `aclog`, which is not among them."""
    before = list(words)
    context = _resolve_context(command, {}, "aclog", list(words))
    place, typed = _resolve_incomplete(context, before, word)
    if words and words[-1] in {"-c", "--context"}:  # after a command too, whose own option it is not
        return Candidates(items=_displayable([Candidate(value=name) for name in complete_contexts(word)]))
    if isinstance(place, click.Parameter):
        return _values(context, place, typed, joined=word[: len(word) - len(typed)])
    items = [_described(item, context) for item in place.shell_complete(context, typed)]
    return Candidates(items=_displayable(items))


def _values(context: Any, place: click.Parameter, typed: str, *, joined: str) -> Candidates:
    """Return the values of an option or argument; `joined` is `--flag=` if it is in the same word."""
    items = [Candidate(value=item.value, help=item.help or "") for item in place.shell_complete(context, typed)]
    if kind_of(place) is not None:
        items += [Candidate(value=name) for name in names_like(context, place, typed, most=_MOST)]
    elif not items:
        return Candidates(kind=_path_kind(place))
    matches = _displayable([Candidate(value=joined + item.value, help=item.help) for item in items])
    ends = {item.value[-1:] for item in matches}
    return Candidates(kind=Kind.JOINED if ends and ends <= {"/", ":", ","} else Kind.WORDS, items=matches)


def _path_kind(place: click.Parameter) -> Kind:
    metavar = place.metavar or ""
    if re.match(r"^(\w+=)?DIR\b", metavar):
        return Kind.DIRECTORIES
    return Kind.FILES if isinstance(place.type, FilePath) or _FILES.match(metavar) else Kind.WORDS


def _described(item: CompletionItem, context: Any) -> Candidate:
    """Return a flag or a command with the first sentence of its help."""
    command = getattr(context.command, "commands", {}).get(item.value)
    text = (getattr(command, "help", None) or item.help or "").split("\n\n")[0]
    plain = _MARKUP.sub("", text).replace("\\[", "[")
    return Candidate(value=item.value, help=" ".join(plain.split()).split(". ")[0].rstrip(".:"))


def _displayable(items: Sequence[Candidate]) -> Sequence[Candidate]:
    """Leave out what would steer a terminal, or could not stand on one line."""
    return [item for item in items if item.value and printable(item.value) == item.value][:_MOST]


# The answer to a shell that completes: a line with what to do with the others, then one line per candidate.
#
# Each is the word, and after a tab what it means (not for bash, which shows words alone). Nothing else is ever
# printed, and no error: it would appear within what the user types.


def complete(shell: str, arguments: Sequence[str], app: click.Command) -> int:
    """Print what completes a command line, and return 0.

    zsh and fish pass the words, the one that is completed last; bash passes the line up to the cursor, and the part of
    it that is replaced.
    """
    try:
        lines = list(_bash(app, *arguments) if shell == "bash" else _words(app, arguments))
    except Exception:  # noqa: BLE001 - no error is printed into the prompt of the user's shell
        return 0
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _words(app: click.Command, arguments: Sequence[str]) -> Iterator[str]:
    *before, word = arguments or [""]
    answer = candidates(app, _expanded(before), word)
    yield answer.kind
    yield from (f"{item.value}\t{item.help}" if item.help else item.value for item in answer.items)


def _bash(app: click.Command, line: str, tail: str) -> Iterator[str]:
    typed = parse_line(line)
    answer = candidates(app, _expanded(typed.words[1:-1]), typed.word)
    yield answer.kind
    yield from filter(None, (to_type(item.value, typed, tail) for item in answer.items))


def _expanded(words: Sequence[str]) -> list[str]:
    """Return words with `~` and exported variables as the shell will expand them: paths of sources have them."""
    return [os.path.expanduser(os.path.expandvars(word)) for word in words]  # noqa: PTH111 - a word may be no path


# Reads the names of a source.


_KINDS = {
    ResourceType.TOPIC: NameKind.TOPIC,
    ResourceType.GROUP: NameKind.GROUP,
    ResourceType.TRANSACTIONAL_ID: NameKind.TRANSACTIONAL_ID,
    ResourceType.DELEGATION_TOKEN: NameKind.DELEGATION_TOKEN,
    ResourceType.USER: NameKind.PRINCIPAL,
}


def collect(selection: SourceSelection) -> Mapping[str, set[str]]:
    """Return the names in a state by their kind: those of its rules, its users, and the topics that exist.

    Raises:
        MetadataError, OSError: the source cannot be read.

    """
    choice = choose_source(selection, lambda _: None)
    image = choice.image()
    names: dict[str, set[str]] = {kind: set() for kind in NameKind}
    for pattern in image.acls.resource_patterns():
        if (kind := _KINDS.get(ResourceType(pattern.resource_type))) is not None:
            names[kind].add(pattern.name)
    names[NameKind.TOPIC].update(image.opaque.topic_names(), choice.topic_names())
    names[NameKind.PRINCIPAL].update(image.acls.principals(), (f"User:{each.user}" for each in image.scram.describe()))
    for token in image.tokens.records():
        names[NameKind.DELEGATION_TOKEN].add(token.token_id)
        names[NameKind.PRINCIPAL].add(token.owner)
    return names
