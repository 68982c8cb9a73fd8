"""A controller on a real directory: startup, APIs and their authorization, checkpoints, shutdown."""

import asyncio
import os
from datetime import timedelta
from uuid import UUID

import pytest
from attrs import evolve

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.interface import AclRequestError, AuthorizerNotReadyError, RequestContext
from aclog.authorizer.settings import Generation
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.batches import iter_batches
from aclog.metalog.codec import decode_values, encode_record
from aclog.metalog.control_records import KRaftVersion, KRaftVoters, LeaderChange, decode_control_batch
from aclog.metalog.errors import CheckpointError, LockedError, LogError
from aclog.metalog.filelog import open_log, open_reader
from aclog.metalog.filelog.files import image_path, list_checkpoints, list_segments, read_quorum_state
from aclog.metalog.filelog.verify import verify
from aclog.metalog.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    OpaqueRecord,
    UserScramCredentialRecord,
)
from aclog.protocol import api_keys
from aclog.protocol.headers import MalformedRequestError, RequestError
from aclog.protocol.messages import build
from aclog.server.controller import snapshot_generator
from aclog.server.controller.activation import LOG_DIRECTORY
from aclog.server.controller.fetch import METADATA_TOPIC, METADATA_TOPIC_ID
from aclog.server.loops import committed
from aclog.snapshots import checkpoints
from aclog.snapshots.checkpoints import decode_checkpoint, write_checkpoint
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import recover
from tests.support.builders.state_records import acl
from tests.support.nodes.controllers import call, controller_server, formatted, running, with_policy

CONTEXT = RequestContext(principal="User:admin", host="127.0.0.1")


