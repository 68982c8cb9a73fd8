"""Waits until what was written to a node can be seen on both its listeners."""

import time

from tests.support.nodes.server_properties import Ports, password
from tests.support.nodes.wire_client import WireClient, nested
from tests.support.processes.waiting import SECONDS

DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 29, 30, 31
NAME = "barrier-"
"""What the names of the ACLs begin with that a barrier makes."""


class Barrier:
    """ACLs made one after the other: records are applied in order, so what came before one that is seen is seen too."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._clients: list[WireClient] = []
        self._count = 0

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            client.close()

    def wait(self, *, leave_nothing: bool = False) -> None:
        """Make an ACL and wait until both listeners show it; remove it and wait again, if it shall not stay."""
        if not self._clients:
            ports = (self._ports.broker, self._ports.controller)
            self._clients = [WireClient(port).plain("admin", password("admin")) for port in ports]
        self._count += 1
        rule = {"resource_type": 2, "resource_name": f"{NAME}{self._count}", "resource_pattern_type": 3}
        rule |= {"principal": "User:barrier", "host": "*", "operation": 3, "permission_type": 3}
        answer = self._clients[0].ask(CREATE_ACLS, 3, creations=(nested(CREATE_ACLS, 3, "AclCreation", **rule),))
        assert not answer.results[0].error_code, answer
        self._until(present=True)
        if leave_nothing:
            acl_filter = nested(DELETE_ACLS, 3, "DeleteAclsFilter", **self._filter())
            assert not self._clients[0].ask(DELETE_ACLS, 3, filters=(acl_filter,)).filter_results[0].error_code
            self._until(present=False)

    def _filter(self) -> dict[str, object]:
        fields = {"resource_type_filter": 2, "resource_name_filter": f"{NAME}{self._count}", "pattern_type_filter": 3}
        return fields | {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}

    def _until(self, *, present: bool) -> None:
        deadline = time.monotonic() + SECONDS
        for client in self._clients:
            while bool(client.ask(DESCRIBE_ACLS, 3, **self._filter()).resources) != present:
                assert time.monotonic() < deadline, f"{NAME}{self._count}: not what is seen after {SECONDS} s"
                time.sleep(0.005)
