"""Controllers on a shared log in memory: standby responses, takeover, and fencing of deposed controllers."""

import asyncio
import threading
from datetime import timedelta

import pytest

from aclog.authorizer.acl import AclBindingFilter
from aclog.authorizer.settings import KafkaPrincipal
from aclog.metalog.batches import iter_batches
from aclog.metalog.codec import decode_values, encode_record
from aclog.metalog.control_records import LeaderChange, decode_control_batch
from aclog.metalog.errors import ConfigError, DecodeError, LockedError, LogError, ReplayError
from aclog.metalog.filelog import open_log
from aclog.metalog.filelog.files import list_checkpoints
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, NoOpRecord
from aclog.metalog.topiclog import TopicId
from aclog.metalog.topiclog.partition import RemovedError
from aclog.protocol import api_keys
from aclog.protocol.headers import OutcomeUnknownError, RequestError
from aclog.protocol.messages import build
from aclog.protocol.responses import EnvelopeRequest, encode_principal
from aclog.server.controller.activation import LOG_DIRECTORY
from aclog.server.controller.fetch import METADATA_TOPIC, METADATA_TOPIC_ID
from aclog.server.controller.quorum_controller import ControllerResult
from aclog.server.controller.shared import IDENTITY_FILE, OtherLogError
from aclog.server.loops import committed
from aclog.snapshots.checkpoints import FIRST_CHECKPOINT
from tests.nodes.controller.write_path.test_quorum_controller import CONTEXT
from tests.support.builders.acls import acl as make_acl
from tests.support.builders.state_records import acl
from tests.support.fakes.memory_log import MemoryLog
from tests.support.fakes.shared_log import SharedTopic
from tests.support.nodes import shared_controllers
from tests.support.nodes.controllers import call
from tests.support.nodes.node_requests import frame
from tests.support.nodes.shared_controllers import VOTERS, candidate, three, until

NOT_LEADER_OR_FOLLOWER, NOT_CONTROLLER, FENCED, UNKNOWN_EPOCH = 6, 41, 74, 75


def names(node):
    return {each.acl.resource_name for each in node.publisher.current.acls}


def create(node, *wanted):
    return node.serving.controller.create_acls(CONTEXT, [make_acl(name) for name in wanted])


def delete(node, name):
    return node.serving.controller.delete_acls(CONTEXT, [AclBindingFilter(resource_name=name)])


def records(topic):
    data = topic.store.read(0, 1 << 30)
    for position, header in iter_batches(data):
        decode = decode_control_batch if header.is_control else decode_values
        yield from decode(data, position, header)


async def same(*nodes):
    await until(lambda: len({node.publisher.current.end_offset for node in nodes}) == 1)


def creations(*wanted):
    parts = [
        build(
            api_keys.CREATE_ACLS, 3, "request", "AclCreation", resource_type=2, resource_name=name, principal="User:a",
            resource_pattern_type=3, host="*", operation=3, permission_type=3,
        )
        for name in wanted
    ]  # fmt: skip
    return build(api_keys.CREATE_ACLS, 3, "request", creations=tuple(parts))


def fetch(epoch, offset=0, max_wait=0):
    wanted = build(
        api_keys.FETCH, 17, "request", "FetchPartition",
        current_leader_epoch=epoch, fetch_offset=offset, last_fetched_epoch=min(epoch, 1),
    )  # fmt: skip
    topic = build(api_keys.FETCH, 17, "request", "FetchTopic", topic_id=METADATA_TOPIC_ID, partitions=(wanted,))
    wait = timedelta(milliseconds=max_wait)
    return build(api_keys.FETCH, 17, "request", topics=(topic,), cluster_id=None, max_wait=wait)


async def fetched(node, epoch, offset=0, max_wait=0):
    found = await call(node, api_keys.FETCH, 17, fetch(epoch, offset, max_wait))
    return found, found.responses[0].partitions[0]


def described_quorum():
    partition = build(api_keys.DESCRIBE_QUORUM, 2, "request", "PartitionData")
    topic = build(
        api_keys.DESCRIBE_QUORUM, 2, "request", "TopicData", topic_name=METADATA_TOPIC, partitions=(partition,)
    )
    return build(api_keys.DESCRIBE_QUORUM, 2, "request", topics=(topic,))