def rule(name):
    return StandardAcl(
        resource_type=2, resource_name=name, pattern_type=3, principal="User:alice", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip


async def create(server, *names):
    results = await committed(server.serving.controller.create_acls(CONTEXT, [rule(name) for name in names]))
    assert all(result.error is None for result in results)


def names(image):
    return {each.acl.resource_name for each in image.acls}


def batches(directory):
    with open_reader(directory) as reader:
        data = reader.read(reader.start_offset(), 1 << 30)
    for position, header in iter_batches(data):
        if header.is_control:
            yield from decode_control_batch(data, position, header)
        else:
            yield from decode_values(data, position, header)


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


class TestStart:
    async def test_an_empty_log_gets_the_bootstrap_records(self, tmp_path):
        async with running(formatted(tmp_path)) as server:
            assert server.ready
            assert server.publisher.ready
            assert server.authorizer.ready
            image = server.publisher.current
            assert image.features.level("metadata.version") == 30
            assert image.scram.get("admin", ScramMechanism.SCRAM_SHA_256) is not None
            assert image.provenance.voters is not None
        found = list(batches(tmp_path / LOG_DIRECTORY))
        kinds = [type(record) for record in found]
        assert kinds[:4] == [LeaderChange, KRaftVersion, KRaftVoters, BeginTransactionRecord]
        assert found[3].name == "Bootstrap records"
        users = [UserScramCredentialRecord] * 2
        assert kinds[4:] == [FeatureLevelRecord] * 6 + users + [OpaqueRecord, EndTransactionRecord]
        assert read_quorum_state(tmp_path / LOG_DIRECTORY).voters is None
        assert not list(verify(tmp_path / LOG_DIRECTORY))

    @pytest.mark.parametrize("generation", Generation)
    async def test_a_leader_adds_the_default_of_in_sync_replicas(self, tmp_path, generation):
        config = evolve(formatted(tmp_path), generation=generation, min_insync_replicas=2)
        async with running(config) as server:
            assert server.ready
        found = list(batches(tmp_path / LOG_DIRECTORY))
        assert [type(record) for record in found[-3:]] == [
            UserScramCredentialRecord,
            OpaqueRecord,
            EndTransactionRecord,
        ]
        assert found[-2].value == b"\1\4\0" + b"\4\1\x14min.insync.replicas\x022\0"

    async def test_a_static_quorum_keeps_its_voters_in_the_file(self, tmp_path):
        async with running(formatted(tmp_path, kraft_version=0)) as server:
            assert server.publisher.current.provenance.kraft_version == 0
        assert read_quorum_state(tmp_path / LOG_DIRECTORY).voters == (1,)

    async def test_a_restart_adds_only_a_leader_change(self, tmp_path):
        config = formatted(tmp_path)
        async with running(config) as server:
            await create(server, "t")
            before = server.publisher.current
        async with running(config) as server:
            after = server.publisher.current
            assert after.end_offset == before.end_offset + 1
            assert after.epoch == before.epoch + 1
            assert names(after) == {"t"}
            assert server.ready

    async def test_an_old_metadata_version_has_no_transactions(self, tmp_path):
        config = formatted(tmp_path)
        level = FeatureLevelRecord(name="metadata.version", feature_level=12)
        image = Image(features=Image.EMPTY.features.apply([level]))
        (tmp_path / "made").mkdir()
        write_checkpoint(image, tmp_path / "made").replace(tmp_path / "bootstrap.checkpoint")
        async with running(config) as server:
            assert server.publisher.current.features.level("metadata.version") == 12
        found = list(batches(tmp_path / LOG_DIRECTORY))
        assert not any(isinstance(record, BeginTransactionRecord | OpaqueRecord) for record in found)

    async def test_a_bootstrap_of_more_than_a_batch(self, tmp_path, monkeypatch):
        monkeypatch.setattr("aclog.server.controller.activation._RECORDS_IN_BATCH", 3)
        async with running(formatted(tmp_path)) as server:
            assert len(server.publisher.current.features) == 6
            assert len(server.publisher.current.scram) == 2

    async def test_nobody_is_ready_before_the_bootstrap_is_in(self, tmp_path):
        """A SCRAM login before replay would fail for good instead of retriably."""
        server, unready = controller_server(formatted(tmp_path)), []
        server.publisher.subscribe(lambda image: unready.append(not server.publisher.ready and not len(image.scram)))
        await server.start()
        assert server.publisher.ready
        assert unready.count(True) >= 2
        await server.stop()

    async def test_an_open_transaction_is_aborted(self, tmp_path):
        config = formatted(tmp_path)
        async with running(config) as server:
            await create(server, "t")
        with open_log(tmp_path / LOG_DIRECTORY) as log:
            records = [BeginTransactionRecord(name="half"), acl(1, name="never")]
            log.append([encode_record(record) for record in records], timestamp=1).result(60)
        async with running(config) as server:
            assert names(server.publisher.current) == {"t"}
            assert server.ready
            await create(server, "u")
        assert any(isinstance(record, AbortTransactionRecord) for record in batches(tmp_path / LOG_DIRECTORY))
        assert names(recover(tmp_path / LOG_DIRECTORY).image) == {"t", "u"}

    async def test_a_bootstrap_that_was_interrupted_is_written_again(self, tmp_path):
        config = formatted(tmp_path)
        with open_log(tmp_path / LOG_DIRECTORY, create=True, node_id=1) as log:
            log.append([encode_record(BeginTransactionRecord(name="Bootstrap records"))], timestamp=1).result(60)
        async with running(config) as server:
            assert len(server.publisher.current.features) == 6

    async def test_a_damaged_bootstrap_stops_the_start_and_leaves_nothing_open(self, tmp_path):
        config = formatted(tmp_path)
        bootstrap = tmp_path / "bootstrap.checkpoint"
        whole = bootstrap.read_bytes()
        bootstrap.write_bytes(whole[:-9])
        server = controller_server(config)
        with pytest.raises(CheckpointError):
            await server.start()
        assert not server.ready
        bootstrap.write_bytes(whole)
        async with running(config) as server:
            assert len(server.publisher.current.features) == 6

    async def test_only_one_at_a_time(self, tmp_path):
        config = formatted(tmp_path)
        async with running(config):
            with pytest.raises(LockedError):
                await controller_server(config).start()

    async def test_partial_checkpoints_of_a_crash_are_removed(self, tmp_path):
        config = formatted(tmp_path)
        part = tmp_path / LOG_DIRECTORY / "00000000000000000009-0000000001-abcdef.checkpoint.part"
        image = tmp_path / LOG_DIRECTORY / "00000000000000000009-0000000001-abcdef.image.part"
        other = tmp_path / LOG_DIRECTORY / "notes.part"
        async with running(config):
            orphan = tmp_path / LOG_DIRECTORY / "00000000000000000009-0000000001.image"
            for path in (part, image, orphan, other):
                path.touch()
        async with running(config):
            assert not part.exists()
            assert not image.exists()
            assert not orphan.exists()
            assert other.exists()


class TestEarlyStart:
    async def test_before_the_log_is_replayed_super_users_get_what_needs_no_image(self, tmp_path, monkeypatch):
        import threading

        from aclog.server.controller import controller_server as module

        go_on, real = threading.Event(), module.replay

        def slow(*arguments):
            assert go_on.wait(30)
            return real(*arguments)

        monkeypatch.setattr(module, "replay", slow)
        server = controller_server(formatted(tmp_path))
        describe = build(api_keys.DESCRIBE_CLUSTER, 2, "request", endpoint_type=2)
        listing = build(
            api_keys.DESCRIBE_ACLS, 3, "request", resource_type_filter=1, pattern_type_filter=1, operation=1,
            permission_type=1, resource_name_filter=None, principal_filter=None, host_filter=None,
        )  # fmt: skip
        with pytest.raises(AuthorizerNotReadyError):
            await call(server, api_keys.DESCRIBE_CLUSTER, 2, describe)
        starting = asyncio.create_task(server.start())
        while server.serving is None:
            await asyncio.sleep(0.001)
        assert (await call(server, api_keys.DESCRIBE_CLUSTER, 2, describe)).controller_id == 1
        for user, api_key, version, message in (
            ("alice", api_keys.DESCRIBE_CLUSTER, 2, describe),
            ("admin", api_keys.DESCRIBE_ACLS, 3, listing),
            ("alice", api_keys.DESCRIBE_ACLS, 3, listing),
        ):
            with pytest.raises(AuthorizerNotReadyError):
                await call(server, api_key, version, message, user=user)
        assert not server.ready
        go_on.set()
        await starting
        assert (await call(server, api_keys.DESCRIBE_ACLS, 3, listing)).resources == ()
        with pytest.raises(AclRequestError):
            await call(server, api_keys.DESCRIBE_ACLS, 3, listing, user="alice")
        await server.stop()


CREATION = {"resource_type": 2, "resource_pattern_type": 3, "principal": "User:bob", "host": "*", "operation": 3,
            "permission_type": 3}  # fmt: skip


def creations(*values):
    return build(
        api_keys.CREATE_ACLS,
        3,
        "request",
        creations=tuple(
            build(api_keys.CREATE_ACLS, 3, "request", "AclCreation", **{**CREATION, **each}) for each in values
        ),
    )


class TestAcls:
    async def test_create_describe_delete(self, tmp_path):
        async with running(formatted(tmp_path)) as server:
            made = await call(
                server, api_keys.CREATE_ACLS, 3,
                creations({"resource_name": "t"}, {"resource_name": ""}, {"resource_name": "u"}),
            )  # fmt: skip
            assert [(each.error_code, each.error_message) for each in made.results] == [
                (0, ""),
                (42, "Invalid empty resource name"),
                (0, ""),
            ]
            wanted = {"resource_type_filter": 2, "pattern_type_filter": 1, "operation": 1, "permission_type": 1,
                      "resource_name_filter": None, "principal_filter": None, "host_filter": None}  # fmt: skip
            listed = await call(
                server, api_keys.DESCRIBE_ACLS, 3, build(api_keys.DESCRIBE_ACLS, 3, "request", **wanted)
            )
            assert {each.resource_name for each in listed.resources} == {"t", "u"}
            one = build(
                api_keys.DELETE_ACLS, 3, "request", "DeleteAclsFilter", **{**wanted, "resource_name_filter": "t"}
            )
            gone = await call(
                server, api_keys.DELETE_ACLS, 3, build(api_keys.DELETE_ACLS, 3, "request", filters=(one,))
            )
            assert [[each.resource_name for each in found.matching_acls] for found in gone.filter_results] == [["t"]]
            assert names(server.publisher.current) == {"u"}

    async def test_unauthorized_clients(self, tmp_path):
        async with running(formatted(tmp_path)) as server:
            with pytest.raises(AclRequestError, match=r"Request Request\(.*\) needs ALTER permission\.") as refused:
                await call(server, api_keys.CREATE_ACLS, 3, creations({"resource_name": "t"}), user="alice")
            assert refused.value.code == 31
            assert len(server.publisher.latest.acls) == 0

    async def test_code_0_is_malformed(self, tmp_path):
        async with running(formatted(tmp_path)) as server:
            with pytest.raises(MalformedRequestError):
                await call(server, api_keys.CREATE_ACLS, 3, creations({"resource_name": "t", "operation": 0}))


class TestOtherApis:
    async def test_scram(self, tmp_path):
        def message(**values):
            return build(api_keys.ALTER_USER_SCRAM_CREDENTIALS, 0, "request", **values)

        def part(structure, **values):
            return build(api_keys.ALTER_USER_SCRAM_CREDENTIALS, 0, "request", structure, **values)

        async with running(formatted(tmp_path)) as server:
            good = part("ScramCredentialUpsertion", name="eve", mechanism=1, iterations=4096, salt=b"s",
                        salted_password=b"p" * 32)  # fmt: skip
            few = part("ScramCredentialUpsertion", name="few", mechanism=1, iterations=4095, salt=b"s",
                       salted_password=b"p" * 32)  # fmt: skip
            absent = part("ScramCredentialDeletion", name="nobody", mechanism=2)
            alteration = message(upsertions=(good, few), deletions=(absent,))
            found = await call(server, api_keys.ALTER_USER_SCRAM_CREDENTIALS, 0, alteration)
            codes = {each.user: (int(each.error_code), each.error_message) for each in found.results}
            assert codes["eve"] == (0, None)
            assert codes["few"] == (93, "Too few iterations")
            assert codes["nobody"][0] == 91
            assert server.publisher.current.scram.get("eve", 1).iterations == 4096
            with pytest.raises(AclRequestError):
                await call(server, api_keys.ALTER_USER_SCRAM_CREDENTIALS, 0, alteration, user="alice")

    async def test_describe_cluster(self, tmp_path):
        async with running(formatted(tmp_path)) as server:
            for version in (1, 2):
                asked = build(api_keys.DESCRIBE_CLUSTER, version, "request", endpoint_type=2,
                              include_cluster_authorized_operations=True)  # fmt: skip
                found = await call(server, api_keys.DESCRIBE_CLUSTER, version, asked)
                assert (found.error_code, found.endpoint_type, found.cluster_id) == (0, 2, "a-cluster")
                assert [(each.broker_id, each.host, each.port) for each in found.brokers] == [(1, "c1", 9093)]
                assert found.controller_id == 1
                assert found.cluster_authorized_operations > 0
            for endpoint_type, code in ((1, 114), (9, 115)):
                asked = build(api_keys.DESCRIBE_CLUSTER, 1, "request", endpoint_type=endpoint_type)
                assert (await call(server, api_keys.DESCRIBE_CLUSTER, 1, asked)).error_code == code
            asked = build(api_keys.DESCRIBE_CLUSTER, 0, "request")
            assert (await call(server, api_keys.DESCRIBE_CLUSTER, 0, asked)).error_code == 42
            with pytest.raises(AclRequestError):
                await call(
                    server, api_keys.DESCRIBE_CLUSTER, 2, build(api_keys.DESCRIBE_CLUSTER, 2, "request"), user="alice"
                )

    @pytest.mark.parametrize("version", [0, 1, 2])
    async def test_describe_quorum(self, tmp_path, version):
        def asked(name):
            partition = build(api_keys.DESCRIBE_QUORUM, version, "request", "PartitionData")
            topic = build(
                api_keys.DESCRIBE_QUORUM, version, "request", "TopicData", topic_name=name, partitions=(partition,)
            )
            return build(api_keys.DESCRIBE_QUORUM, version, "request", topics=(topic,))

        async with running(formatted(tmp_path)) as server:
            server.serving.quorum.observe(5, UUID(int=4), 3, end_offset=9, now=1 << 41)
            found = await call(server, api_keys.DESCRIBE_QUORUM, version, asked(METADATA_TOPIC))
            ((partition,),) = (topic.partitions for topic in found.topics)
            assert (partition.leader_id, partition.leader_epoch) == (1, 1)
            assert partition.high_watermark == server.publisher.current.end_offset
            (voter,) = partition.current_voters
            assert (voter.replica_id, voter.log_end_offset) == (1, partition.high_watermark)
            assert [each.replica_id for each in partition.observers] == [5]
            if version == 2:
                assert voter.replica_directory_id == server.directory_id
                assert [(each.node_id, each.listeners[0].port) for each in found.nodes] == [(1, 9093)]
            found = await call(server, api_keys.DESCRIBE_QUORUM, version, asked("orders"))
            assert (found.error_code, [topic.topic_name for topic in found.topics]) == (0, ["orders"])
            assert [each.error_code for each in found.topics[0].partitions] == [3]
            with pytest.raises(AclRequestError):
                await call(server, api_keys.DESCRIBE_QUORUM, version, asked(METADATA_TOPIC), user="alice")


def snapshot_request(version, end_offset, epoch, position=0, max_bytes=1000, leader_epoch=1, **top):
    def part(structure, **values):
        return build(api_keys.FETCH_SNAPSHOT, version, "request", structure, **values)

    wanted = part(
        "PartitionSnapshot",
        partition=top.pop("partition", 0),
        current_leader_epoch=leader_epoch,
        snapshot_id=part("SnapshotId", end_offset=end_offset, epoch=epoch),
        position=position,
    )
    topic = part("TopicSnapshot", name=top.pop("topic", METADATA_TOPIC), partitions=(wanted,))
    top.setdefault("cluster_id", None)
    return build(api_keys.FETCH_SNAPSHOT, version, "request", topics=(topic,), max_bytes=max_bytes, **top)


async def piece(server, version, *arguments, **values):
    message = snapshot_request(version, *arguments, **values)
    found = await call(server, api_keys.FETCH_SNAPSHOT, version, message)
    assert found.error_code == 0
    return found.topics[0].partitions[0]


class TestSnapshots:
    @pytest.mark.parametrize("version", [0, 1])
    async def test_a_checkpoint_in_pieces_is_the_file(self, tmp_path, version):
        async with running(formatted(tmp_path)) as server:
            await create(server, *(f"t{n}" for n in range(200)))
            assert await server.checkpoint()
            assert not await server.checkpoint()
            newest = list_checkpoints(tmp_path / LOG_DIRECTORY)[-1]
            data = b""
            while True:
                part = await piece(server, version, newest.end_offset, newest.epoch, len(data), 777)
                assert (part.error_code, part.position) == (0, len(data))
                assert part.current_leader.leader_epoch == 1
                data += bytes(part.unaligned_records)
                if len(data) == part.size:
                    break
            assert data == newest.path.read_bytes()
            image = decode_checkpoint(data, end_offset=newest.end_offset, epoch=newest.epoch)
            assert image.acls.digest() == server.publisher.current.acls.digest()

    async def test_errors_have_their_own_codes(self, tmp_path):
        async with running(formatted(tmp_path)) as server:
            await create(server, "t")
            await server.checkpoint()
            newest = list_checkpoints(tmp_path / LOG_DIRECTORY)[-1]
            wanted = newest.end_offset, newest.epoch
            size = newest.path.stat().st_size
            for arguments, values, code in (
                ((99, 1), {}, 98),
                ((-1, -1), {}, 98),
                ((*wanted, size), {}, 99),
                ((*wanted, -1), {}, 99),
                (wanted, {"leader_epoch": 0}, 74),
                (wanted, {"leader_epoch": 2}, 75),
                (wanted, {"leader_epoch": -1}, 42),
                (wanted, {"topic": "orders"}, 3),
                (wanted, {"partition": 1}, 3),
            ):
                found = await piece(server, 1, *arguments, **values)
                assert (found.error_code, bytes(found.unaligned_records)) == (code, b"")
                assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (1, 1)
            with pytest.raises(RequestError) as refused:
                await call(server, api_keys.FETCH_SNAPSHOT, 1, snapshot_request(1, *wanted, cluster_id="another"))
            assert refused.value.code == 104
            with pytest.raises(AclRequestError):
                await call(server, api_keys.FETCH_SNAPSHOT, 1, snapshot_request(1, *wanted), user="alice")

    async def test_retention_does_not_remove_it_under_its_reader(self, tmp_path):
        async with running(formatted(tmp_path)) as server:
            await create(server, *(f"t{n}" for n in range(50)))
            await server.checkpoint()
            newest = list_checkpoints(tmp_path / LOG_DIRECTORY)[-1]
            whole = newest.path.read_bytes()
            first = await piece(server, 1, newest.end_offset, newest.epoch, 0, 100)
            newest.path.unlink()
            rest = await piece(server, 1, newest.end_offset, newest.epoch, 100, 1 << 20)
            assert bytes(first.unaligned_records) + bytes(rest.unaligned_records) == whole

    async def test_unused_files_are_closed(self, tmp_path):
        from aclog.server.controller.fetch import OpenCheckpoints

        now = [0.0]
        files = OpenCheckpoints(directory=tmp_path, monotonic=lambda: now[0])
        for n in range(40):
            (tmp_path / f"{n:020d}-0000000001.checkpoint").write_bytes(b"x" * n)
        sizes = [files.find(n, 1)[1] for n in range(40)]
        assert sizes == list(range(40))
        assert len(files._files) <= 16
        now[0] = 100.0
        assert files.find(3, 1)[1] == 3
        assert len(files._files) == 1
        assert files.find(50, 1) is None
        files.close()


class TestCheckpoints:
    @pytest.mark.process
    async def test_an_image_file_is_made_used_and_made_anew(self, tmp_path, monkeypatch):
        monkeypatch.setattr(snapshot_generator, "WORTH_A_FILE", 0)
        config = formatted(tmp_path)
        async with running(config) as server:
            await create(server, *(f"t{n}" for n in range(20)))
            await server.checkpoint()
            newest = list_checkpoints(tmp_path / LOG_DIRECTORY)[-1].path
            await until(lambda: image_path(newest).exists())
            await create(server, "later")
            before = server.publisher.current.acls.digest()
        with monkeypatch.context() as patched:
            patched.delattr(checkpoints, "read_checkpoint")  # nothing but the image file is read
            async with running(config) as server:
                assert server.publisher.current.acls.digest() == before
                assert not any("ignored" in note for note in server.notes)
                server.check_files()
                written = image_path(newest).read_bytes()
                image_path(newest).write_bytes(bytes(len(written)))
                with pytest.raises(LogError, match="overwritten or truncated while it was in use"):
                    server.check_files()
                image_path(newest).write_bytes(written)
        damaged = image_path(newest).read_bytes()[:-1]
        image_path(newest).write_bytes(damaged)
        async with running(config) as server:
            assert server.publisher.current.acls.digest() == before
            assert any(f"{image_path(newest)}: " in note for note in server.notes)
            await until(lambda: image_path(newest).read_bytes() != damaged)

    async def test_by_bytes_with_retention_and_a_newcomer_is_sent_to_it(self, tmp_path):
        config = with_policy(
            formatted(tmp_path), bytes_between=3000, interval_ms=0, retention_bytes=4000, segment_bytes=2048
        )
        directory = tmp_path / LOG_DIRECTORY
        async with running(config) as server:
            async with asyncio.timeout(60):
                turn = 0
                while list_segments(directory)[0].base_offset == 0:
                    await create(server, *(f"t{turn}-{n}" for n in range(5)))
                    turn += 1
            kept = list_checkpoints(directory)
            assert kept[0].end_offset > 0
            fetch = build(
                api_keys.FETCH, 17, "request", max_wait=timedelta(0), cluster_id=None,
                topics=(
                    build(
                        api_keys.FETCH, 17, "request", "FetchTopic", topic_id=METADATA_TOPIC_ID,
                        partitions=(
                            build(api_keys.FETCH, 17, "request", "FetchPartition", current_leader_epoch=1,
                                  last_fetched_epoch=0),
                        ),
                    ),
                ),
            )  # fmt: skip
            found = (await call(server, api_keys.FETCH, 17, fetch)).responses[0].partitions[0]
            assert found.snapshot_id.end_offset in {each.end_offset for each in list_checkpoints(directory)}
            expected = server.publisher.current
            with pytest.raises(AclRequestError):
                await call(server, api_keys.FETCH, 17, fetch, user="alice")
        assert not list(verify(directory))
        assert recover(directory).image.acls.digest() == expected.acls.digest()
        async with running(config) as server:
            assert server.publisher.current.acls.digest() == expected.acls.digest()
            assert server.publisher.current.provenance.voters == expected.provenance.voters

    async def test_by_time(self, tmp_path):
        config = with_policy(formatted(tmp_path), interval_ms=5)
        async with running(config) as server:
            async with asyncio.timeout(30):
                while server.serving.quorum.newest_checkpoint is None:
                    await asyncio.sleep(0.005)
            assert len(list_checkpoints(tmp_path / LOG_DIRECTORY)) == 2

    async def test_old_ones_go_when_a_newer_one_is_there(self, tmp_path):
        config = with_policy(formatted(tmp_path), retention_ms=0)
        async with running(config) as server:
            await create(server, "t")
            os.utime(list_checkpoints(tmp_path / LOG_DIRECTORY)[0].path, (1, 1))
            await server.checkpoint()
            assert [each.end_offset for each in list_checkpoints(tmp_path / LOG_DIRECTORY)] == [
                server.publisher.current.end_offset
            ]

    async def test_a_failed_checkpoint_is_retried_and_the_log_continues(self, tmp_path, monkeypatch, caplog):
        from aclog.server.controller import snapshot_generator as checkpointing

        real, tries, tried, loop = checkpointing.write_checkpoint, [], asyncio.Event(), asyncio.get_running_loop()

        def full(*arguments):
            tries.append(1)
            loop.call_soon_threadsafe(tried.set)
            if len(tries) == 1:
                raise LogError("no space left")
            return real(*arguments)

        monkeypatch.setattr(checkpointing, "write_checkpoint", full)
        async with running(with_policy(formatted(tmp_path), bytes_between=1, interval_ms=0)) as server:
            await create(server, "t")
            async with asyncio.timeout(30):
                await tried.wait()
            while not server._generator._failed:
                await asyncio.sleep(0.001)
            for n in range(5):
                await create(server, f"u{n}")
            assert len(tries) == 1
            assert await server.checkpoint()
            assert len(server.publisher.current.acls) == 6
        assert "cannot write a checkpoint: no space left" in caplog.text

    async def test_the_retry_needs_no_commit(self, tmp_path, monkeypatch):
        from aclog.server.controller import snapshot_generator as checkpointing

        real, tries = checkpointing.write_checkpoint, []

        def full(*arguments):
            tries.append(1)
            if len(tries) < 3:
                raise (LogError("no space left"), ValueError("a bug"))[len(tries) - 1]
            return real(*arguments)

        monkeypatch.setattr(checkpointing, "write_checkpoint", full)
        monkeypatch.setattr(checkpointing, "_RETRY_SECONDS", 0.01)
        async with running(with_policy(formatted(tmp_path), bytes_between=1, interval_ms=0)) as server:
            await create(server, "t")
            async with asyncio.timeout(30):
                while server.serving.quorum.newest_checkpoint is None:
                    await asyncio.sleep(0.005)
            assert len(tries) == 3


class TestStop:
    async def test_pending_requests_are_committed_and_answered(self, tmp_path):
        server = controller_server(formatted(tmp_path))
        await server.start()
        controller = server.serving.controller
        futures = [controller.create_acls(CONTEXT, [rule(f"t{n}")]) for n in range(20)]
        await server.stop()
        await server.stop()
        assert all(future.result(0)[0].error is None for future in futures)
        with pytest.raises(LogError, match="stopped"):
            controller.create_acls(CONTEXT, [rule("late")]).result(0)
        assert len(recover(tmp_path / LOG_DIRECTORY).image.acls) == 20

    async def test_a_failed_commit_stops_the_node(self, tmp_path, monkeypatch):
        told = []
        server = controller_server(formatted(tmp_path), on_failure=told.append)
        await server.start()
        appender = server.serving.log._appender
        monkeypatch.setattr(appender, "_fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(LogError, match="the disk is full"):
            await committed(server.serving.controller.create_acls(CONTEXT, [rule("t")]))
        assert len(told) == 1
        assert len(server.publisher.current.acls) == 0
        await server.stop()
