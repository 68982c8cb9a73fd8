"""The limit on the age of a followed state."""

from aclog.metalog.errors import StaleError
from aclog.snapshots.freshness import Freshness
from aclog.terminal.timestamps import utc_text


def check_age(found: Freshness | None, max_age: float) -> None:
    """Check that a state is not older than `max_age` seconds.

    Raises:
        StaleError: it is, or nobody has confirmed it; says how old it is, since when, and who told it.

    """
    if found is None:
        raise StaleError(f"no server has confirmed the state: expected one at most {max_age:g} s old")
    if found.seconds > max_age:
        why = f": {found.problem}" if found.problem else ""
        raise StaleError(
            f"{found.server}: the state is {found.seconds:.1f} s old: nothing was confirmed since "
            f"{utc_text(found.time)}: expected at most {max_age:g} s{why}"
        )
