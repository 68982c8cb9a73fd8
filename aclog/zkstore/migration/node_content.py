"""What single znodes contribute to the access state, and all of them together, with a reason for each omission."""

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acl_records import record_of
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.records import DelegationTokenRecord, MetadataRecord, UserScramCredentialRecord
from aclog.zkstore.migration.access_state import AccessState, CredentialKey
from aclog.zkstore.znodes.acl_json import decode_acls
from aclog.zkstore.znodes.paths import KIP_TOKENS_PATH, LEGACY_GROUP_DIRECTORIES, TOKENS_PATH, USERS_PATH, pattern_of
from aclog.zkstore.znodes.scram_config import decode_credential, decode_user_config, user_of_node, user_path
from aclog.zkstore.znodes.token_json import decode_token, token_path

_ANY_ID = UUID(int=2)
_LEGACY = (
    "ACLs of a group in a legacy directory, which Kafka 3.9 does not read: move them to the directory Group if they "
    "are to apply, or delete the node"
)


@frozen(kw_only=True)
class LeftOut:
    """An entry that is not migrated, and why. `unreadable` ones may be ACLs or credentials that are in use."""

    path: str
    reason: str
    unreadable: bool

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@frozen(kw_only=True)
class NodeContent:
    """What a znode contributes to the access state."""

    acls: frozenset[StandardAcl] = frozenset()
    credentials: tuple[UserScramCredentialRecord, ...] = ()
    token: DelegationTokenRecord | None = None
    left_out: tuple[LeftOut, ...] = ()


@frozen(kw_only=True)
class StoreState:
    """The access state of a whole store, and the entries that are not part of it."""

    state: AccessState
    left_out: tuple[LeftOut, ...]

    @property
    def unreadable(self) -> tuple[LeftOut, ...]:
        """Omitted entries that may be ACLs or credentials that are in use."""
        return tuple(each for each in self.left_out if each.unreadable)


def node_content(path: str, data: bytes, *, has_children: bool = False) -> NodeContent:
    """Decode the znode of a resource, a user or a token; entries that cannot be decoded are left out, with a reason."""
    try:
        if path.startswith(f"{USERS_PATH}/"):
            return _user(path, data, has_children=has_children)
        if path.startswith((f"{TOKENS_PATH}/", f"{KIP_TOKENS_PATH}/")):
            token = decode_token(data, path)
            _check([token])
            return NodeContent(token=token)
        return _acls(path, data, has_children=has_children)
    except (DecodeError, EncodeError) as error:
        return NodeContent(left_out=(_unreadable(path, error),))


def _acls(path: str, data: bytes, *, has_children: bool) -> NodeContent:
    pattern = pattern_of(path)
    acls = frozenset(entry.on(pattern) for entry in decode_acls(data, path=path))
    _check([record_of(acl, _ANY_ID) for acl in acls])
    # Kafka 3.9 ignores these: migrating them could allow what is denied today, dropping them could lose a wanted DENY.
    if acls and path.split("/")[-2] in LEGACY_GROUP_DIRECTORIES:
        return NodeContent(left_out=(LeftOut(path=path, reason=_LEGACY, unreadable=True),))
    if not has_children:
        return NodeContent(acls=acls)
    reason = "child nodes, of a resource with / in its name, which Kafka 3.9 does not read"
    return NodeContent(acls=acls, left_out=(LeftOut(path=f"{path}/*", reason=reason, unreadable=False),))


def _check(records: Sequence[MetadataRecord]) -> None:
    """Check that records can be encoded. Raises EncodeError."""
    for record in records:
        encode_record(record)


def _user(path: str, data: bytes, *, has_children: bool) -> NodeContent:
    user = user_of_node(path.removeprefix(f"{USERS_PATH}/"))
    config = decode_user_config(data, path)
    left_out = list(_quotas(path, config.others, has_children=has_children))
    credentials = []
    for mechanism, text in config.credentials():
        try:
            credential = decode_credential(_checked_user(user), mechanism, text)
            _check([credential])
        except (DecodeError, EncodeError) as error:
            left_out.append(_unreadable(path, error))
        else:
            credentials.append(credential)
    return NodeContent(credentials=tuple(credentials), left_out=tuple(left_out))


def _checked_user(user: str | None) -> str:
    if user is None:
        raise DecodeError("a SCRAM credential in the default entity: expected it in the node of a user")
    return user


def _quotas(path: str, names: Sequence[str], *, has_children: bool) -> Iterator[LeftOut]:
    if names:
        reason = f"{', '.join(names)}: client quotas are not migrated"
        yield LeftOut(path=path, reason=reason, unreadable=False)
    if has_children:
        reason = "quotas of the user's client ids are not migrated"
        yield LeftOut(path=f"{path}/clients", reason=reason, unreadable=False)


def _unreadable(path: str, error: DecodeError | EncodeError) -> LeftOut:
    if isinstance(error, DecodeError):  # without its path, which LeftOut has
        error = DecodeError(error.what, position=error.position)
    return LeftOut(path=path, reason=str(error), unreadable=True)


def unknown_directory(path: str) -> LeftOut:
    """Return the omission of a directory below the ACL roots that Kafka 3.9 ignores too."""
    return LeftOut(path=path, reason="not a resource type or pattern type of Kafka 3.9", unreadable=False)


def store_state(contents: Mapping[str, NodeContent], directories: Sequence[str]) -> StoreState:
    """Combine the contents of all znodes. `directories` are those of no known resource type.

    If two znodes hold the same credential or token, the one with the name that Kafka would give it wins, and the other
    is left out.
    """
    acls: set[StandardAcl] = set()
    left_out = [*map(unknown_directory, directories)]
    for content in contents.values():
        acls |= content.acls
        left_out += content.left_out
    state = AccessState(
        acls=frozenset(acls), credentials=_credentials(contents, left_out), tokens=_tokens(contents, left_out)
    )
    return StoreState(state=state, left_out=tuple(sorted(left_out, key=str)))


def _credentials(
    contents: Mapping[str, NodeContent], left_out: list[LeftOut]
) -> dict[CredentialKey, UserScramCredentialRecord]:
    found: dict[CredentialKey, tuple[str, UserScramCredentialRecord]] = {}
    every = [(path, record) for path, content in contents.items() for record in content.credentials]
    for path, record in sorted(every, key=lambda pair: (pair[0] != user_path(pair[1].name), pair[0])):
        first, _ = found.setdefault((record.name, record.mechanism), (path, record))
        if first != path:
            reason = f"a credential of user {record.name!r}, who also has one in {first}"
            left_out.append(LeftOut(path=path, reason=reason, unreadable=True))
    return {key: record for key, (_, record) in found.items()}


def _tokens(contents: Mapping[str, NodeContent], left_out: list[LeftOut]) -> dict[str, DelegationTokenRecord]:
    found: dict[str, tuple[str, DelegationTokenRecord]] = {}
    every = [(path, content.token) for path, content in contents.items() if content.token is not None]
    for path, token in sorted(every, key=lambda pair: (pair[0] != token_path(pair[1].token_id), pair[0])):
        first, _ = found.setdefault(token.token_id, (path, token))
        if first != path:
            reason = f"token {token.token_id!r}, which is also in {first}"
            left_out.append(LeftOut(path=path, reason=reason, unreadable=True))
    return {token_id: token for token_id, (_, token) in found.items()}
