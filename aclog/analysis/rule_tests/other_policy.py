"""What a case compares with: the policy of another source, and accesses; read only when the case is run."""

from collections.abc import Mapping
from typing import Protocol

from aclog.analysis.policy import Policy
from aclog.analysis.regions.region import Request
from aclog.authorizer.premises import Premises
from aclog.authorizer.settings import Settings


class OtherPolicy(Protocol):
    """The policy of another source."""

    @property
    def name(self) -> str:
        """How people name it: `main:kafka`, `prod as of 30d ago`."""
        ...

    def policy(self, settings: Settings) -> Policy:
        """Return it; the settings hold where the source states none. Raises MetadataError: it cannot be read."""
        ...

    @property
    def premises(self) -> Premises:
        """What is unknown of the settings of its source, once it has been read; nothing of one that is no cluster."""
        ...


class Accesses(Protocol):
    """Requests that were made."""

    @property
    def name(self) -> str:
        """How people name them."""
        ...

    def counts(self) -> Mapping[Request, int]:
        """Return distinct requests, with how often each was made. Raises MetadataError: they cannot be read."""
        ...
