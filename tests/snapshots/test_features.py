"""Feature levels: the last one counts, level 0 removes, metadata.version comes first."""

from aclog.metalog.records import FeatureLevelRecord
from aclog.snapshots.image import FeaturesImage


def feature(name, level):
    return FeatureLevelRecord(name=name, feature_level=level)


def test_the_last_level_counts_and_0_removes():
    image = FeaturesImage.EMPTY.apply([feature("a", 1), feature("b", 1), feature("a", 2), feature("b", 0)])
    assert (image.level("a"), image.level("b"), image.level("never"), len(image)) == (2, 0, 0, 1)


def test_metadata_version_is_written_first():
    image = FeaturesImage.EMPTY.apply([feature("z", 1), feature("a", 1), feature("metadata.version", 30)])
    assert [record.name for record in image.records()] == ["metadata.version", "a", "z"]


def test_removing_an_absent_feature_has_no_effect():
    assert FeaturesImage.EMPTY.apply([feature("a", 0)]) == FeaturesImage.EMPTY