class TestStandby:
    async def test_the_first_leader_commits_the_records_of_a_0_0_checkpoint(self, tmp_path, monkeypatch):
        """The layout of Kafka 4.4, where bootstrap.checkpoint is not."""
        made = shared_controllers.candidate_config

        def formatted(directory, node_id):
            """The same records in the other file."""
            config = made(directory, node_id)
            (directory / LOG_DIRECTORY).mkdir()
            (directory / "bootstrap.checkpoint").rename(directory / LOG_DIRECTORY / FIRST_CHECKPOINT)
            return config

        monkeypatch.setattr(shared_controllers, "candidate_config", formatted)
        async with three(tmp_path, SharedTopic()) as nodes:
            await until(lambda: all(len(node.publisher.current.scram) == 2 for node in nodes.values()))
            assert {node.publisher.current.features.level("metadata.version") for node in nodes.values()} == {30}

    async def test_it_publishes_what_the_active_controller_commits(self, tmp_path):
        async with three(tmp_path, SharedTopic()) as nodes:
            assert [node.active for node in nodes.values()] == [True, False, False]
            await committed(create(nodes[1], "t"))
            await until(lambda: all(names(node) == {"t"} for node in nodes.values()))
            assert all(node.ready and node.authorizer.ready for node in nodes.values())
            assert [node.leader for node in nodes.values()] == [VOTERS[1]] * 3

    async def test_it_serves_reads_and_rejects_writes(self, tmp_path):
        async with three(tmp_path, SharedTopic()) as nodes:
            await committed(create(nodes[1], "t"))
            await same(*nodes.values())
            found = await call(nodes[2], api_keys.DESCRIBE_ACLS, 3, build(api_keys.DESCRIBE_ACLS, 3, "request",
                resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1,
                resource_name_filter=None, principal_filter=None, host_filter=None))  # fmt: skip
            assert [resource.resource_name for resource in found.resources] == ["t"]
            for key, version, message in (
                (api_keys.CREATE_ACLS, 3, creations("u")),
                (api_keys.DELETE_ACLS, 3, build(api_keys.DELETE_ACLS, 3, "request", filters=())),
                (api_keys.ALTER_USER_SCRAM_CREDENTIALS, 0, build(51, 0, "request", deletions=(), upsertions=())),
                (api_keys.EXPIRE_DELEGATION_TOKEN, 2, build(40, 2, "request", hmac=b"h")),
            ):
                with pytest.raises(RequestError) as refused:
                    await call(nodes[2], key, version, message)
                assert refused.value.code == NOT_CONTROLLER

    async def test_in_an_envelope_not_controller_fails_the_envelope(self, tmp_path):
        principal = encode_principal(KafkaPrincipal(type="User", name="admin"), token_authenticated=False)
        async with three(tmp_path, SharedTopic()) as nodes:
            message = EnvelopeRequest(
                request_data=frame(api_keys.CREATE_ACLS, 3, creations("u")),
                request_principal=principal,
                client_host_address=bytes((10, 0, 0, 1)),
            )
            assert (await call(nodes[1], api_keys.ENVELOPE, 1, message)).error_code == 0
            for number in (2, 3):
                with pytest.raises(RequestError) as refused:
                    await call(nodes[number], api_keys.ENVELOPE, 1, message)
                assert refused.value.code == NOT_CONTROLLER

    async def test_it_names_the_leader(self, tmp_path):
        async with three(tmp_path, SharedTopic()) as nodes:
            for epoch, code in ((0, FENCED), (1, NOT_LEADER_OR_FOLLOWER), (2, UNKNOWN_EPOCH)):
                found, partition = await fetched(nodes[2], epoch)
                assert (partition.error_code, partition.records) == (code, None) or not partition.records
                assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, 1)
                assert [(each.node_id, each.host) for each in found.node_endpoints] == [(1, "c1")]
            for node in nodes.values():
                message = build(api_keys.DESCRIBE_CLUSTER, 1, "request", endpoint_type=2)
                described = await call(node, api_keys.DESCRIBE_CLUSTER, 1, message)
                assert described.controller_id == 1
                assert [(each.broker_id, each.host) for each in described.brokers] == [(1, "c1"), (2, "c2"), (3, "c3")]

    async def test_only_the_leader_serves_snapshots(self, tmp_path):
        from tests.nodes.controller.test_controller_server import piece

        async with three(tmp_path, SharedTopic()) as nodes:
            await same(*nodes.values())
            assert await nodes[2].checkpoint()
            newest = list_checkpoints(tmp_path / "c2" / LOG_DIRECTORY)[-1]
            found = await piece(nodes[2], 1, newest.end_offset, newest.epoch)
            assert (found.error_code, found.current_leader.leader_id) == (NOT_LEADER_OR_FOLLOWER, 1)

    async def test_the_quorum_is_described_by_the_leader(self, tmp_path):
        async with three(tmp_path, SharedTopic()) as nodes:
            (topic,) = (await call(nodes[2], api_keys.DESCRIBE_QUORUM, 2, described_quorum())).topics
            (found,) = topic.partitions
            assert (found.error_code, found.leader_id, found.leader_epoch) == (NOT_LEADER_OR_FOLLOWER, 1, 1)
            answer = await call(nodes[1], api_keys.DESCRIBE_QUORUM, 2, described_quorum())
            ((found,),) = (topic.partitions for topic in answer.topics)
            mark = nodes[1].publisher.current.end_offset
            assert (found.error_code, found.leader_id, found.leader_epoch, found.high_watermark) == (0, 1, 1, mark)
            assert [(each.replica_id, each.log_end_offset) for each in found.current_voters] == [
                (1, mark),
                (2, -1),
                (3, -1),
            ]
            assert [(each.node_id, each.listeners[0].host) for each in answer.nodes] == [
                (1, "c1"),
                (2, "c2"),
                (3, "c3"),
            ]

    async def test_before_the_first_election(self, tmp_path):
        topic = SharedTopic()
        node = candidate(topic, tmp_path, 1)
        starting = asyncio.create_task(node.start())
        await until(lambda: 1 in topic.candidates)
        _, partition = await fetched(node, 0)
        assert (partition.error_code, partition.current_leader.leader_id) == (NOT_LEADER_OR_FOLLOWER, -1)
        described = await call(
            node, api_keys.DESCRIBE_CLUSTER, 1, build(api_keys.DESCRIBE_CLUSTER, 1, "request", endpoint_type=2)
        )
        assert described.controller_id == 1  # or Kafka's Admin would not ask again
        assert node.leader is None
        assert not node.ready
        with pytest.raises(RequestError) as refused:
            await call(node, api_keys.CREATE_ACLS, 3, creations("t"))
        assert refused.value.code == NOT_CONTROLLER
        assert not starting.done()
        topic.elect(1)
        await starting
        await node.stop()

    async def test_it_joins_the_election_only_after_catching_up(self, tmp_path, monkeypatch):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], "t"))
        log, late = topic.of(2), candidate(topic, tmp_path / "c2", 2)
        reader = log.open_reader()
        read = reader.read
        monkeypatch.setattr(reader, "read", lambda *_: (_ for _ in ()).throw(LogError("no broker")))
        monkeypatch.setattr(late.shared, "open_reader", lambda: reader)
        starting = asyncio.create_task(late.start())
        await asyncio.sleep(0.3)
        assert not topic.candidates
        monkeypatch.setattr(reader, "read", read)
        await until(lambda: 2 in topic.candidates)
        await starting
        assert names(late) == {"t"}
        await late.stop()

    async def test_an_unreplayable_log_stops_the_node(self, tmp_path):
        topic, failures = SharedTopic(), []
        async with three(tmp_path, topic, on_failure=failures.append) as nodes:
            await committed(create(nodes[1], "t"))
            await same(*nodes.values())
            before = nodes[2].publisher.current
            twice = [encode_record(acl(7, name="x"))] * 2
            topic.store.append(twice, timestamp=1)
            await until(lambda: len(failures) >= 2)
            assert nodes[2].publisher.current is before

    async def test_a_damaged_log_stops_the_node_without_retries(self, tmp_path, monkeypatch):
        def damaged(*_):
            raise DecodeError("a message without a value", offset=12)

        topic, failures = SharedTopic(), []
        async with three(tmp_path, topic, on_failure=failures.append) as nodes:
            monkeypatch.setattr(nodes[2].shared.reader, "wait", damaged)
            await until(lambda: failures)
            assert "offset 12: a message without a value" in str(failures[0])


