"""Images made in every way there is: from objects, from records in columns, and by changes and merges."""

from collections.abc import Sequence
from random import Random
from uuid import UUID

import numpy as np
from attrs import evolve

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.codec import encode_record
from aclog.metalog.columns import read_acls
from tests.support.builders.acls import record_of, removal_of

_STEP = 0x9E3779B97F4A7C15F39CC0605CEDC835


def with_ids(acls: Sequence[StandardAcl], *, first: int = 2) -> list[StandardAclWithId]:
    """The rules with ids that are spread out, and the same in every run."""
    return [StandardAclWithId(id=UUID(int=n * _STEP % (1 << 128)), acl=acl) for n, acl in enumerate(acls, first)]


def columns_of(rules: Sequence[StandardAclWithId]):
    """The rules' records in one buffer with other bytes between them, as columns."""
    values = [encode_record(record_of(rule)) for rule in rules]
    buffer, starts = bytearray(b"\xff" * 7), []
    for value in values:
        starts.append(len(buffer))
        buffer += value + b"\xff\x00\xff"
    starts = np.array(starts, np.int64)
    ends = starts + np.array([len(value) for value in values], np.int64)
    columns, unread = read_acls(bytes(buffer), starts, ends)
    assert not len(unread)
    return columns


def by_changes(rules: Sequence[StandardAclWithId], random: Random) -> AclsImage:
    """The rules reached by a detour: some in the base, some added, others added and removed, merged now and then."""
    acls = {rule.acl for rule in rules}
    junk = []
    for rule in rules:
        for other in (
            evolve(rule.acl, principal="User:junk"),
            evolve(rule.acl, operation=(rule.acl.operation + 1) % 16),
            evolve(rule.acl, resource_name=rule.acl.resource_name[:-1]),
        ):
            if other not in acls and random.random() < 0.5:
                acls.add(other)
                junk.append(StandardAclWithId(id=UUID(int=random.getrandbits(128)), acl=other))
    in_base = [rule for rule in [*rules, *junk] if random.random() < 0.5]
    image = AclsImage.from_acls(in_base)
    added = [rule for rule in [*rules, *junk] if rule not in in_base]
    random.shuffle(added)
    removed = junk[:]
    random.shuffle(removed)
    for changes in (list(map(record_of, added)), list(map(removal_of, removed))):
        while changes:
            size = random.choice((1, 2, 7, 50))
            image = image.apply(changes[:size])
            del changes[:size]
            if random.random() < 0.1:
                image = image.merged()
    return image
