"""How many examples a property is tried on (a pytest plugin).

`make check` and `make test` run with the profile `dev`, `make test-all` with `ci`. HYPOTHESIS_PROFILE=campaign tries
ten times as many as `ci`. No profile has deadlines: a busy machine is no failure.

With `CI` in the environment every run tries the same examples, so a change fails by what it changed; new examples are
for developers' runs and for campaigns.
"""

import os

import pytest
from hypothesis import settings

from tests.support.runs.tiers import Tier, tier_of_run

EXAMPLES = 100
"""Of a property whose settings name no number, in `ci`."""
SCALES = {"dev": 1 / 10, "ci": 1.0, "campaign": 10.0}
FEWEST = 5


def examples(number: int) -> int:
    """How many examples the profile of this run tries where `ci` tries `number`."""
    return scaled(number, settings.get_current_profile_name())


def scaled(number: int, profile: str) -> int:
    """How many examples a profile tries where `ci` tries `number`."""
    return max(int(number * SCALES[profile]), min(number, FEWEST))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the profile before any test module is imported."""
    for name in SCALES:
        settings.register_profile(
            name,
            deadline=None,
            print_blob=True,
            max_examples=scaled(EXAMPLES, name),
            derandomize="CI" in os.environ and name != "campaign",
        )
    by_tier = "ci" if tier_of_run(config) is Tier.ALL else "dev"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", by_tier))
