"""The steps of the admin script: valid and invalid requests, in an order that matters, the same in every run."""

from tests.support.admin import steps_acls as acls
from tests.support.admin import steps_logins as connections
from tests.support.admin import steps_others as others
from tests.support.admin.requests import Step


def steps() -> list[Step]:
    """The whole script."""
    script: list[Step] = []
    for part in (
        connections.before_login,
        connections.logins,
        others.clusters,
        acls.creations,
        acls.descriptions,
        acls.deletions,
        others.not_authorized,
        others.malformed,
        others.envelopes,
        others.scram_users,
        connections.scram_logins,
        others.quorums,
        others.fetches,
        acls.limits,
        acls.at_random,
        others.the_end,
    ):
        script += part()
    return script
