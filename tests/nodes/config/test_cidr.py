"""aclog.cidr.enabled: what is accepted."""

import pytest

from aclog.config.server_properties import parse_config
from aclog.metalog.errors import ConfigError
from aclog.server.node import authorizer_of
from tests.support.nodes.node_properties import COMBINED, changed

CLASS = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def config_of(value, name=CLASS):
    properties = changed(COMBINED, {"aclog.cidr.enabled": value, "authorizer.class.name": name})
    return parse_config(properties, "it", strict=True, host_name=lambda: "this-machine")


@pytest.mark.parametrize(("value", "expected"), [(None, False), ("false", False), ("true", True), (" TRUE ", True)])
def test_it_is_off_unless_it_is_set(value, expected):
    config = config_of(value)
    assert config.cidr is expected
    assert authorizer_of(config, None).cidr is expected


@pytest.mark.parametrize("value", ["", "yes", "1", "tru"])
def test_a_typo_is_refused(value):
    with pytest.raises(ConfigError, match=r"^it: aclog\.cidr\.enabled: .*expected true or false"):
        config_of(value)


def test_it_needs_the_standard_authorizer():
    with pytest.raises(ConfigError, match="nothing is authorized"):
        config_of("true", None)
    with pytest.raises(ConfigError, match=r"AclAuthorizer has no CIDR ranges: expected false"):
        authorizer_of(config_of("true", "kafka.security.authorizer.AclAuthorizer"), None)
