"""Clusters, SCRAM users, the quorum and its log, envelopes, what is not allowed and what is malformed."""

import struct
from collections.abc import Iterator
from uuid import UUID

from attrs import evolve

from tests.support.admin.requests import (
    ALTER_SCRAM,
    BOTH,
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    DESCRIBE_SCRAM,
    ENVELOPE,
    FETCH,
    HANDSHAKE,
    METADATA,
    QUORUM,
    QUOTAS,
    Send,
    Step,
    alter,
    cluster,
    create,
    delete,
    describe,
    described,
    envelope,
    exactly,
    fetch,
    matching,
    metadata,
    quorum_topic,
    removal,
    rule,
    send,
    unknown,
    upsert,
    versions,
)
from tests.support.nodes.server_properties import CLUSTER_ID
from tests.support.nodes.wire_client import nested, request_header


def clusters() -> Iterator[Step]:
    for user in ("admin", "alice"):
        for version in range(14):
            yield Step(name=f"Metadata v{version}", user=user, sends=(metadata(version, ()),))
        yield Step(name="Metadata of all topics", user=user, sends=(metadata(13, None),))
        names = ("missing", "bad/name", "", "x" * 250)
        for version in (4, 9, 12, 13):
            yield Step(name=f"Metadata v{version} of topics", user=user, sends=(metadata(version, names[:2]),))
        for listener in BOTH:
            for version, endpoint in ((0, 1), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (2, 3), (2, -1)):
                ask = send(DESCRIBE_CLUSTER, version, **cluster(endpoint, fenced=version == 2))
                about = f"DescribeCluster v{version} of endpoints {endpoint}"
                yield Step(name=about, listener=listener, user=user, sends=(ask,))
    for user in ("admin", "alice"):
        for match, kind in ((2, "user"), (0, "user"), (0, "client-id"), (1, "ip"), (9, "user"), (2, "planet")):
            about = {"entity_type": kind, "match_type": match, "match": "x" if match == 0 else None}
            component = nested(QUOTAS, 1, "ComponentData", **about)
            name = f"DescribeClientQuotas {kind} {match}"
            yield Step(name=name, user=user, sends=(send(QUOTAS, 1, components=(component,), strict=True),))
        yield Step(name="no quotas", user=user, sends=(send(QUOTAS, 0, components=(), strict=False),))


def not_authorized() -> Iterator[Step]:
    asks = {
        "create": create(3, rule(principal="User:never"), rule(principal="bad")),
        "create nothing": create(3),
        "describe": describe(3, resource_type_filter=3),
        "describe what is not": describe(3, pattern_type_filter=77),
        "delete": delete(3, matching(principal_filter="User:never"), matching(pattern_type_filter=77)),
        "delete nothing": delete(1),
        "alter SCRAM users": alter(upserts=(upsert("never"), upsert(""))),
        "describe the quorum": send(QUORUM, 2, topics=(quorum_topic(2),)),
    }
    rights = {"nothing": (), "DESCRIBE": (8,), "ALTER": (7,), "ALL but DESCRIBE": (2, 8), "CLUSTER_ACTION": (9,)}
    for right, operations in rights.items():
        for number, operation in enumerate(operations):
            row = rule(resource_type=4, resource_name="kafka-cluster", principal="User:carol", operation=operation)
            row |= {"permission_type": 3 if number == 0 else 2}
            yield Step(name=f"carol's right to {operation}", sends=(create(3, row),))
        for name, ask in asks.items():
            for listener in BOTH:
                yield Step(name=f"{name}: carol may {right}", listener=listener, user="carol", sends=(ask,))
        about = matching(resource_type_filter=4, principal_filter="User:carol")
        yield Step(name=f"carol may no longer {right}", sends=(delete(3, about),))
    for host, who in (("127.0.0.1", "User:dave"), ("10.9.9.9", "User:bob")):
        row = rule(resource_type=4, resource_name="kafka-cluster", principal=who, operation=8, host=host)
        yield Step(name=f"{who} from {host}", sends=(create(3, row),))
    for user in ("dave", "bob"):
        for listener in BOTH:
            yield Step(name="describe one", listener=listener, user=user, sends=(describe(3, resource_type_filter=3),))
        yield Step(name="SCRAM users", user=user, sends=(described(("admin", "nobody")),))


