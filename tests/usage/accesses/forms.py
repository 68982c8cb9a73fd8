"""Forms in which one line of kafka-authorizer.log reaches users: layouts, containers, exports and packings."""
# ruff: noqa: E501 - lines of logs

import bz2
import csv
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa

TIME: Final = datetime(2026, 3, 1, 10, 0, 0, 123_000, tzinfo=UTC)
LOGGER: Final = "kafka.authorizer.logger"
THREAD: Final = "data-plane-kafka-request-handler-3"
_RULE: Final = "StandardAcl{}resourceType=TOPIC, resourceName=*, patternType=LITERAL, principal=User:*, host=*, operation=READ, permissionType=DENY{}"
BODIES: Final = {
    # Kafka 0.9 to 1.1, 2.0 to 2.3, 2.4 to 3.9, and 3.2 to 4.x in both forms of a rule
    "0.9": "Principal = User:alice is Allowed Operation = Write from host = 10.0.0.1 on resource = Topic:orders",
    "1.1": "Principal = User:bob is Denied Operation = AlterConfigs from host = 10.0.0.1 on resource = Topic:a.b_c-d",
    "2.0": "Principal = User:bob is Denied Operation = Read from host = 10.0.0.7 on resource = Topic:LITERAL:orders",
    "2.4": "Principal = User:CN=a b,OU=x is Denied Operation = Describe from host = 2001:db8:0:0:0:0:0:1 on resource = "
    "Group:LITERAL:g of x for request = Metadata with resourceRefCount = 1",
    "3.9": "Principal = User:al=ice, \"q\" [x] is Allowed Operation = Write from host = fe80:0:0:0:0:0:0:1%eth0 on resource = "
    "Topic:LITERAL:orders for request = Produce with resourceRefCount = 12",
    "3.2": "Principal = User:bob is Denied operation = READ from host = 10.0.0.7 on resource = Topic:LITERAL:orders for "
    "request = Fetch with resourceRefCount = 1 based on rule DefaultDeny",
    "3.3": "Principal = User:bob is Denied operation = READ from host = 10.0.0.7 on resource = Topic:LITERAL:orders for "
    f"request = Fetch with resourceRefCount = 1 based on rule MatchingAcl(acl={_RULE.format('(', ')')})",
    "4.0": "Principal = User:böb is Allowed operation = IDEMPOTENT_WRITE from host = 10.0.0.7 on resource = "
    f"Cluster:LITERAL:kafka-cluster for request = InitProducerId with resourceRefCount = 1 based on rule MatchingAcl(acl={_RULE.format('[', ']')})",
    "4.4": "Principal = User:x is Allowed operation = y is Denied operation = READ from host = 10.0.0.7 on resource = "
    "TransactionalId:LITERAL:tx \\ \"1\" for request = Fetch with resourceRefCount = 1 based on rule SuperUser",
    "4.4d": "Principal = User:bob is Allowed operation = DESCRIBE from host = 0:0:0:0:0:0:0:1 on resource = "
    "DelegationToken:LITERAL:abc for request = DescribeDelegationToken with resourceRefCount = 1 based on rule DefaultAllow",
}  # fmt: skip
"""Messages of every authorizer of Kafka."""


def apache(body: str) -> str:
    """The line in Apache's layout."""
    return f"[2026-03-01 10:00:00,123] INFO {body} ({LOGGER})"


_ISO = "2026-03-01T10:00:00.123"
_NANOS = "2026-03-01T10:00:00.123456789Z"
_PLAIN = "2026-03-01 10:00:00,123"


def _csv(*fields: str) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="").writerow(fields)
    return out.getvalue()


def _object(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False)


