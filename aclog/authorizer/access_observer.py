"""Observers of accesses: they learn what was asked and by which image it was decided, but not which ACL decided."""

from collections.abc import Sequence
from typing import Protocol

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext


class AccessTally(Protocol):
    """What is told of the decisions on one image, by any thread; nothing here may raise or wait for long."""

    def decided(
        self, context: RequestContext, actions: Sequence[Action], results: Sequence[AuthorizationResult]
    ) -> None:
        """Take decisions made by the ACLs of the image: the first of `actions`, as many as have a result."""

    def left_to_super_users(self, actions: Sequence[Action]) -> None:
        """Take that a super user was allowed these, without a look at any ACL."""

    def not_ready(self, actions: Sequence[Action]) -> None:
        """Take that these were refused since the log had not been replayed."""


class AccessObserver(Protocol):
    """Called with every image by which an authorizer is about to decide (StandardAuthorizer.set_observer).

    Unlike an audit hook it does not make the authorizer look for the ACL that determined a decision, which takes
    several times as long as the decision.
    """

    def begin(self, image: AclsImage) -> AccessTally:
        """Return what is to be told of the decisions on an image; called in the order of the images."""
