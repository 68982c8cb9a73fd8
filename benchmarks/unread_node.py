"""`aclog` without reading back what a topic log's writer has committed: the baseline of benchmarks.read_back.

python -m benchmarks.unread_node serve server.properties
"""

from collections.abc import Sequence
from unittest.mock import patch

from aclog.__main__ import main
from aclog.metalog.topiclog.topic_log import ReadBack


def _unchecked(own: ReadBack, batches: Sequence[bytes], deadline: float) -> None:
    """Replace ReadBack.check."""


if __name__ == "__main__":
    with patch.object(ReadBack, "check", _unchecked):
        main()
