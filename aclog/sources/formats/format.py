"""The formats in which files keep rules."""

from enum import StrEnum


class AclsFormat(StrEnum):
    """The format of files of rules; AUTO finds it out for each file."""

    AUTO = "auto"
    JSONL = "jsonl"
    KAFKA_ACLS = "kafka-acls"
    KSM = "ksm"
    STRIMZI = "strimzi"
    TERRAFORM = "terraform"
    KAFKA_GITOPS = "kafka-gitops"
    JULIE = "julie"
    JIKKOU = "jikkou"
    NS4KAFKA = "ns4kafka"
    REDPANDA = "redpanda"
    ANSIBLE = "ansible"
    RPK = "rpk"
    CONFLUENT = "confluent"
    TABLE = "table"
    CSV = "csv"
    SHELL = "shell"


LARGEST = 64 << 20
"""The largest file, in bytes; JSON lines are not read as a whole, and may be larger."""
