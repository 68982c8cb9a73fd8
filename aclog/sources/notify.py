"""What a state source tells the person who asked."""

from collections.abc import Callable
from typing import TypeAlias

Notify: TypeAlias = Callable[[str], None]
"""Called once with each note of a recovery: a torn tail, a lowered offset, a skipped checkpoint."""
