"""Retries of read-modify-write updates, after version conflicts and lost connections."""

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from aclog.zkstore.errors import ConflictError, StoreError

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient

MAX_ATTEMPTS = 30
_FIRST_BACKOFF_S, _MAX_BACKOFF_S = 0.005, 0.15
"""Kafka makes 11 attempts, 100 to 150 ms apart (AclAuthorizer.retryBackoffMs)."""


def retried(client: "ZkClient", attempt: Callable[[], None]) -> None:
    """Attempt an update until it succeeds.

    A request whose response was lost may have been applied, so each attempt must begin with a read.

    Raises:
        StoreError: too many conflicts with other writers, or ZooKeeper was unavailable for the session timeout.

    """
    deadline = time.monotonic() + client.settings.session_timeout
    failure: StoreError | None = None
    for number in range(MAX_ATTEMPTS):
        try:
            return attempt()
        except ConflictError as error:
            failure = error
        except StoreError as error:
            failure = error
            if time.monotonic() > deadline:
                raise
        back_off(number)
    raise StoreError(f"not changed in {MAX_ATTEMPTS} attempts: {failure}") from failure


def back_off(attempt: int) -> None:
    """Sleep before the attempt after this one (counted from 0): exponential backoff with jitter."""
    longest = min(_FIRST_BACKOFF_S * 2 ** min(attempt, 10), _MAX_BACKOFF_S)
    # Without jitter, writers that conflicted once would wake together and conflict again.
    time.sleep(longest * random.uniform(0.5, 1))  # noqa: S311  # not a secret
