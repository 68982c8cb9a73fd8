"""Sample entries of access states."""

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.records import DelegationTokenRecord, UserScramCredentialRecord

ACL = StandardAcl(
    resource_type=ResourceType.TOPIC, resource_name="t", pattern_type=PatternType.LITERAL, principal="User:ann",
    host="*", operation=AclOperation.READ, permission_type=AclPermissionType.ALLOW,
)  # fmt: skip
CREDENTIAL = UserScramCredentialRecord(
    name="ann", mechanism=ScramMechanism.SCRAM_SHA_256, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
)
TOKEN = DelegationTokenRecord(
    owner="User:ann", requester="User:ann", renewers=(), issue_timestamp=1, max_timestamp=3, expiration_timestamp=2,
    token_id="t",
)  # fmt: skip
