"""The image: all metadata at one offset, immutable, so that readers may keep one indefinitely (MetadataImage)."""

from collections.abc import Mapping
from typing import ClassVar

from attrs import define, evolve, field

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.generation import Generation
from aclog.credentials.scram import ScramImage
from aclog.credentials.tokens import TokensImage
from aclog.snapshots.cluster import ClusterImage
from aclog.snapshots.features import FeaturesImage
from aclog.snapshots.opaque_records import OpaqueImage
from aclog.snapshots.provenance import Provenance


def _no_acls() -> AclsImage:
    return AclsImage.from_acls(())


@define(eq=False)
class Image:
    """All metadata after a whole committed batch, outside of any open transaction.

    Immutable by convention: `frozen` would enforce it, but makes construction five times slower, and every update
    constructs an image.
    """

    EMPTY: ClassVar["Image"]

    acls: AclsImage = field(factory=_no_acls)
    scram: ScramImage = ScramImage.EMPTY
    tokens: TokensImage = TokensImage.EMPTY
    features: FeaturesImage = FeaturesImage.EMPTY
    cluster: ClusterImage = ClusterImage.EMPTY
    opaque: OpaqueImage = OpaqueImage.EMPTY
    provenance: Provenance = field(factory=Provenance)
    generation: Generation | None = None
    """The generation that decides, where the kind of the source implies it; in others nodes state it."""
    live_levels: Mapping[int, int | None] | None = None
    """By broker, the newest level of metadata.version that its software supports, as it answers itself; None if it did
    not answer. Of a source that asks brokers; in others registrations state it."""
    live_controllers: Mapping[int, int | None] | None = None
    """The same of the controllers; None if they are unknown, or no range concerns what they decide."""

    def __repr__(self) -> str:
        return f"Image(end_offset={self.end_offset}, acls={len(self.acls)})"

    @property
    def end_offset(self) -> int:
        """The offset after the last record in this image."""
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
        """Return the same content with another provenance."""
        return evolve(self, provenance=provenance)

    def with_acls(self, acls: AclsImage) -> "Image":
        """Return the same image with its ACLs in another representation: merged, or with other semantics."""
        return evolve(self, acls=acls)


Image.EMPTY = Image()