def malformed() -> Iterator[Step]:
    for key, name in ((CREATE_ACLS, "CreateAcls"), (DESCRIBE_ACLS, "DescribeAcls"), (DELETE_ACLS, "DeleteAcls")):
        for version in (-1, 0, 4, 100):
            ask = unknown(key, version, b"\1\0", flexible=True, decode_as=(key, 3))
            yield Step(name=f"{name} v{version}", sends=(ask,))
    good = create(3, rule(principal="User:malformed"))
    for size in (0, 1, 5, len(good.body) - 1):
        yield Step(name=f"CreateAcls cut at {size}", sends=(evolve(good, body=good.body[:size]),))
    yield Step(name="bytes too many", sends=(evolve(good, body=good.body + b"more"),))
    tag = b"\1\x63\3abc"
    yield Step(name="an unknown tag in the body", sends=(evolve(good, body=good.body[:-1] + tag),))
    yield Step(name="an unknown tag in a rule", sends=(evolve(good, body=good.body[:-2] + tag + b"\0"),))
    head = request_header(CREATE_ACLS, 3, 7)[:-1] + tag
    yield Step(name="an unknown tag in the header", sends=(Send(frame=head + good.body, decode_as=(CREATE_ACLS, 3)),))
    for count in (b"\0", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff"):
        yield Step(name=f"an array of {count.hex()}", sends=(evolve(good, body=count + good.body[1:]),))
    plain = create(1, rule())
    for count in (-1, -2, 2, 2**31 - 1):
        body = struct.pack(">i", count) + plain.body[4:]
        yield Step(name=f"an array of {count} in v1", sends=(evolve(plain, body=body),))
    nulled = b"\2\2\0" + good.body[9:]
    yield Step(name="a null resource name", sends=(evolve(good, body=nulled),))
    raw = good.body.replace(b"orders", b"or\xff\xfers")
    yield Step(name="a resource name that is not UTF-8", sends=(evolve(good, body=raw),))
    yield Step(name="Metadata to the controller", listener="controller", sends=(metadata(13, ()),))
    yield Step(
        name="quotas of the controller", listener="controller", sends=(send(QUOTAS, 1, components=(), strict=True),)
    )
    yield Step(name="an envelope to the broker", sends=(envelope(create(3, rule())),))
    for key, version in ((METADATA, 14), (DESCRIBE_CLUSTER, 3), (ALTER_SCRAM, 1), (DESCRIBE_SCRAM, 1), (HANDSHAKE, 7)):
        ask = unknown(key, version, b"\0\0\0", flexible=True, decode_as=(key, 0))
        yield Step(name=f"API {key} v{version}", sends=(ask,))
    yield Step(name="an API of number 500, logged in", sends=(unknown(500, 0, flexible=False, decode_as=(3, 0)),))
    what = ("DescribeAcls", DESCRIBE_ACLS), ("CreateAcls", CREATE_ACLS)
    for name, key in what:
        ask = unknown(key, 9, b"\1\0", flexible=True, decode_as=(key, 3))
        yield Step(name=f"{name} v9 to the controller", listener="controller", sends=(ask,))
    yield Step(name="after all that", sends=(describe(3, principal_filter="User:malformed"),))


def envelopes() -> Iterator[Step]:
    inner = create(3, rule(principal="User:enveloped"), rule(principal="bad"))
    to = {"listener": "controller"}
    yield Step(name="envelope of the super user", **to, sends=(envelope(inner),))
    yield Step(name="envelope of another", **to, sends=(envelope(inner, "alice"),))
    yield Step(name="envelope from one who may not", **to, user="alice", sends=(envelope(inner),))
    yield Step(name="envelope without a principal", **to, sends=(envelope(inner, None),))
    for host in (b"", b"\1\2\3", b"\x0a\1\2\3", bytes(15) + b"\1", bytes(16), bytes(17)):
        yield Step(name=f"envelope from host {host.hex()}", **to, sends=(envelope(inner, "bob", host),))
    own = rule(resource_type=4, resource_name="kafka-cluster", principal="User:bob", operation=7, host="10.1.2.3")
    yield Step(name="bob may alter from 10.1.2.3", sends=(create(3, own),))
    yield Step(name="envelope from that host", **to, sends=(envelope(inner, "bob", b"\x0a\1\2\3"),))
    yield Step(name="envelope from another host", **to, sends=(envelope(inner, "bob", b"\x0a\1\2\4"),))
    yield Step(name="bob may not", sends=(delete(3, exactly(own)),))
    for name, ask in (("a description", describe(3, principal_filter="User:enveloped")), ("versions", versions(3))):
        yield Step(name=f"envelope of {name}", **to, sends=(envelope(ask),))
    yield Step(name="envelope of a fetch", **to, sends=(envelope(fetch(17, epoch=1)),))
    yield Step(name="envelope of an envelope", **to, sends=(envelope(envelope(inner)),))
    yield Step(name="envelope of a deletion", **to, sends=(envelope(delete(2, matching(principal_filter="User:x"))),))
    yield Step(name="envelope of a SCRAM user", **to, sends=(envelope(alter(upserts=(upsert("env"),))),))
    yield Step(name="envelope of garbage", **to, sends=(envelope(inner, frame=b"\xff\xff\xff"),))
    yield Step(name="envelope of nothing", **to, sends=(envelope(inner, frame=b""),))
    later = evolve(inner, version=9, flexible=True)
    yield Step(name="envelope of CreateAcls v9", **to, sends=(envelope(later),))
    wrong = send(ENVELOPE, 0, request_data=b"", request_principal=b"\0\7xx", client_host_address=b"\x7f\0\0\1")
    yield Step(name="envelope of an unknown kind of principal", **to, sends=(wrong,))


def quorums() -> Iterator[Step]:
    for listener in BOTH:
        for version in (0, 1, 2):
            ask = send(QUORUM, version, topics=(quorum_topic(version),))
            yield Step(name=f"DescribeQuorum v{version}", listener=listener, sends=(ask,))
        for name, partition in (("other", 0), ("__cluster_metadata", 1)):
            ask = send(QUORUM, 2, topics=(quorum_topic(2, name, partition),))
            yield Step(name=f"DescribeQuorum of {name}-{partition}", listener=listener, sends=(ask,))
        yield Step(name="DescribeQuorum of nothing", listener=listener, sends=(send(QUORUM, 2, topics=()),))
        yield Step(
            name="who may not", listener=listener, user="alice", sends=(send(QUORUM, 2, topics=(quorum_topic(2),)),)
        )


def fetches() -> Iterator[Step]:
    asks = {
        "v4": fetch(4, epoch=1),
        "v12": fetch(12, epoch=1),
        "v13 of an old epoch": fetch(13, epoch=0),
        "v17 of an old epoch": fetch(17, epoch=0),
        "v18 of an old epoch": fetch(18, epoch=0),
        "an epoch to come": fetch(17, epoch=99),
        "no epoch": fetch(17, epoch=-1),
        "partition 1": fetch(17, epoch=1, partition=1),
        "another topic": fetch(17, epoch=1, topic_id=UUID(int=77)),
        "no topics": fetch(17, epoch=1, topics=()),
        "another cluster": fetch(17, epoch=1, cluster_id="AAAAAAAAAAAAAAAAAAAAAA"),
        "this cluster, an old epoch": fetch(17, epoch=0, cluster_id=CLUSTER_ID),
        "v19": unknown(FETCH, 19, b"\0\0\0", flexible=True, decode_as=(FETCH, 18)),
        "v3": unknown(FETCH, 3, b"\0\0\0", flexible=False, decode_as=(FETCH, 4)),
    }
    for name, ask in asks.items():
        yield Step(name=f"Fetch: {name}", listener="controller", sends=(ask,))
    yield Step(name="Fetch: who may not", listener="controller", user="alice", sends=(asks["v17 of an old epoch"],))


def scram_users() -> Iterator[Step]:
    several = (upsert("tom"), upsert("tim", mechanism=2, iterations=5000), upsert("é😀,=x"), upsert("admin", "changed"))
    asks = {
        "one user": alter(upserts=(upsert("sam", "sam-secret"),)),
        "the same again": alter(upserts=(upsert("sam", "sam-secret"),)),
        "another mechanism": alter(upserts=(upsert("sam", "sam-secret-2", mechanism=2),)),
        "several": alter(upserts=several),
        "nothing": alter(),
        "no name": alter(upserts=(upsert(""), upsert("beside-no-name"))),
        "too few iterations": alter(upserts=(upsert("few", iterations=4095), upsert("beside-few"))),
        "too many iterations": alter(upserts=(upsert("many", iterations=16385),)),
        "iterations of zero and less": alter(upserts=(upsert("zero", iterations=0), upsert("less", iterations=-1))),
        "the most iterations": alter(upserts=(upsert("most", iterations=16384),)),
        "no mechanism": alter(upserts=(upsert("none", mechanism=0),)),
        "an unknown mechanism": alter(upserts=(upsert("unknown", mechanism=3), upsert("negative", mechanism=-1))),
        "no salt": alter(upserts=(upsert("unsalted", salt=b""),)),
        "no password": alter(upserts=(upsert("empty", salted_password=b""),)),
        "a short password": alter(upserts=(upsert("short", salted_password=b"abc"),)),
        "one user twice": alter(upserts=(upsert("two"), upsert("two"))),
        "one user by two mechanisms": alter(upserts=(upsert("two"), upsert("two", mechanism=2))),
        "removed and added": alter((removal("tom"),), (upsert("tom"),)),
        "removed twice": alter((removal("tom"), removal("tom"))),
        "twice, beside another": alter((removal("tom"), removal("tom")), (upsert("other"),)),
        "removing nobody": alter((removal("nobody"), removal(""))),
        "removing what he has not": alter((removal("tom", 2),)),
        "removing by an unknown mechanism": alter((removal("tom", 0), removal("tim", 9))),
        "removing one": alter((removal("tom"),)),
        "removing him again": alter((removal("tom"),)),
        "a user of the long name": alter(upserts=(upsert("n" * 1000),)),
    }
    for name, ask in asks.items():
        yield Step(name=f"SCRAM: {name}", sends=(ask,))
    for listener in BOTH:
        yield Step(name="SCRAM: to both", listener=listener, sends=(alter(upserts=(upsert(f"by-{listener}"),)),))
    users = {"all": None, "none": (), "one": ("sam",), "missing": ("nobody",), "two": ("sam", "tim")}
    users |= {"twice": ("sam", "sam"), "no name": ("",), "some": ("sam", "nobody", "tim", "tim")}
    for name, names in users.items():
        yield Step(name=f"SCRAM: describe {name}", sends=(described(names),))
        yield Step(name=f"SCRAM: alice describes {name}", user="alice", sends=(described(names),))


def the_end() -> Iterator[Step]:
    for listener in BOTH:
        yield Step(name="the resulting ACLs", listener=listener, sends=(describe(3),))
    yield Step(name="the resulting SCRAM users", sends=(described(None),))
