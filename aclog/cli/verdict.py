"""What a verification of a log or of checkpoints found, as an exit code."""

from enum import IntEnum

from attrs import define

from aclog.metalog.errors import MetadataError, is_newer_kafka


class Verdict(IntEnum):
    """What a verification found; the values are exit codes."""

    SOUND = 0
    DAMAGED = 1
    NEWER = 2


WORDS = {
    Verdict.SOUND: "all is well",
    Verdict.DAMAGED: "damaged",
    Verdict.NEWER: "not damaged, but written by a newer Kafka than 4.4: a newer aclog is needed",
}
"""The last line of a verification."""


@define(kw_only=True)
class Findings:
    """What was found so far."""

    damaged: bool = False
    newer: bool = False

    @property
    def verdict(self) -> Verdict:
        """Damage counts more: what a newer Kafka wrote is whole."""
        return Verdict.DAMAGED if self.damaged else Verdict.NEWER if self.newer else Verdict.SOUND

    def add(self, error: MetadataError) -> None:
        """Take an error into account."""
        if is_newer_kafka(error):
            self.newer = True
        else:
            self.damaged = True
