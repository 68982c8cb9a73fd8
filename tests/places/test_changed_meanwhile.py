"""Somebody else writes between two stages of an apply, which took a while: the rest is not done."""

import json

import pytest

from aclog.authorizer.acl import object_of_rule
from aclog.authorizer.codes import AclPermissionType
from aclog.protocol.api_keys import DELETE_ACLS
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.fakes.broker import FakeBroker

ALLOW, DENY = acl("orders", "User:*"), acl("orders", "User:b", permission_type=AclPermissionType.DENY)
FOREIGN = acl("foreign", "User:c")


@pytest.mark.parametrize(
    ("new", "stops"),
    [(acl("orders", "User:b"), True), (acl("elsewhere", "User:b"), False)],
    ids=["what the deny overrules", "of another name"],
)
def test_a_deny_stays_if_somebody_has_added_what_it_overrules(tmp_path, new, stops):
    want, journal, file = tmp_path / "want.jsonl", tmp_path / "journal", tmp_path / "plan"
    with FakeBroker([FOREIGN]) as broker:

        def apply(*rules):
            want.write_text("".join(f"{json.dumps(object_of_rule(each))}\n" for each in rules))
            source = ("--want", want, "--journal", journal, "--max-deletes", "100%", "--out", file)
            planned = aclog(
                "plan", "--bootstrap-server", broker.address, *source, "--no-allow-everyone-if-no-acl-found"
            )
            assert planned.code == 1, planned
            return aclog("apply", file, "--yes")

        apply(ALLOW, DENY).ok()
        delete = broker.handlers[DELETE_ACLS]

        def deleted(version, body):
            """Remove, and let somebody add a rule right after that."""
            broker.handlers[DELETE_ACLS] = delete
            found = delete(version, body)
            broker.rules.append(new)
            return found

        broker.handlers[DELETE_ACLS] = deleted
        found = apply()
        if stops:
            assert found.code == 2
            assert "another writer has changed ACLs that the plan touches" in found.complaint
            assert "stopped after 1 of 2 steps: create a new plan from the present state" in found.complaint
            assert set(broker.rules) == {FOREIGN, DENY, new}
            assert "ACLs that the plan touches have changed" in aclog("apply", file, "--yes", "--resume").complaint
            assert set(broker.rules) == {FOREIGN, DENY, new}
            apply().ok()  # whoever makes a new plan has seen it
        else:
            found.ok()
        assert set(broker.rules) == {FOREIGN, new}
