"""The flat form of a base is a file format: image files of one version are read by every aclog of that version."""

from hashlib import blake2b

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.layout import VERSION
from tests.support.builders.images import with_ids

PINNED = {1: "cc9d887f70d5bda142adb102df99d65c"}
"""By version: the digest of the base of these rules."""

NAMES = ("orders", "orders.eu", "orders.eu.berlin", "*", "**", "é", "結", "😀", "x" * 300, "p")


def rules():
    """Every resource type, operation and permission, codes that none of them has, ranges, and a missing colon."""
    for number in range(3000):
        yield StandardAcl(
            resource_type=number % 8,
            resource_name=f"{NAMES[number % len(NAMES)]}{number // 40 if number % 3 else ''}",
            pattern_type=3 + number % 2 if number % 50 else 7,
            principal=f"User:{number % 97}" if number % 101 else "no colon",
            host=("*", "10.0.0.1", "10.0.0.0/8")[number % 3],
            operation=number % 17,
            permission_type=2 + number % 2,
        )


def test_a_change_of_the_bytes_takes_another_version():
    """If this fails: raise VERSION in layout.py, and pin the new digest; else old image files would be misread."""
    found = AclsImage.from_acls(with_ids(list(dict.fromkeys(rules())))).index.base.buffer
    assert {VERSION: blake2b(found, digest_size=16).hexdigest()} == PINNED
