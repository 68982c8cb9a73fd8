"""The SCRAM credentials that a node has replayed, as its logins ask for them."""

from attrs import frozen

from credentials.scram import ScramMechanism
from metalog.records import UserScramCredentialRecord
from nodes.security.login_credentials import Credentials
from snapshots.publisher import Publisher


@frozen(eq=False)
class PublishedCredentials(Credentials):
    """Looks into the image that is published (ScramPublisher's CredentialProvider)."""

    publisher: Publisher

    @property
    def ready(self) -> bool:
        """Whether the log has been replayed up to the high-water mark first learned."""
        return self.publisher.ready

    def scram(self, user: str, mechanism: ScramMechanism) -> UserScramCredentialRecord | None:
        """The user's credential, or None."""
        return self.publisher.current.scram.get(user, mechanism)
