"""Whether a format can hold rules."""

from collections.abc import Callable, Iterable, Sequence

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.creation_checks import refusal
from aclog.metalog.errors import ConfigError
from aclog.metalog.printable import printable
from aclog.sources.formats.format import AclsFormat

_NAMED = 3
"""How many of the rules that do not fit are named."""


class UnfitError(ConfigError):
    """Rules that a format cannot hold; the text names the first of them."""

    def __init__(self, text: str, unfit: Sequence[tuple[StandardAcl, str]]) -> None:
        """`unfit` has each of the rules, with the reason."""
        super().__init__(text)
        self.unfit = tuple(unfit)


def check_holds(form: AclsFormat, rules: Sequence[StandardAcl], unfit: Callable[[StandardAcl], str | None]) -> None:
    """Refuse rules that a format would lose or change; `unfit` returns why it cannot hold one, None if it can.

    Raises:
        UnfitError: it cannot hold them all.

    """
    found = [(rule, why) for rule in rules if (why := _unfit_anywhere(rule) or unfit(rule)) is not None]
    if found:
        raise refused(form, len(rules), found)


def refused(form: AclsFormat, total: int, found: Sequence[tuple[StandardAcl, str]]) -> UnfitError:
    """Return the error about rules that a format cannot hold, each with the reason."""
    listed = "; ".join(f"{printable(str(rule))[:300]}: {why}" for rule, why in found[:_NAMED])
    more = f"; and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    return UnfitError(f"{form} cannot hold {len(found):,} of {total:,} rules: {listed}{more}", found)


def _unfit_anywhere(rule: StandardAcl) -> str | None:
    why = refusal(rule)
    if why is not None:
        return f"CreateAcls refuses it ({why})"
    return None if _is_utf8(rule.resource_name, rule.principal, rule.host) else "it has a name that is not UTF-8"


def _is_utf8(*texts: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in _wide(texts))


def _wide(texts: Iterable[str]) -> str:
    return "".join(text for text in texts if not text.isascii())
