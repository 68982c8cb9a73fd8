"""Spellings of principals: which texts probably mean one client, and which are no name of a client."""

import re
from fnmatch import translate

from aclog.authorizer.acl import listed_principals
from aclog.authorizer.codes import WILDCARD_PRINCIPAL
from aclog.metalog.native import regex

ANY_ADDRESSES = ("0.0.0.0", "0:0:0:0:0:0:0:0", "::")  # noqa: S104  # hosts of rules, not to listen on
"""All addresses, where a server listens: no client connects from one."""

_SIGNS = regex(r"[-_.\s]+")
_UNEXPANDED = regex(r"\$\{[^}]*\}?|\{\{.*?(?:\}\}|$)|\$\([^)]*\)?|<[A-Za-z][\w -]*>|%\w+%")
_TWICE = regex(r"(?P<kind>[A-Za-z]+):(?P=kind):")
_SEPARATOR = regex(r"(?<!\\)[,;]")


def spelling_key(principal: str) -> str | None:
    """Return the text by which names are alike, without signs between words and in one case.

    None for a distinguished name, for `User:*`, and for a name of signs only.
    """
    if "=" in principal or ":" not in principal or principal == WILDCARD_PRINCIPAL:
        return None
    kind, _, name = principal.partition(":")
    key = _SIGNS.sub("", name).casefold()
    return f"{kind}:{key}" if key else None


def name_parts(principal: str) -> list[tuple[str, str]] | None:
    """Return the keys and values of a distinguished name, keys in capitals; None for any other name."""
    _, _, name = principal.partition(":")
    parts = []
    for part in _SEPARATOR.split(name):
        key, sign, value = part.partition("=")
        if not sign or not key.strip().replace(".", "").isalnum():
            return None
        parts.append((key.strip().upper(), value.strip()))
    return parts


def canonical_name(principal: str) -> str | None:
    """Return a principal in the form of a certificate's name (RFC 2253); None if it is no distinguished name."""
    parts, kind = name_parts(principal), principal.partition(":")[0]
    return None if parts is None else f"{kind}:{','.join(f'{key}={value}' for key, value in parts)}"


def name_key(principal: str) -> tuple[str, ...] | None:
    """Return a value that is the same for all spellings of one distinguished name; None for another name."""
    parts = name_parts(principal)
    return None if parts is None else (principal.partition(":")[0], *sorted(f"{key}={value}" for key, value in parts))


def odd_principal(principal: str) -> str | None:
    """Return why a principal is probably not the name of one client; None if it may be."""
    _, colon, name = principal.partition(":")
    if not colon or principal == WILDCARD_PRINCIPAL:
        return None
    problems = {
        f"{principal!r} has no name": not name.strip(),
        f"{principal!r} is a template that was not expanded": is_unexpanded(principal),
        f"{principal!r} has its type twice, so its name is {name!r}": _TWICE.match(principal) is not None,
        f"{principal!r} is one principal, not a list": bool(listed_principals(principal)),
        f"{principal!r} is one client of that name, not a pattern": "*" in name or "?" in name,
    }
    return next((text for text, applies in problems.items() if applies), None)


def is_unexpanded(principal: str) -> bool:
    """Return whether a principal has a template, such as `User:${app}`."""
    return _UNEXPANDED.search(principal) is not None


def misspelling(stated: str, principal: str) -> str | None:
    """Return why a principal of a rule was probably meant to be this one, which is another text; None if it was not."""
    if principal in listed_principals(stated):
        return f"{stated} is one principal whose name has a comma, not a list"
    if "=" in stated:
        is_same = "=" in principal and name_key(stated) is not None and name_key(stated) == name_key(principal)
        why = f"{stated} is the same distinguished name in another spelling, and Kafka compares texts"
        return why if is_same else None
    if (problem := odd_principal(stated)) is not None:
        pattern = _TWICE.sub(r"\g<kind>:", _UNEXPANDED.sub("*", stated))
        return problem if re.fullmatch(translate(pattern), principal) else None
    is_alike = spelling_key(stated) is not None and spelling_key(stated) == spelling_key(principal)
    return f"{stated} differs only in its spelling, and Kafka compares texts" if is_alike else None
