import pytest

from aclog.authorizer.interface import Authorizer
from aclog.config.server_properties import load_config
from aclog.server.apis.acls import access_settings
from tests.support.nodes.server_properties import Ports, server_properties

KAFKAS = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OWN = f"{__name__}.OwnAuthorizer"


class OwnAuthorizer(Authorizer):
    """One whose properties nobody knows."""


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"authorizer.class.name": KAFKAS, "super.users": "User:admin"}),
        (
            {"allow.everyone.if.no.acl.found": "True"},
            {
                "authorizer.class.name": KAFKAS,
                "super.users": "User:admin",
                "allow.everyone.if.no.acl.found": "True",
            },
        ),
        ({"authorizer.class.name": OWN}, {"authorizer.class.name": OWN}),
    ],
)
def test_what_the_authorizer_goes_by_is_told(tmp_path, changes, expected):
    path = tmp_path / "server.properties"
    path.write_text(server_properties(Ports(broker=1, controller=2, http=3), **changes))
    assert access_settings(load_config(path)) == expected
