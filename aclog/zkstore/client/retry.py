"""A change that is read, decided and written again when somebody else was quicker, or an answer was lost."""

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from aclog.zkstore.errors import ConflictError, StoreError

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient

_MOST_ATTEMPTS = 30
_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.005, 0.15


def retried(client: "ZkClient", attempt: Callable[[], None]) -> None:
    """Attempt until it goes through. What was lost may have happened: an attempt has to begin by reading.

    Raises:
        StoreError: too many others wrote at once, or ZooKeeper did not answer for longer than a session lasts.

    """
    deadline = time.monotonic() + client.settings.session_timeout
    failure: StoreError | None = None
    for number in range(_MOST_ATTEMPTS):
        try:
            return attempt()
        except ConflictError as error:
            failure = error
        except StoreError as error:
            failure = error
            if time.monotonic() > deadline:
                raise
        time.sleep(min(_FIRST_BACKOFF_S * 2**number, _LONGEST_BACKOFF_S) * random.uniform(0.5, 1))  # noqa: S311
    raise StoreError(f"not changed in {_MOST_ATTEMPTS} attempts: {failure}") from failure
