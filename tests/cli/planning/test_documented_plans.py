"""The plans on docs/commands are what the commands above them print."""

import re
import shlex

import pytest

from aclog.authorizer.codes import AclPermissionType, ResourceType
from tests.cli.test_documentation import section
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.planning.estate import log_with

RULES = (
    acl("g", "User:*", resource_type=ResourceType.GROUP),
    acl("g", "User:a", resource_type=ResourceType.GROUP),
    acl("pay.secret", "User:*", permission_type=AclPermissionType.DENY),
    acl("pay.eu", "User:b"),
    acl("pay.us", "User:b"),
    acl("orders", "User:a"),
)
"""What is in the log of these examples."""
EXAMPLE = re.compile(r"^```console\n\$ aclog (?P<line>.*)\n(?P<output>(?:(?!\$ |```).*\n)+)```$", re.MULTILINE)
ID = re.compile(r"^plan id: [0-9a-f]{16}$", re.MULTILINE)


@pytest.mark.parametrize("name", ["grant", "revoke"])
def test_an_example_is_what_is_printed(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    log_with(tmp_path / "DIR", RULES)
    examples = list(EXAMPLE.finditer(section(name)))
    assert examples
    for example in examples:
        printed = aclog(*shlex.split(example["line"]))
        assert printed.code == 1
        told = (printed.out + printed.err).replace(str(tmp_path / "DIR"), "DIR")
        assert ID.sub("plan", told) == ID.sub("plan", example["output"])  # the id is of this directory, too