class TestTakeover:
    async def test_the_next_leader_has_everything(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], "t"))
            topic.elect(2)
            await until(lambda: nodes[2].active and not nodes[1].active)
            await committed(create(nodes[2], "u"))
            await until(lambda: all(names(node) == {"t", "u"} for node in nodes.values()))
            topic.elect(1)
            await until(lambda: nodes[1].active)
            await committed(create(nodes[1], "v"))
            await until(lambda: all(names(node) == {"t", "u", "v"} for node in nodes.values()))
            assert [node.leader for node in nodes.values()] == [VOTERS[1]] * 3
        changes = [record for record in records(topic) if isinstance(record, LeaderChange)]
        assert [change.leader_id for change in changes] == [1, 2, 1]

    async def test_the_bootstrap_is_written_once(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            for node in (2, 3, 1):
                topic.elect(node)
                await until(lambda node=node: nodes[node].active)
        assert sum(isinstance(record, BeginTransactionRecord) for record in records(topic)) == 1

    async def test_an_open_transaction_is_aborted(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await same(*nodes.values())
            topic.elect(None)
            await until(lambda: not nodes[1].active)
            half = [encode_record(each) for each in (BeginTransactionRecord(name="half"), acl(1, name="never"))]
            topic.store.append(half, timestamp=1)
            topic.elect(2)
            await until(lambda: nodes[2].active)
            await committed(create(nodes[2], "t"))
            await until(lambda: all(names(node) == {"t"} for node in nodes.values()))
        assert sum(isinstance(record, AbortTransactionRecord) for record in records(topic)) == 1

    async def test_a_controller_that_cannot_open_the_log_resigns(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            nodes[2].shared.refusing, stood = LogError("no broker"), topic.candidates[2]
            topic.elect(2)
            await until(lambda: topic.candidates.get(2) not in (stood, None))
            topic.elect(3)
            await until(lambda: nodes[3].active)
            nodes[2].shared.refusing = None
            topic.elect(2)
            await until(lambda: nodes[2].active)

    async def test_a_controller_deposed_during_takeover_does_not_serve(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            topic.elect(2)
            topic.elect(3)
            await until(lambda: nodes[3].active)
            assert not nodes[2].active
            await committed(create(nodes[3], "t"))
            await until(lambda: all(names(node) == {"t"} for node in nodes.values()))

    @pytest.mark.parametrize("stops", [False, True])
    async def test_a_takeover_ends_while_no_broker_answers(self, tmp_path, stops):
        """The node is deposed, or stops: what it has sent may be committed, and its successor will see that."""
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes, asyncio.timeout(30):
            stuck = nodes[2].shared.stuck = threading.Event()
            topic.elect(2)
            await asyncio.to_thread(stuck.wait)
            assert not nodes[2].active
            if stops:
                await nodes[2].stop()
            topic.elect(3)
            await until(lambda: nodes[3].active)
            if not stops:
                nodes[2].shared.stuck = None
                topic.elect(2)
                await until(lambda: nodes[2].active)

    async def test_it_starts_from_its_own_checkpoint(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], *(f"t{n}" for n in range(20))))
            await same(*nodes.values())
            assert all([await node.checkpoint() for node in nodes.values()])
            mark = topic.store.high_watermark()
        topic.store._batches[0] = b"gone"  # what lies before the checkpoint is not read again
        async with three(tmp_path, topic) as nodes:
            await same(*nodes.values())
            assert len(nodes[2].publisher.current.acls) == 20
            assert nodes[2].publisher.current.end_offset >= mark

    async def test_standbys_write_checkpoints_by_bytes(self, tmp_path):
        from tests.support.nodes.controllers import with_policy

        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            nodes[2]._generator.policy = with_policy(nodes[2].config, bytes_between=500).checkpoints
            for n in range(20):
                await committed(create(nodes[1], f"t{n}"))
            await until(lambda: list_checkpoints(tmp_path / "c2" / LOG_DIRECTORY))

    async def test_a_log_that_has_lost_its_end_stops_the_node(self, tmp_path):
        topic, failures = SharedTopic(), []
        async with three(tmp_path, topic, on_failure=failures.append) as nodes:
            await committed(create(nodes[1], "t"))
            await same(*nodes.values())
            topic.elect(None)
            await until(lambda: not nodes[1].active)
            before, topic.store = nodes[2].publisher.current, MemoryLog(leader_epoch=1)
            topic.elect(2)
            await until(lambda: failures)
            assert "the log has lost its end" in str(failures[0])
            assert nodes[2].publisher.current is before


class TestDeposed:
    async def test_pending_requests_fail_and_their_records_never_become_visible(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], "t"))
            old, log = nodes[1].serving.controller, topic.logs[-1]
            log.holding = True
            waiting = create(nodes[1], "lost")
            topic.elect(2, notify=False)
            await until(lambda: nodes[2].active)
            log.flush()
            with pytest.raises(OutcomeUnknownError):
                await committed(waiting)
            with pytest.raises(RequestError) as refused:
                await committed(old.create_acls(CONTEXT, [make_acl("later")]))
            assert refused.value.code == NOT_CONTROLLER
            await committed(create(nodes[2], "u"))
            await until(lambda: all(names(node) == {"t", "u"} for node in nodes.values()))
            assert not nodes[1].active

    async def test_by_the_election(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            topic.logs[-1].holding = True
            waiting = create(nodes[1], "lost")
            topic.elect(None)
            with pytest.raises(OutcomeUnknownError):
                await committed(waiting)
            await until(lambda: not nodes[1].active)
            with pytest.raises(RequestError):
                await call(nodes[1], api_keys.CREATE_ACLS, 3, creations("u"))
            assert names(nodes[1]) == set()

    async def test_a_commit_with_unknown_outcome_becomes_visible_through_the_log(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            log = topic.logs[-1]
            log.holding = True
            waiting = create(nodes[1], "t")
            await asyncio.sleep(0)  # decided with what else arrives in this turn
            log.flush(answered=False)
            with pytest.raises(OutcomeUnknownError):
                await committed(waiting)
            await until(lambda: all(names(node) == {"t"} for node in nodes.values()))
            topic.elect(2, notify=False)
            await until(lambda: nodes[2].active and not nodes[1].active)
            assert (await committed(create(nodes[2], "t")))[0].error is None
            assert [each.acl.resource_name for each in nodes[2].publisher.current.acls] == ["t"]

    async def test_a_decision_in_progress_is_awaited_and_not_appended(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            deciding, going_on = asyncio.Event(), asyncio.Event()
            loop = asyncio.get_running_loop()

            def operation(_image):
                loop.call_soon_threadsafe(deciding.set)
                asyncio.run_coroutine_threadsafe(going_on.wait(), loop).result(30)
                return ControllerResult(records=(acl(5, name="late"),), response=None)

            waiting = nodes[1].serving.controller.write(operation, offload=True)
            await deciding.wait()
            topic.elect(2)
            await until(lambda: nodes[2].active)
            going_on.set()
            with pytest.raises(RequestError) as refused:
                await committed(waiting)
            assert refused.value.code == NOT_CONTROLLER
            await committed(create(nodes[2], "t"))
            await until(lambda: all(names(node) == {"t"} for node in nodes.values()))

    async def test_a_paused_controller_does_not_confirm_a_duplicate(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], "t"))
            old = nodes[1].serving.controller
            nodes[1].shared.reader.cut()
            topic.elect(2, notify=False)
            await until(lambda: nodes[2].active)
            await committed(delete(nodes[2], "t"))
            assert names(nodes[1]) == {"t"}
            for asked in (
                old.create_acls(CONTEXT, [make_acl("t")]),
                old.delete_acls(CONTEXT, [AclBindingFilter(host="x")]),
            ):
                with pytest.raises(RequestError) as refused:
                    await committed(asked)
                assert refused.value.code == NOT_CONTROLLER

    async def test_a_waiting_fetch_learns_the_new_leader(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            mark = topic.store.high_watermark()
            parked = asyncio.create_task(fetched(nodes[1], 1, mark, 20_000))
            await asyncio.sleep(0.05)
            topic.elect(2)
            _, partition = await parked
            assert partition.error_code in (NOT_LEADER_OR_FOLLOWER, FENCED)
            assert not partition.records

    async def test_it_notices_a_newer_epoch_in_the_log(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            topic.open(99, lambda _: None)
            await until(lambda: not nodes[1].active)
            assert nodes[1].leader is None

    async def test_images_never_regress(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            shown = []
            nodes[1].publisher.subscribe(lambda image: shown.append(image.end_offset))
            for n in range(4):
                log = topic.logs[-1]
                await committed(create(nodes[1], f"t{n}"))
                log.holding = True
                waiting = create(nodes[1], f"lost{n}")
                topic.elect(2)
                with pytest.raises(OutcomeUnknownError):
                    await committed(waiting)
                await until(lambda: nodes[2].active)
                topic.elect(1)
                await until(lambda: nodes[1].active)
            assert shown == sorted(shown)
            assert names(nodes[1]) == {f"t{n}" for n in range(4)}


class TestConfirmation:
    async def test_many_responses_share_one_no_op_record(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], "t"))
            log = topic.logs[-1]
            log.holding = True
            asked = [create(nodes[1], "t") for _ in range(50)]
            await asyncio.sleep(0.01)
            assert not any(each.done() for each in asked)
            log.flush()
            await asyncio.gather(*map(committed, asked))
        assert sum(isinstance(record, NoOpRecord) for record in records(topic)) == 1

    async def test_requests_during_a_no_op_wait_for_the_next_one(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], "t"))
            log = topic.logs[-1]
            log.holding = True
            first = create(nodes[1], "t")
            await asyncio.sleep(0.01)
            second = create(nodes[1], "t")
            log.flush()
            await committed(first)
            await asyncio.sleep(0.01)
            assert not second.done()
            log.flush()
            await committed(second)
        assert sum(isinstance(record, NoOpRecord) for record in records(topic)) == 2

    async def test_any_batch_confirms(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], "t"))
            asked = create(nodes[1], "t"), create(nodes[1], "u")
            await asyncio.gather(*map(committed, asked))
        assert not any(isinstance(record, NoOpRecord) for record in records(topic))

    async def test_stopping_needs_no_confirmation(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic):
            pass
        assert not any(isinstance(record, NoOpRecord) for record in records(topic))