TEXTS: Final[dict[str, Callable[[str], str]]] = {
    "apache": apache,
    "strimzi": lambda m: f"{_PLAIN} INFO {m} ({LOGGER}) [{THREAD}]",
    "confluent": lambda m: f"[{_PLAIN}] INFO {m} ({LOGGER})",
    "cloudera": lambda m: f"{_PLAIN} INFO {LOGGER}: {m}",
    "cloudwatch": lambda m: f"{_ISO}Z {apache(m)}",
    "kubectl": lambda m: f"{_NANOS} {apache(m)}",
    "kubectl prefix": lambda m: f"[pod/my-cluster-kafka-0/kafka] {_NANOS} {apache(m)}",
    "cri": lambda m: f"{_NANOS} stdout F {apache(m)}",
    "docker compose": lambda m: f"kafka-1  | {apache(m)}",
    "docker compose colours": lambda m: f"\x1b[36mkafka-1  | \x1b[0m{apache(m)}",
    "syslog 3164": lambda m: f"Mar  1 10:00:00 broker1 kafka[2345]: {apache(m)}",
    "syslog 5424": lambda m: f"<134>1 {_ISO}Z broker1 kafka 2345 - - {apache(m)}",
    "journald iso": lambda m: f"2026-03-01T10:00:00+0000 broker1 kafka[2345]: {apache(m)}",
    "T": lambda m: f"[2026-03-01T10:00:00,123] INFO {m} ({LOGGER})",
    "dot": lambda m: f"[2026-03-01 10:00:00.123] INFO {m} ({LOGGER})",
    "zone Z": lambda m: f"[{_ISO}Z] INFO {m} ({LOGGER})",
    "zone": lambda m: f"[2026-03-01 11:00:00,123+0100] INFO {m} ({LOGGER})",
    "zone blank": lambda m: f"[2026-03-01 11:00:00,123 +01:00] INFO {m} ({LOGGER})",
    "colon": lambda m: f"[2026-03-01 10:00:00:123] INFO {m} ({LOGGER})",
    "thread before": lambda m: f"[{_PLAIN}] INFO [{THREAD}] {m} ({LOGGER})",
    "level in brackets": lambda m: f"{_PLAIN} [INFO] {m} ({LOGGER})",
    "thread first": lambda m: f"{_PLAIN} [{THREAD}] INFO  {LOGGER} - {m}",
    "logback": lambda m: f"10:00:00.123 {_PLAIN} [{THREAD}] INFO  {LOGGER} -- {m}",
    "level first": lambda m: f"INFO  [{_PLAIN}] [{THREAD}] {m} ({LOGGER})",
    "spring": lambda m: f"{_ISO}Z  INFO 1 --- [{THREAD}] {LOGGER} : {m}",
    "pipes": lambda m: f"{_PLAIN} | INFO | {THREAD} | {LOGGER} | {m}",
    "glog": lambda m: f"{_PLAIN} INFO {LOGGER}:57 - {m}",
    "ms": lambda m: f"1772359200123 INFO {m} ({LOGGER})",
    "s": lambda m: f"1772359200.123 INFO {m} ({LOGGER})",
    "slashes": lambda m: f"2026/03/01 10:00:00,123 INFO {m} ({LOGGER})",
    "date": lambda m: f"01 Mar 2026 10:00:00,123 INFO {m} ({LOGGER})",
    "compact": lambda m: f"20260301100000123 INFO {m} ({LOGGER})",
    "basic": lambda m: f"20260301T100000,123 INFO {m} ({LOGGER})",
    "time after": lambda m: f"INFO {m} ({LOGGER}) {_PLAIN}",
    "abbreviated logger": lambda m: f"[{_PLAIN}] INFO {m} (k.a.logger)",
    "no logger": lambda m: f"[{_PLAIN}] INFO {m}",
    "no level": lambda m: f"[{_PLAIN}] {m} ({LOGGER})",
    "lower level": lambda m: f"{_PLAIN} info {m} ({LOGGER})",
    "key value": lambda m: f"time={_ISO}Z level=INFO logger={LOGGER} msg={m}",
    "csv": lambda m: _csv(f"{_ISO}Z", m, LOGGER),
    "csv of lines": lambda m: _csv("1772359200123", apache(m), "broker-1"),
    "tabs": lambda m: f"{_ISO}Z\tINFO\t{LOGGER}\t{m}",
    "rsyslog forwarded": lambda m: f"{_ISO}000+00:00 broker1 kafka: {apache(m)}",
    "windows": lambda m: f"{apache(m)}\r",
    "torn head": lambda m: f"der.logger)\n{apache(m)}",
    "byte order mark": lambda m: f"\ufeff{apache(m)}",
    "NULs": lambda m: "\0" * 4096 + apache(m),
    "stack trace": lambda m: f"{apache(m)}\njava.lang.IllegalStateException: no\n\tat kafka.A.b(C.scala:1)",
    "ecs": lambda m: _object(**{"@timestamp": f"{_ISO}Z", "log.level": "INFO", "message": m, "log.logger": LOGGER}),
    "logstash": lambda m: _object(**{"@timestamp": f"{_ISO}Z", "@version": "1", "message": m, "logger_name": LOGGER, "level": "INFO"}),
    "gelf": lambda m: _object(version="1.1", host="b1", short_message=m, timestamp=1772359200.123, level=6, _logger=LOGGER),
    "log4j2 json": lambda m: _object(
        instant={"epochSecond": 1772359200, "nanoOfSecond": 123000000}, thread=THREAD, level="INFO", loggerName=LOGGER, message=m
    ),
    "log4j2 json ms": lambda m: _object(timeMillis=1772359200123, thread=THREAD, level="INFO", loggerName=LOGGER, message=m),
    "stackdriver": lambda m: _object(timestamp={"seconds": 1772359200, "nanos": 123000000}, severity="INFO", message=m),
    "logback json": lambda m: _object(timestamp=1772359200123, level="INFO", thread=THREAD, logger=LOGGER, message=m),
    "gson": lambda m: _object(timestamp=1772359200123, message=m).replace("=", "\\u003d"),
    "docker json": lambda m: _object(log=apache(m) + "\n", stream="stdout", time=_NANOS),
    "docker json of ecs": lambda m: _object(log=_object(**{"@timestamp": f"{_ISO}Z", "message": m}) + "\n", time=_NANOS),
    "cloudwatch json": lambda m: _object(timestamp=1772359200123, message=apache(m), ingestionTime=1772359201000),
    "journald json": lambda m: _object(__REALTIME_TIMESTAMP="1772359200123456", MESSAGE=m, _PID="1"),
    "elasticsearch": lambda m: _object(_index="k", _source={"@timestamp": f"{_ISO}Z", "message": m}),
    "splunk": lambda m: _object(preview=False, result={"_raw": apache(m), "_time": "1772359200"}),
    "loki": lambda m: _object(stream={"app": "kafka"}, values=[["1772359200123000000", m]]),
    "fluent bit": lambda m: _object(date=1772359200.123, log=m, kubernetes={"pod_name": "kafka-0"}),
    "filebeat": lambda m: _object(**{"@timestamp": "2026-03-01T10:00:05.000Z", "message": apache(m), "agent": {"type": "filebeat"}}),
}  # fmt: skip
"""A line by the message in it."""


def _zip(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("kafka/kafka-authorizer.log", data)
        archive.writestr("kafka/heap", b"\0\1\2\3\0\0\0\0" * 10)
    return out.getvalue()


def _tar(data: bytes, mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in (("kafka/server.log", b"started"), ("kafka/kafka-authorizer.log", data)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


PACKINGS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "log.gz": gzip.compress,
    "log.gz.1": gzip.compress,
    "log.bz2": bz2.compress,
    "log.xz": lzma.compress,
    "log.zst": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
    "log.zip": _zip,
    "log.tar": lambda data: _tar(data, "w"),
    "log.tar.gz": lambda data: _tar(data, "w:gz"),
    "log.txz": lambda data: _tar(data, "w:xz"),
}
"""A packed file by its name and content."""
