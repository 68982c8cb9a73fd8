"""CreateAcls requests as clients send them, decoded without kio: the requests of which a controller gets the most."""

from attrs import frozen

from aclog.authorizer.acl import StandardAcl

_SINCE = 2
"""The first flexible version; older ones are left to kio."""


@frozen
class CreateAclsRequest:
    """The body of a CreateAclsRequest (versions 2 and 3), whose creations are ACLs already."""

    creations: tuple[StandardAcl, ...]


def decode_create_acls(version: int, buffer: bytes, position: int) -> CreateAclsRequest | None:
    """Decode the body of a common request; None for what must be read, or refused, by aclog.nodes.wire.messages.

    Common are requests of up to 126 ACLs whose strings have up to 126 bytes and whose codes are no negative numbers,
    without tagged fields.
    """
    if version < _SINCE:
        return None
    found = []
    try:
        count, at = buffer[position] - 1, position + 1
        for _ in range(count):
            kind, size, name = buffer[at], buffer[at + 1], at + 2
            pattern = name + size - 1
            principal_size, principal = buffer[pattern + 1], pattern + 2
            # Every length is assumed to have one byte; a length of two has its high bit set, and is rejected below.
            host_at = principal + principal_size - 1
            host_size, host = buffer[host_at], host_at + 1
            end = host + host_size - 1
            operation, permission, tags = buffer[end], buffer[end + 1], buffer[end + 2]
            codes = kind | buffer[pattern] | operation | permission
            if (codes | count | size | principal_size | host_size) > 0x7F or tags:
                return None
            if not (size and principal_size and host_size):
                return None
            found.append(
                StandardAcl(
                    resource_type=kind,
                    resource_name=buffer[name:pattern].decode(),
                    pattern_type=buffer[pattern],
                    principal=buffer[principal:host_at].decode(),
                    host=buffer[host:end].decode(),
                    operation=operation,
                    permission_type=permission,
                )
            )
            at = end + 3
        # A count of -1 is null, and needs no look at what follows.
        return None if count < 0 or count > 0x7E or buffer[at] else CreateAclsRequest(tuple(found))
    except (IndexError, ValueError):
        return None  # truncated, or not UTF-8
