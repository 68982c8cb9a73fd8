"""Users who ask a node about delegation tokens, and what they are told in words that hold for any run."""

import hashlib
import hmac
import time
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, Self

from tests.support.nodes.barrier import Barrier
from tests.support.nodes.server_properties import Ports, password
from tests.support.nodes.wire_client import ClosedError, RefusedError, WireClient, encode_request, nested
from tests.support.tokens import answers as token_answers

CREATE, RENEW, EXPIRE, DESCRIBE, CREATE_ACLS = 38, 39, 40, 41, 30
SECRET = "a-secret-of-tests"
USER, DELEGATION_TOKEN, CLUSTER = 7, 6, 4


def hmac_of(token_id: str) -> bytes:
    """The HMAC of a token."""
    return hmac.digest(SECRET.encode(), token_id.encode(), hashlib.sha512)


class TokenClient:
    """Connections of users by PLAIN, one each; `ids` are the tokens that the script has named."""

    def __init__(self, ports: Ports, plaintext: int) -> None:
        self.ports, self._plaintext = ports, plaintext
        self.ids: dict[str, str] = {}
        self._users: dict[str, WireClient] = {}
        self._stack, self._barrier = ExitStack(), Barrier(ports)

    def __enter__(self) -> Self:
        self._stack.callback(self._barrier.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def connected(self, port: int | None = None) -> WireClient:
        """A new connection, to the SASL listener unless told."""
        return self._stack.enter_context(WireClient(port or self.ports.broker))

    def user(self, name: str) -> WireClient:
        """The connection of a user; `nobody` comes over PLAINTEXT."""
        if name not in self._users:
            if name == "nobody":
                self._users[name] = self.connected(self._plaintext)
            else:
                self._users[name] = self.connected().plain(name, password(name))
        return self._users[name]

    def settle(self) -> None:
        """Wait until what was changed is seen everywhere: a real Kafka's caches lag."""
        self._barrier.wait(leave_nothing=True)

    def allow(self, user: str, operation: int, kind: int, name: str) -> int:
        """Make a rule as admin; the error code."""
        fields = {"resource_type": kind, "resource_name": name, "resource_pattern_type": 3, "permission_type": 3}
        rule = fields | {"principal": f"User:{user}", "host": "*", "operation": operation}
        answer = self.user("admin").ask(CREATE_ACLS, 3, creations=(nested(CREATE_ACLS, 3, "AclCreation", **rule),))
        self.settle()
        return int(answer.results[0].error_code)

    def create(
        self, user: str, name: str = "", version: int = 3, owner: tuple[str | None, str | None] = ("", ""),
        renewers: tuple[tuple[str, str], ...] = (), lifetime: int = -1, by: WireClient | None = None,
    ) -> Any:  # fmt: skip
        """CreateDelegationToken; a token that is made gets the name."""
        begun = time.time()
        fields = {
            "owner_principal_type": owner[0],
            "owner_principal_name": owner[1],
            "renewers": tuple(
                nested(CREATE, version, "CreatableRenewers", principal_type=kind, principal_name=renewer)
                for kind, renewer in renewers
            ),
            "max_lifetime": timedelta(milliseconds=lifetime),
        }
        answer = token_answers.created(version, self._ask(by or self.user(user), CREATE, version, **fields))
        row = [answer["code"], *answer["who"], *(ahead(at, begun) for at in answer["times"])]
        token_id, token_hmac = answer["token_id"], answer["hmac"]
        if not answer["code"]:
            self.ids[name or f"token {len(self.ids)}"] = token_id
            self.settle()
            row.append("right" if token_hmac == hmac_of(token_id) else "another HMAC")
        return [*row, len(token_id), len(token_hmac)]

    def renew(self, user: str, token: str, period: int = -1, version: int = 2, by: WireClient | None = None) -> Any:
        """RenewDelegationToken of a named token; any other text is an HMAC that there is not."""
        begun, period_ms = time.time(), timedelta(milliseconds=period)
        fields = {"hmac": self._hmac(token), "renew_period": period_ms}
        return self._changed(version, self._ask(by or self.user(user), RENEW, version, **fields), begun)

    def expire(self, user: str, token: str, period: int = -1, version: int = 2, by: WireClient | None = None) -> Any:
        """ExpireDelegationToken, as above."""
        begun, period_ms = time.time(), timedelta(milliseconds=period)
        fields = {"hmac": self._hmac(token), "expiry_time_period": period_ms}
        return self._changed(version, self._ask(by or self.user(user), EXPIRE, version, **fields), begun)

    def _ask(self, client: WireClient, api_key: int, version: int, **fields: Any) -> bytes:
        return client.ask_body(api_key, version, encode_request(api_key, version, **fields))

    def _changed(self, version: int, payload: bytes, begun: float) -> Any:
        code, expiry = token_answers.changed(version, payload)
        if not code:
            self.settle()
        return [code, ahead(expiry, begun)]

    def _hmac(self, token: str) -> bytes:
        return hmac_of(self.ids[token]) if token in self.ids else token.encode()

    def describe(
        self, user: str, owners: tuple[str, ...] | None, version: int = 3, by: WireClient | None = None
    ) -> Any:
        """DescribeDelegationToken: tokens by their names, in order."""
        begun, names = time.time(), {token_id: name for name, token_id in self.ids.items()}
        principals = owners and tuple(
            nested(DESCRIBE, version, "DescribeDelegationTokenOwner", principal_type=kind, principal_name=owner)
            for kind, owner in (text.split(":", 1) for text in owners)
        )
        answer = (by or self.user(user)).ask(DESCRIBE, version, owners=principals)
        rows = []
        for token in answer.tokens:
            who = [token.principal_type, token.principal_name]
            if version >= 3:
                who += [token.token_requester_principal_type, token.token_requester_principal_name]
            times = [token.issue_timestamp, token.expiry_timestamp, token.max_timestamp]
            renewers = [[each.principal_type, each.principal_name] for each in token.renewers]
            right = bytes(token.hmac) == hmac_of(token.token_id)
            rows.append([names[token.token_id], *who, *(ahead(at, begun) for at in times), renewers, right])
        return [int(answer.error_code), *sorted(rows)]

    def log_in(self, token: str, mechanism: str = "SCRAM-SHA-256") -> WireClient:
        """A connection that has logged in by a named token."""
        token_id = self.ids[token]
        return self.log_in_as(token_id, token_password(token_id), mechanism)

    def log_in_as(
        self, user: str, word: str, mechanism: str = "SCRAM-SHA-256", extensions: str = ",tokenauth=true"
    ) -> WireClient:
        """A connection that has logged in by SCRAM."""
        return self.connected().scram(mechanism, user, word, extensions)


def token_password(token_id: str) -> str:
    """What proves a token in a login: its HMAC in base64."""
    import base64

    return base64.b64encode(hmac_of(token_id)).decode()


def outcome(action: Any) -> Any:
    """What an action gives, or how it failed."""
    try:
        return action()
    except ClosedError:
        return "closed"
    except RefusedError as error:
        return str(error)


def ahead(at: int, begun: float) -> str:
    """A time in ms by how many minutes, to the nearest five, it lies ahead of `begun`, or what stands for none."""
    return f"none ({at})" if at in (0, -1) else f"in {5 * round((at / 1000 - begun) / 300)} min"
