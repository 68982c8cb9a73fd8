"""The finalized feature levels of an image (org.apache.kafka.image.FeaturesImage)."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Self

from attrs import field, frozen

from aclog.metalog.persistent_map import Map
from aclog.metalog.records import FeatureLevelRecord

METADATA_VERSION = "metadata.version"
"""The feature that determines which record versions a log may contain."""

TRANSACTIONS_SINCE = 13
"""The feature level of metadata.version 3.6-IV1, the first with transactions in the log."""

NEWEST_METADATA_VERSION = 33
"""The newest metadata.version of Kafka 4.4.0 (4.4-IV2); the meaning of a higher one is unknown here."""


@frozen(kw_only=True)
class FeaturesImage:
    """Feature names and their levels at one offset; features at level 0 are absent."""

    EMPTY: ClassVar["FeaturesImage"]

    _records: Map[str, FeatureLevelRecord] = field(factory=Map, alias="records")

    def __len__(self) -> int:
        return len(self._records)

    def level(self, name: str) -> int:
        """Return the finalized level of a feature, 0 if it has none."""
        record = self._records.get(name)
        return 0 if record is None else record.feature_level

    def records(self) -> Iterator[FeatureLevelRecord]:
        """Return the records of this image: metadata.version first, as Kafka writes them, then by name."""
        return (
            self._records[name] for name in sorted(self._records, key=lambda name: (name != METADATA_VERSION, name))
        )

    def apply(self, changes: Iterable[FeatureLevelRecord]) -> Self:
        """Return the image after these changes, in order."""
        records = self._records.mutate()
        for change in changes:
            # Kafka removes a feature by finalizing it at level 0.
            if change.feature_level:
                records[change.name] = change
            else:
                records.pop(change.name, None)
        return type(self)(records=records.finish())


FeaturesImage.EMPTY = FeaturesImage()
