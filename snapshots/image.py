"""All metadata at one offset: immutable, so that readers may keep one as long as they like (MetadataImage)."""

from typing import ClassVar

from attrs import evolve, field, frozen

from authorizer.acls_image import AclsImage
from credentials.scram import ScramImage
from credentials.tokens import TokensImage
from metalog.control import KRaftVoters
from snapshots.features import FeaturesImage
from snapshots.opaque import OpaqueImage

NO_TIMESTAMP = -1
"""The timestamp of an image that no batch went into."""


@frozen(kw_only=True)
class Provenance:
    """Which part of the log an image holds (MetadataProvenance), and what its control records said.

    `end_offset` is exclusive; `epoch` and `timestamp` (ms since 1970) are those of the last batch. `voters` is the
    last KRaftVoters record, which a checkpoint must repeat where `kraft_version` is not 0.
    """

    end_offset: int = 0
    epoch: int = 0
    timestamp: int = NO_TIMESTAMP
    kraft_version: int = 0
    voters: KRaftVoters | None = None


def _no_acls() -> AclsImage:
    return AclsImage.from_acls(())


@frozen(kw_only=True, eq=False)
class Image:
    """All metadata after a whole committed batch, outside any open transaction."""

    EMPTY: ClassVar["Image"]

    acls: AclsImage = field(factory=_no_acls)
    scram: ScramImage = ScramImage.EMPTY
    tokens: TokensImage = TokensImage.EMPTY
    features: FeaturesImage = FeaturesImage.EMPTY
    opaque: OpaqueImage = OpaqueImage.EMPTY
    provenance: Provenance = Provenance()

    @property
    def end_offset(self) -> int:
        """The offset after the last record of which this image knows."""
        return self.provenance.end_offset

    @property
    def epoch(self) -> int:
        """The leader epoch of the last batch."""
        return self.provenance.epoch

    @property
    def timestamp(self) -> int:
        """When the last batch was appended, in ms since 1970; NO_TIMESTAMP for the empty image."""
        return self.provenance.timestamp

    def at(self, provenance: Provenance) -> "Image":
        """The same content, known to be that of another place in a log."""
        return evolve(self, provenance=provenance)

    def with_acls(self, acls: AclsImage) -> "Image":
        """The same image with its ACLs in another form: merged, or with other semantics."""
        return evolve(self, acls=acls)


Image.EMPTY = Image()
