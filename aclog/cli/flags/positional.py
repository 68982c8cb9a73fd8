"""Sources by their place on a command line: `aclog lint DIR`, `aclog diff A B`, `aclog console LOG`."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from aclog.metalog.errors import ConfigError
from aclog.sources.named_source import SourceWord, recognise, role_flag

_SECOND = (
    "--to-log", "--to-snapshot", "--to-acls", "--to-ref", "--to-bootstrap-controller", "--to-bootstrap-server",
    "--to-context", "--change", "--add", "--remove",
)  # fmt: skip
"""Flags that name a second state."""


class Flags(Protocol):
    """The flags of a command line, to which values are added."""

    def is_given(self, options: tuple[str, ...]) -> bool:
        """Return whether the command line names one of these."""
        ...

    def has(self, option: str) -> bool:
        """Return whether the command has this one."""
        ...

    def put(self, option: str, value: Any) -> bool:
        """Give one a value."""
        ...


def take_first(word: str, flags: Flags, named: Iterable[str], values: Mapping[str, Any], *, probe: bool) -> str | None:
    """Put the source that a word names under the flag of what it is; return its name instead if it is a context.

    `named`: what names a source on the command line besides the word: flags, or `-c NAME`. `values`: those of all
    parameters. Without `probe` no server is contacted, and servers are taken for brokers.

    Raises:
        ConfigError: the word is no source, or could be several, or is beside a flag that names one.
        OSError: a path cannot be read.

    """
    _refuse(word, named, takes_accesses=flags.has("--accesses"))
    source = recognise(word)
    if source.kind == "context":
        return word
    kind = _kind(source, values, ("command_config",), probe=probe)
    if not flags.put(f"--{kind}", word):
        raise ConfigError(f"{word[:80]!r} is {source.what}, which this command does not take: --{kind}")
    return None


def take_second(word: str, flags: Flags, values: Mapping[str, Any], *, probe: bool) -> None:
    """Put the source of a second state under its `--to-` flag. Raises as take_first."""
    _refuse(word, (flag for flag in _SECOND if flags.is_given((flag,))))
    configs = ("to_command_config", "command_config")
    flags.put(f"--to-{_kind(recognise(word, prefix='to-'), values, configs, probe=probe)}", word)


def _kind(source: SourceWord, values: Mapping[str, Any], configs: Iterable[str], *, probe: bool) -> str:
    """Return the flag, without dashes; that of servers is read from them, with the first client properties given."""
    if source.kind:
        return source.kind
    if not probe:
        return "bootstrap-server"
    config = next((values[name] for name in configs if values.get(name) is not None), None)
    return role_flag(source.text, None if config is None else Path(config))


def _refuse(word: str, named: Iterable[str], *, takes_accesses: bool = False) -> None:
    if (flag := next(iter(named), None)) is not None:
        raise ConfigError(
            f"the source is named twice, by {word[:80]!r} and by {flag}: expected one of them (resources and "
            f"principals have flags, such as --topic){_hint_of_accesses(word) if takes_accesses else ''}"
        )


def _hint_of_accesses(word: str) -> str:
    """Return that a word names an access log, and its flag; nothing if it does not."""
    from aclog.sources.accesses import is_access_log  # here: it takes all forms of logs, and few words are one

    return f": is {word} an access log? expected --accesses {shlex.quote(word)}" if is_access_log(word) else ""