class TestEnds:
    async def test_pending_requests_are_committed_on_stop(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            log = topic.logs[-1]
            log.holding = True
            waiting = create(nodes[1], "t")
            stopping = asyncio.create_task(nodes[1].stop())
            await asyncio.sleep(0.05)
            assert 1 in topic.candidates
            log.flush()
            await stopping
            assert (await committed(waiting))[0].error is None
            assert 1 not in topic.candidates
            topic.elect(2)
            await until(lambda: nodes[2].active)
            assert names(nodes[2]) == {"t"}

    async def test_stopping_without_starting(self, tmp_path):
        await candidate(SharedTopic(), tmp_path, 1).stop()

    async def test_a_log_that_cannot_be_replayed_stops_the_start(self, tmp_path):
        topic, failures = SharedTopic(), []
        topic.open(1, lambda _: None)
        topic.store.append([encode_record(acl(7, name="x"))] * 2, timestamp=1)
        with pytest.raises(ReplayError, match="ACL"):
            await candidate(topic, tmp_path, 1, on_failure=failures.append).start()
        assert failures == []

    async def test_a_long_log_is_read_if_no_checkpoint_is_available(self, tmp_path, monkeypatch, caplog):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], "t"))
        monkeypatch.setattr("aclog.server.controller.leadership.WORTH_A_DOWNLOAD", 1)
        monkeypatch.setattr("aclog.server.controller.leadership._DOWNLOAD_SECONDS", 0.1)
        node = candidate(topic, tmp_path / "c1", 1)
        await node.start()
        assert names(node) == {"t"}
        assert "no checkpoint from another controller" in caplog.text
        await node.stop()

    async def test_a_directory_belongs_to_one_node(self, tmp_path):
        topic = SharedTopic()
        async with three(tmp_path, topic):
            other = candidate(topic, tmp_path / "c2", 2)
            with pytest.raises(LockedError):
                await other.start()
            await other.stop()

    async def test_local_segments_are_refused(self, tmp_path):
        node = candidate(SharedTopic(), tmp_path, 1)
        open_log(tmp_path / LOG_DIRECTORY, create=True).close()
        with pytest.raises(ConfigError, match=r"contains log segments, but metadata\.log\.kind is topic"):
            await node.start()

    async def test_a_checkpoint_ahead_of_the_log(self, tmp_path, monkeypatch):
        topic = SharedTopic()
        async with three(tmp_path, topic) as nodes:
            await committed(create(nodes[1], "t"))
            assert await nodes[1].checkpoint()
        (tmp_path / "c1" / IDENTITY_FILE).unlink()
        monkeypatch.setattr("aclog.server.controller.shared._ARRIVE_SECONDS", 0)
        with pytest.raises(
            OtherLogError, match=r"\.checkpoint: a checkpoint of another log, or .*: it ends at offset 0"
        ):
            await candidate(SharedTopic(), tmp_path / "c1", 1).start()

    async def test_a_starting_standby_sends_changes_to_the_active_one(self, tmp_path):
        node = candidate(SharedTopic(), tmp_path, 1)
        assert node.serving is None
        with pytest.raises(RequestError) as refused:
            await call(node, api_keys.CREATE_ACLS, 3, creations("t"))
        assert refused.value.code == NOT_CONTROLLER

    @pytest.mark.parametrize("node_id", [1, 2])
    @pytest.mark.parametrize("kind", [DecodeError, LogError])
    @pytest.mark.tier("test")
    async def test_a_reader_that_can_never_go_on_ends_its_controller(self, tmp_path, node_id, kind):
        """The active one or a standby, which would go on to decide by what it has, and seem healthy."""
        topic, failures = SharedTopic(), []
        async with three(tmp_path, topic, on_failure=failures.append) as nodes:
            nodes[node_id].shared.reader.failure = kind("memory topic: what comes next is gone")
            await until(lambda: failures)
            assert "memory topic: what comes next is gone" in str(failures[0])
            assert len(failures) == len(topic.logs) == 1, "it has opened the log again"
            assert nodes[1].active is (node_id == 2)

    async def test_a_cancelled_start_leaves_nothing_open(self, tmp_path):
        topic = SharedTopic()
        node = candidate(topic, tmp_path, 1)
        starting = asyncio.create_task(node.start())
        await until(lambda: 1 in topic.candidates)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not topic.candidates
        again = candidate(topic, tmp_path, 1)
        starting = asyncio.create_task(again.start())
        await until(lambda: 1 in topic.candidates)
        topic.elect(1)
        await starting
        await again.stop()

    async def test_unusable_topic_settings_are_final(self, tmp_path):
        topic = SharedTopic()
        topic.unsuitable = "2 partitions"
        node = candidate(topic, tmp_path, 1)
        with pytest.raises(ConfigError, match="2 partitions"):
            await node.start()

    async def test_a_reader_that_has_failed_for_good_ends_the_start(self, tmp_path, monkeypatch):
        """Nothing reads any more, so that no wait can end."""
        node, lost = candidate(SharedTopic(), tmp_path, 1), RemovedError("memory topic: all messages were removed")
        reader = node.shared.open_reader()

        def unknown(_):
            reader.failure = lost
            raise lost

        monkeypatch.setattr(reader, "wait_known", unknown)
        monkeypatch.setattr(node.shared, "open_reader", lambda: reader)
        async with asyncio.timeout(60):
            with pytest.raises(RemovedError, match="all messages were removed"):
                await node.start()
        assert reader._closed.is_set()

    async def test_unavailable_brokers_are_awaited(self, tmp_path, monkeypatch):
        monkeypatch.setattr("aclog.server.controller.leadership._RETRY_SECONDS", 0.01)
        topic, tries = SharedTopic(), []
        node = candidate(topic, tmp_path, 1)

        def identify():
            tries.append(1)
            if len(tries) < 3:
                raise LogError("no broker")
            return TopicId(kafka_cluster_id="a-kafka", topic_id="a-topic")

        monkeypatch.setattr(node.shared, "identify", identify)
        starting = asyncio.create_task(node.start())
        await until(lambda: 1 in topic.candidates)
        topic.elect(1)
        await starting
        await node.stop()
        assert len(tries) >= 3
