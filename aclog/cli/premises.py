"""What a running cluster has set and no flag gives: read from it, and noted on stderr, before a command answers."""

from collections.abc import Set as AbstractSet

from aclog.authorizer.config import SUPER_USERS_CONFIG
from aclog.authorizer.premises import Premises
from aclog.metalog.errors import ConfigError
from aclog.sources.choice import ChosenSource
from aclog.terminal.notices import note


def read_premises(chosen: ChosenSource, given: AbstractSet[str]) -> Premises:
    """Return what is unknown of the settings that decide in a source, and note each.

    `given`: the properties whose values are given (AuthorizerFlags.given).

    Raises:
        RequestError: no node of the cluster has an authorizer.

    """
    premises = chosen.premises(given)
    for premise in premises.unknown:
        note(premise.note())
    return premises


def refuse_unless_known(premises: Premises, what: str) -> None:
    """Refuse to go on if more than super users is unknown, and the answer could not be corrected later.

    Raises:
        ConfigError: it is; the text begins with `what`.

    """
    left = premises.without({SUPER_USERS_CONFIG}).unknown
    if left:
        raise ConfigError(f"{what}: {'; '.join(each.note() for each in left)}")
