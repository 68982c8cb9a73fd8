"""Symbols: principals, names and hosts that only the tool which applies a file knows, such as an id after apply.

A symbol is a text in which each unknown part is `${EXPRESSION}` behind a mark that no name of Kafka has. So it is equal
to itself only, never to a literal of the same text; and a prefix covers it if and only if its known beginning does.
"""

from hashlib import sha256
from typing import Protocol

from aclog.metalog.errors import FIRST_HIDDEN, SYMBOL_MARK, SYMBOL_START, ConfigError, without_marks


class NamedRule(Protocol):
    """What may be a symbol of a rule (aclog.authorizer.acl.StandardAcl)."""

    @property
    def resource_name(self) -> str:
        """The name of its resource, or the prefix."""
        ...

    @property
    def principal(self) -> str:
        """The principal."""
        ...

    @property
    def host(self) -> str:
        """The client address, or `*`."""
        ...


SYMBOLS = "a value known after apply"
"""The name of the premise of answers about rules with symbols (aclog.authorizer.standard.Premise)."""

_WITHOUT_TYPE = f"{SYMBOL_MARK}:"
"""The type of a principal of which not even the type is known."""
_FIELDS = {"resourceName": "resource_name", "principal": "principal", "host": "host"}
"""The fields that may be symbols, as JSON names them."""


def symbol_part(expression: str) -> str:
    """Return the unknown part of a text whose value is that of an expression."""
    return f"{SYMBOL_START}{expression}}}"


def hidden_part(origin: str) -> str:
    """Return a part of an expression that is not shown: symbols of the same text from other origins are not equal.

    JSON does not have it: a symbol that is read back from JSON is another one.
    """
    digest = sha256(origin.encode(errors="surrogatepass")).hexdigest()[:16]
    return "".join(chr(ord(FIRST_HIDDEN) + int(digit, 16)) for digit in digest)


def literal_part(text: str) -> str:
    """Return the known part of a symbol: `${` in it is written `$${`, as in Terraform."""
    return text.replace("${", "$${")


def expression_of(text: str) -> str | None:
    """Return the expression of a text that is one unknown part; None for any other text."""
    is_one = text.startswith(SYMBOL_START) and text.endswith("}") and text.count(SYMBOL_START) == 1
    return text[len(SYMBOL_START) : -1] if is_one and _end(text, 1) == len(text) else None


def principal_symbol(text: str) -> str:
    """Return a symbol as a principal: one whose type is unknown has a type of its own."""
    return text if ":" in known_beginning(text) else f"{_WITHOUT_TYPE}{text}"


def is_symbol(text: str) -> bool:
    """Return whether a part of a text is unknown."""
    return SYMBOL_START in text


def known_beginning(text: str) -> str:
    """Return a text up to its first unknown part."""
    return text.partition(SYMBOL_START)[0]


def symbolic_fields(acl: NamedRule) -> list[str]:
    """Return the fields of a rule that are symbols, as JSON names them; empty for nearly every rule."""
    return [name for name, attribute in _FIELDS.items() if SYMBOL_START in getattr(acl, attribute)]


def symbols_of(acl: NamedRule) -> list[str]:
    """Return the symbols of a rule as text: `User:${confluent_service_account.app.id}`."""
    return [without_marks(getattr(acl, _FIELDS[name])) for name in symbolic_fields(acl)]


def symbol_refusal(acl: NamedRule) -> str | None:
    """Return why a rule with symbols cannot be created; None for any other."""
    symbols = symbols_of(acl)
    if not symbols:
        return None
    return f"{', '.join(symbols)} is known after apply only: read the plan or the state (terraform show -json)"


def symbol_of_json(key: str, text: str) -> str:
    """Return the symbol whose text a JSON object has under a key that its `symbolic` lists.

    Raises:
        ConfigError: no part of the text is `${...}`.

    """
    parts, at = list[str](), 0
    while at < len(text):
        if text.startswith("$${", at):
            parts.append("$${")
            at += 3
        elif text.startswith("${", at):
            end = _end(text, at)
            parts.append(f"{SYMBOL_MARK}{text[at:end]}")
            at = end
        else:
            parts.append(text[at])
            at += 1
    symbol = "".join(parts)
    if SYMBOL_START not in symbol:
        raise ConfigError(f"{key} {text[:60]!r} is listed in symbolic: expected a part ${{...}}")
    return principal_symbol(symbol) if key == "principal" else symbol


def _end(text: str, at: int) -> int:
    """Return the position behind the `}` that closes the `${` at a position; the end of the text without one."""
    levels = list[str]()
    while at < len(text):
        each = text[at]
        if levels and levels[-1] == '"':
            if each == "\\":
                at += 1
            elif each == '"':
                levels.pop()
            elif text.startswith("$${", at):
                at += 2
            elif text.startswith("${", at):
                levels.append("{")
                at += 1
        elif each in ('"', "{"):
            levels.append(each)
        elif each == "}":
            levels.pop()
            if not levels:
                return at + 1
        at += 1
    return len(text)
