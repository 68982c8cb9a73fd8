"""SCRAM credentials and delegation tokens as directories: as JSON, and under `/image` as in Kafka's shell."""

from base64 import b64encode
from collections.abc import Callable

from aclog.credentials.scram import CredentialInfo, ScramImage, ScramMechanism
from aclog.credentials.tokens import TokensImage
from aclog.metalog.records import DelegationTokenRecord, UserScramCredentialRecord
from aclog.shell.kafka_text import HIDDEN, scram_text, token_text
from aclog.shell.tree_nodes import Directory, Node, directory, file, fixed
from aclog.terminal.json_text import json_text


def scram_directory(scram: ScramImage, *, show_secrets: bool) -> Directory:
    """Return `/scram/<user>/<mechanism>`: each credential as JSON, with secrets in base64 or hidden.

    A credential whose keys the source does not reveal (the admin API) has no fields for them.
    """

    def user(name: str) -> Node | None:
        """Return a user's credentials by mechanism; None if there are none."""
        records = {mechanism_name(r.mechanism): r for r in scram.records() if r.name == name}
        texts = {mechanism: file(_scram_json(r, show_secrets=show_secrets)) for mechanism, r in records.items()}
        keyless = (info for each in scram.keyless if each.user == name for info in each.credential_infos)
        texts |= {mechanism_name(info.mechanism): file(_keyless_json(name, info)) for info in keyless}
        return fixed(texts) if texts else None

    return directory(lambda: {each.user for each in scram.describe()}, user)


def kafka_scram_directory(scram: ScramImage, *, show_secrets: bool) -> Directory:
    """Return `/image/scram/<mechanism>/<user>` (ScramImageNode); credentials without keys are left out."""

    def mechanism(name: str) -> Node | None:
        """Return the users of a mechanism; None if the name is unknown."""
        code = next((code for code in _mechanisms(scram) if mechanism_name(code) == name), None)
        return None if code is None else directory(lambda: users(code), lambda user: credential(user, code))

    def users(code: int) -> list[str]:
        return [record.name for record in scram.records() if record.mechanism == code]

    def credential(user: str, code: int) -> Node | None:
        """Return a user's credential for a mechanism."""
        record = scram.get(user, code)
        return None if record is None else file(scram_text(record, show_secrets=show_secrets))

    return directory(lambda: map(mechanism_name, _mechanisms(scram)), mechanism)


def token_directory(tokens: TokensImage) -> Directory:
    """Return `/delegationToken/<id>`: each token as JSON. The HMAC, which is the secret, is not in the log."""
    return _tokens(tokens, _token_json)


def kafka_token_directory(tokens: TokensImage) -> Directory:
    """Return `/image/delegationToken/<id>` (DelegationTokenImageNode)."""
    return _tokens(tokens, token_text)


def mechanism_name(code: int) -> str:
    """Return the SASL name of a mechanism, such as `SCRAM-SHA-256`; the code itself if it is unknown."""
    try:
        return ScramMechanism(code).mechanism_name
    except ValueError:
        return str(code)


def _mechanisms(scram: ScramImage) -> set[int]:
    """Return the known mechanisms and those of the image."""
    return {*ScramMechanism, *(record.mechanism for record in scram.records())}


def _keyless_json(user: str, info: CredentialInfo) -> str:
    return json_text({"name": user, "mechanism": mechanism_name(info.mechanism), "iterations": info.iterations})


def _scram_json(record: UserScramCredentialRecord, *, show_secrets: bool) -> str:
    def secret(value: bytes) -> str:
        return b64encode(value).decode("ascii") if show_secrets else HIDDEN

    return json_text(
        {
            "name": record.name,
            "mechanism": mechanism_name(record.mechanism),
            "iterations": record.iterations,
            "salt": secret(record.salt),
            "storedKey": secret(record.stored_key),
            "serverKey": secret(record.server_key),
        }
    )


def _tokens(tokens: TokensImage, text: Callable[[DelegationTokenRecord], str]) -> Directory:
    def child(name: str) -> Node | None:
        """Return the token with this id."""
        record = tokens.get(name)
        return None if record is None else file(text(record))

    return directory(lambda: (record.token_id for record in tokens.records()), child)


def _token_json(record: DelegationTokenRecord) -> str:
    return json_text(
        {
            "tokenId": record.token_id,
            "owner": record.owner,
            "requester": record.requester,
            "renewers": record.renewers,
            "issueTimestamp": record.issue_timestamp,
            "expiryTimestamp": record.expiration_timestamp,
            "maxTimestamp": record.max_timestamp,
        }
    )
