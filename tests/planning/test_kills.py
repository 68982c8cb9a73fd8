"""Plan and apply, killed at every point: the same end, the same owner, and nothing on the way but what was said."""

from pathlib import Path
from random import Random

import pytest

from tests.support.planning.judged_case import judge
from tests.support.runs.tiers import Sample


@pytest.mark.parametrize("allow_everyone", [False, True])
def test_every_kill_ends_as_planned(tmp_path: Path, allow_everyone: bool, sample: Sample) -> None:
    first = Random().randrange(10**9)
    for seed in sample(range(first, first + 6), 2):
        judged = judge(seed, tmp_path, allow_everyone=allow_everyone)
        assert judged.wrong == [], f"seed {seed}"
