"""The names of Kafka 4.3.1's requests, by apiKey (org.apache.kafka.common.protocol.ApiKeys.name)."""

from aclog.authorizer.errors import InvalidRequestError

# fmt: off
API_NAMES = (
    "Produce", "Fetch", "ListOffsets", "Metadata", "LeaderAndIsr",
    "StopReplica", "UpdateMetadata", "ControlledShutdown", "OffsetCommit", "OffsetFetch",
    "FindCoordinator", "JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup",
    "DescribeGroups", "ListGroups", "SaslHandshake", "ApiVersions", "CreateTopics",
    "DeleteTopics", "DeleteRecords", "InitProducerId", "OffsetForLeaderEpoch", "AddPartitionsToTxn",
    "AddOffsetsToTxn", "EndTxn", "WriteTxnMarkers", "TxnOffsetCommit", "DescribeAcls",
    "CreateAcls", "DeleteAcls", "DescribeConfigs", "AlterConfigs", "AlterReplicaLogDirs",
    "DescribeLogDirs", "SaslAuthenticate", "CreatePartitions", "CreateDelegationToken", "RenewDelegationToken",
    "ExpireDelegationToken", "DescribeDelegationToken", "DeleteGroups", "ElectLeaders", "IncrementalAlterConfigs",
    "AlterPartitionReassignments", "ListPartitionReassignments", "OffsetDelete",
    "DescribeClientQuotas", "AlterClientQuotas", "DescribeUserScramCredentials", "AlterUserScramCredentials",
    "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "DescribeQuorum", "AlterPartition", "UpdateFeatures", "Envelope",
    "FetchSnapshot", "DescribeCluster", "DescribeProducers", "BrokerRegistration", "BrokerHeartbeat",
    "UnregisterBroker", "DescribeTransactions", "ListTransactions", "AllocateProducerIds",
    "ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "ControllerRegistration", "GetTelemetrySubscriptions",
    "PushTelemetry", "AssignReplicasToDirs", "ListConfigResources", "DescribeTopicPartitions",
    "ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge",
    "AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter", "InitializeShareGroupState", "ReadShareGroupState",
    "WriteShareGroupState", "DeleteShareGroupState", "ReadShareGroupStateSummary",
    "StreamsGroupHeartbeat", "StreamsGroupDescribe",
    "DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets",
)
# fmt: on


def api_name(api_key: int) -> str:
    """The request's name.

    Raises:
        InvalidRequestError: a key that Kafka 4.3.1 does not know; its ApiKeys.forId throws on it too.

    """
    if not 0 <= api_key < len(API_NAMES):
        raise InvalidRequestError(f"Unexpected api key: {api_key}")
    return API_NAMES[api_key]
