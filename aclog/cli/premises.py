"""What is unknown of that which decides in a source, noted on stderr before a command answers."""

from collections.abc import Set as AbstractSet

from aclog.authorizer.config import SUPER_USERS_CONFIG
from aclog.authorizer.premises import Premises
from aclog.metalog.errors import ConfigError
from aclog.sources.choice import ChosenSource
from aclog.terminal.notices import note


def read_premises(chosen: ChosenSource, given: AbstractSet[str]) -> Premises:
    """Return what is unknown of that which decides in a source, and note each.

    In a running cluster these are the properties that are not in `given` and that a node hides or has set, and nodes
    without an authorizer of Kafka's; of a log or checkpoint, the records that the state lacks that `chosen` returned
    last. `given`: the properties whose values are given (AuthorizerFlags.given).

    Raises:
        RequestError: no node of the cluster has an authorizer.

    """
    premises = chosen.premises(given)
    for premise in premises.unknown:
        note(premise.note())
    return premises


def refuse_unless_known(premises: Premises, what: str) -> None:
    """Refuse to go on if anything but the super users is unknown.

    Raises:
        ConfigError: it is; the text begins with `what`.

    """
    left = premises.without({SUPER_USERS_CONFIG}).unknown
    if left:
        raise ConfigError(f"{what}: {'; '.join(each.note() for each in left)}")
