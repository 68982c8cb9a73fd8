"""`early.start.listeners`: which listeners open before the log is replayed (KIP-801)."""

import pytest

from aclog.config.server_properties import parse_config
from tests.support.nodes.node_properties import BROKER, COMBINED, CONTROLLER, SASL


def early(base: dict[str, str], value: str | None) -> set[str]:
    """The names of a node's listeners that start early."""
    changes = {} if value is None else {"early.start.listeners": value}
    config = parse_config(base | changes, "it", host_name=lambda: "here")
    return {listener.name for listener in config.listeners if listener.early_start}


@pytest.mark.parametrize(
    ("base", "names"),
    [(COMBINED, {"CONTROLLER"}), (CONTROLLER, {"CONTROLLER"}), (SASL, {"CONTROLLER"}), (BROKER, set())],
)
def test_they_are_those_of_the_controller_unless_named(base, names):
    assert early(base, None) == names


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("SASL_PLAINTEXT", {"SASL_PLAINTEXT"}),
        ("CONTROLLER,SASL_PLAINTEXT", {"CONTROLLER", "SASL_PLAINTEXT"}),
        (" CONTROLLER , SASL_PLAINTEXT ", {"CONTROLLER", "SASL_PLAINTEXT"}),
        ("", set()),
    ],
)
def test_those_that_are_named_and_no_others(value, names):
    assert early(SASL, value) == names
