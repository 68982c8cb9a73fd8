"""What one node of a store carries, and all of them together: pure, with a reason for whatever is left out."""

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acl_records import record_of
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.records import DelegationTokenRecord, MetadataRecord, UserScramCredentialRecord
from aclog.zkstore.acl_json import decode_acls
from aclog.zkstore.migration.access_state import AccessState, CredentialKey
from aclog.zkstore.paths import LEGACY_GROUP_DIRECTORIES, pattern_of
from aclog.zkstore.scram_config import USERS_PATH, decode_credential, decode_user_config, user_of_node, user_path
from aclog.zkstore.token_json import KIP_TOKENS_PATH, TOKENS_PATH, decode_token, token_path

_ANY_ID = UUID(int=2)
_LEGACY = (
    "rules of a group under KIP-11's first name for groups, where Kafka 3.9 does not look: expected them under Group "
    "if they are to hold"
)


@frozen(kw_only=True)
class LeftOut:
    """An entry that is not carried over, and why. `unreadable`: it may be a rule or a login that counts."""

    path: str
    reason: str
    unreadable: bool

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@frozen(kw_only=True)
class NodeContent:
    """What a node carries, in the order of the node."""

    acls: frozenset[StandardAcl] = frozenset()
    credentials: tuple[UserScramCredentialRecord, ...] = ()
    token: DelegationTokenRecord | None = None
    left_out: tuple[LeftOut, ...] = ()


@frozen(kw_only=True)
class StoreState:
    """What a whole store carries, and what it does not."""

    state: AccessState
    left_out: tuple[LeftOut, ...]

    @property
    def unreadable(self) -> tuple[LeftOut, ...]:
        """What may be a rule or a login that counts."""
        return tuple(each for each in self.left_out if each.unreadable)


def node_content(path: str, data: bytes, *, has_children: bool = False) -> NodeContent:
    """What a node of a rule, a user or a token carries; what cannot be read of it is left out, with the reason."""
    try:
        if path.startswith(f"{USERS_PATH}/"):
            return _user(path, data, has_children=has_children)
        if path.startswith((f"{TOKENS_PATH}/", f"{KIP_TOKENS_PATH}/")):
            token = decode_token(data, path)
            _check([token])
            return NodeContent(token=token)
        return _rules(path, data, has_children=has_children)
    except (DecodeError, EncodeError) as error:
        return NodeContent(left_out=(_unreadable(path, error),))


def _rules(path: str, data: bytes, *, has_children: bool) -> NodeContent:
    pattern = pattern_of(path)
    acls = frozenset(entry.on(pattern) for entry in decode_acls(data, path=path))
    _check([record_of(acl, _ANY_ID) for acl in acls])
    if acls and path.split("/")[-2] in LEGACY_GROUP_DIRECTORIES:
        return NodeContent(left_out=(LeftOut(path=path, reason=_LEGACY, unreadable=True),))
    if not has_children:
        return NodeContent(acls=acls)
    reason = "nodes below it, for a resource with / in its name: Kafka 3.9 does not read them back"
    return NodeContent(acls=acls, left_out=(LeftOut(path=f"{path}/*", reason=reason, unreadable=False),))


def _check(records: Sequence[MetadataRecord]) -> None:
    """Return if a log can hold these. Raises EncodeError."""
    for record in records:
        encode_record(record)


def _user(path: str, data: bytes, *, has_children: bool) -> NodeContent:
    user = user_of_node(path.removeprefix(f"{USERS_PATH}/"))
    config = decode_user_config(data, path)
    left_out = list(_quotas(path, config.others, has_children=has_children))
    credentials = []
    for mechanism, text in config.credentials():
        try:
            credential = decode_credential(_named(user), mechanism, text)
            _check([credential])
        except (DecodeError, EncodeError) as error:
            left_out.append(_unreadable(path, error))
        else:
            credentials.append(credential)
    return NodeContent(credentials=tuple(credentials), left_out=tuple(left_out))


def _named(user: str | None) -> str:
    if user is None:
        raise DecodeError("a credential that would be everybody's: expected one of a user")
    return user


def _quotas(path: str, names: Sequence[str], *, has_children: bool) -> Iterator[LeftOut]:
    if names:
        reason = f"{', '.join(names)}: client quotas are not carried over"
        yield LeftOut(path=path, reason=reason, unreadable=False)
    if has_children:
        reason = "client quotas of the user's clients are not carried over"
        yield LeftOut(path=f"{path}/clients", reason=reason, unreadable=False)


def _unreadable(path: str, error: DecodeError | EncodeError) -> LeftOut:
    if isinstance(error, DecodeError):
        error = DecodeError(error.what, position=error.position)
    return LeftOut(path=path, reason=str(error), unreadable=True)


def unknown_directory(path: str) -> LeftOut:
    """A directory among those of the rules that Kafka 3.9 passes over as well."""
    return LeftOut(path=path, reason="no resource type or pattern type that Kafka 3.9 knows", unreadable=False)


def store_state(contents: Mapping[str, NodeContent], directories: Sequence[str]) -> StoreState:
    """All nodes together. `directories` are those of no known type.

    Where two nodes tell of one credential or one token, that of the name that Kafka gives it holds, and the other is
    left out.
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
            reason = f"a credential of {record.name!r}, whom {first} has one of, too"
            left_out.append(LeftOut(path=path, reason=reason, unreadable=True))
    return {key: record for key, (_, record) in found.items()}


def _tokens(contents: Mapping[str, NodeContent], left_out: list[LeftOut]) -> dict[str, DelegationTokenRecord]:
    found: dict[str, tuple[str, DelegationTokenRecord]] = {}
    every = [(path, content.token) for path, content in contents.items() if content.token is not None]
    for path, token in sorted(every, key=lambda pair: (pair[0] != token_path(pair[1].token_id), pair[0])):
        first, _ = found.setdefault(token.token_id, (path, token))
        if first != path:
            reason = f"token {token.token_id!r}, which {first} holds, too"
            left_out.append(LeftOut(path=path, reason=reason, unreadable=True))
    return {token_id: token for token_id, (_, token) in found.items()}
