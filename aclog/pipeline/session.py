"""The Spark session, its errors, and what jobs share."""

import os
import pickle
import re
import secrets
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
import pyspark
from attrs import field
from pyspark.errors import PySparkException, PySparkValueError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline.output_directory import connect_address
from aclog.pipeline.source import register

# The Spark session of the commands, on this machine by default.


_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Defaults of every session. Times are UTC everywhere, as in --as-of."""

_LAUNCHED = {
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}"
}
"""For a JVM that this process starts. Under spark-submit it runs already, with logging of its own."""

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "8",
}
"""For one machine: no port open to the network, and few shuffle partitions for few cores (Spark's default is 200)."""


def open_session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the running session or a new one, with the data source `aclog` registered.

    `master` is a Spark master URL, or `sc://HOST:15002`, a server of Spark Connect; by default that of SPARK_REMOTE or
    of spark-submit, or else `local[*]`.

    Raises:
        ConfigError: a server of Spark Connect cannot be reached, or does not change a setting for a session.

    """
    remote = connect_address(master)
    if remote is not None:
        return _open_connect(remote, settings or {})
    # Spark would start workers with the first `python3` on the path, which may lack PyArrow and aclog.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not submitted:
        master = "local[*]"
    options = _SETTINGS if submitted else {**_SETTINGS, **_LAUNCHED}
    builder = SparkSession.builder.appName("aclog")
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            options = {**options, **_LOCAL}
    defaults = {} if submitted else _defaults()  # under spark-submit they are in the session already
    own = {name: value for name, value in options.items() if name in _FIXED or name not in defaults}
    for name, value in {**own, **(settings or {})}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    register(session)
    return session


_CONNECT_PORT: Final = 15002
_PATIENCE: Final = 10.0
"""Seconds for a server to accept a connection: the client of Spark Connect would try for ten minutes."""


def _open_connect(address: str, settings: Mapping[str, str]) -> SparkSession:
    for name in settings:
        if not name.startswith("spark.sql."):
            raise ConfigError(
                f"{name}: a setting of the server of Spark Connect, which a session does not change: expected it where "
                "the server is started; --conf spark.sql.KEY=VALUE is one of the session"
            )
    host, port = _host_and_port(address)
    try:
        socket.create_connection((host, port), _PATIENCE).close()
    except OSError as error:
        raise ConfigError(f"{host}:{port}: no server of Spark Connect: {error}") from error
    if find_spec("grpc_status") is None:
        raise ConfigError("Spark Connect: the packages of its client are missing: pip install 'pyspark[connect]'")
    try:
        session = SparkSession.builder.remote(address).getOrCreate()
    except PySparkValueError as error:
        if error.getCondition() != "INVALID_CONNECT_URL":
            raise
        # its text may have the token
        raise ConfigError(
            f"{host}:{port}: Spark Connect does not take the rest of the address: expected sc://HOST:PORT/;KEY=VALUE;"
            "..., with `/` in a value as %2F"
        ) from None
    own = {name: value for name, value in _SETTINGS.items() if name.startswith("spark.sql.")}
    for name, value in {**own, **settings}.items():
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            raise ConfigError(f"--conf {name}: {cause(str(error))}") from error
    register(session)
    return session


def _host_and_port(address: str) -> tuple[str, int]:
    """Return those of an address. Raises ConfigError: it has none; without the address, which may have a token."""
    try:
        where = urlsplit(address)
        if where.hostname:
            return where.hostname, _CONNECT_PORT if where.port is None else where.port
    except ValueError:  # its text contains that of the port
        pass
    raise ConfigError(
        "the address of a server of Spark Connect has no host, or no port from 0 to 65535: expected sc://HOST:PORT"
    )


_FIXED: Final = frozenset({"spark.sql.session.timeZone"})
"""Settings of aclog's that spark-defaults.conf does not change."""


def _defaults() -> dict[str, str]:
    """Return the settings in spark-defaults.conf, which the JVM reads itself: aclog's own would override them."""
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    path = Path(os.environ.get("SPARK_CONF_DIR") or f"{home}/conf", "spark-defaults.conf")
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (re.fullmatch(r"\s*([^\s#=:]+)(?:\s*[=:]\s*|\s+)(.*?)\s*", line) for line in lines)
    return {match[1]: match[2] for match in pairs if match}


# Messages about failed Spark jobs: the cause, in one line, of an error whose text is two stack traces.


_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*(\S.*)")
"""A worker's traceback, as text inside a Java exception; it ends with a line that begins with the error's class."""
_OWN = re.compile(r"aclog(?:\.\w+)+: (.*)")
_CAUSED_BY = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+(?:: .*)?)$", re.MULTILINE)
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
_CRASHED = "Python worker exited unexpectedly"
_CAUSE_LENGTH = 300

PYTHON_TO_SET = "set PYSPARK_PYTHON to a Python that has aclog on every machine (docs/spark.md: On a cluster)"


def own_error(text: str) -> str | None:
    """Return the message of the error that aclog raised in a worker, None if it was another error."""
    lines = _TRACEBACK.findall(text)
    own = _OWN.match(lines[-1]) if lines else None
    return own[1] if own else None


def cause(text: str) -> str:
    """Return the cause of a Spark error: that of Python if there is one, else the innermost of Java, else line one."""
    own = own_error(text)
    return own if own is not None else (_missing(text) or _last_line(text))[:_CAUSE_LENGTH]


def _missing(text: str) -> str | None:
    """Return the advice about a worker's Python that is missing or incomplete."""
    if match := _NO_MODULE.search(text):
        return f"{match[0]}' in the Python of a worker: {PYTHON_TO_SET}"
    if match := _NO_PROGRAM.search(text):
        return f"cannot run {match[1]}, the Python of the workers: {PYTHON_TO_SET}"
    if _CRASHED in text and not _TRACEBACK.search(text):
        return "a Python worker crashed or was killed, most likely for lack of memory (docs/scale.md: Memory)"
    return None


def _last_line(text: str) -> str:
    lines = _TRACEBACK.findall(text) or _CAUSED_BY.findall(text)
    return str(lines[-1] if lines else text.strip().split("\n", 1)[0])


# Data that every worker receives: the ACLs that decide.


_Value = TypeVar("_Value")
_Sent_co = TypeVar("_Sent_co", covariant=True)


class Sent(Protocol[_Sent_co]):
    """A value that workers have. In all tasks of a worker process, what is sent once is equal, and has one hash."""

    @property
    def value(self) -> _Sent_co:
        """The value."""
        ...

    def __hash__(self) -> int: ...


@frozen
class Enclosed(Generic[_Value]):
    """A value inside the functions that use it."""

    value: _Value = field(eq=False, repr=False)
    token: str = field(factory=lambda: secrets.token_hex(16))


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return the rows of a table as a frame: PySpark 4.2 takes no table without rows on Spark Connect."""
    return spark.createDataFrame(rows) if len(rows) else spark.createDataFrame([], from_arrow_schema(rows.schema))


MOST_ENCLOSED: Final = 48 << 20
"""Bytes: Spark Connect sends a plan as one message of up to 128 MiB, and a plan may have two such values."""


def broadcast(spark: SparkSession, value: _Value) -> Sent[_Value]:
    """Send a value to all workers of a session: as a broadcast variable, which Spark Connect does not have.

    With Spark Connect, each function has the value inside it, and each task receives it.

    Raises:
        ConfigError: a session of Spark Connect, and a value of more than MOST_ENCLOSED bytes.

    """
    if not is_connect(spark):
        sent: Sent[_Value] = spark.sparkContext.broadcast(value)
        return sent
    size = len(pickle.dumps(value))
    if size > MOST_ENCLOSED:
        raise ConfigError(
            f"{size:,} bytes for the workers, such as ACLs: a session of Spark Connect, which has no broadcast "
            f"variables, sends up to {MOST_ENCLOSED:,}: expected fewer ACLs, or a classic session "
            "(--master spark://HOST:7077, or spark-submit)"
        )
    return Enclosed(value)


# Pieces of work done by Spark's workers, as aclog.usage.judging does them in processes of one machine.


P = TypeVar("P")
R = TypeVar("R")

_TASKS_OF_A_CORE = 4
"""Tasks per core whose results the driver holds at once."""
_TASKS_OF_A_SERVER = 64
"""The same of a server of Spark Connect, whose number of cores a client does not know."""


def each_on_spark(spark: SparkSession, parts: Sequence[P], make: Callable[[], Callable[[P], R]]) -> Iterator[R]:
    """Yield the result of each part, one task each, in their order.

    Each worker process calls `make`, which is pickled, once, and its result for each part. Files that a part names must
    be there under the same path.

    Raises:
        ConfigError: a session of Spark Connect, and `make` or a part has more than MOST_ENCLOSED bytes. Errors of the
            work fail the job.

    """
    sent = broadcast(spark, make)
    if is_connect(spark):
        for message in _messages(map(pickle.dumps, parts)):
            yield from _each_on_server(spark, message, sent)
        return
    context = spark.sparkContext
    together = context.defaultParallelism * _TASKS_OF_A_CORE
    for start in range(0, len(parts), together):
        some = parts[start : start + together]
        yield from context.parallelize(some, len(some)).map(partial(_work, sent)).collect()


def _messages(pickled: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield parts that one plan may contain, in their order. Raises ConfigError: one part is too large for any."""
    some, size = list[bytes](), 0
    for part in pickled:
        if len(part) > MOST_ENCLOSED:
            raise ConfigError(
                f"{len(part):,} bytes for one task: a session of Spark Connect sends up to {MOST_ENCLOSED:,}: expected "
                "a classic session (--master spark://HOST:7077, or spark-submit)"
            )
        if some and (len(some) == _TASKS_OF_A_SERVER or size + len(part) > MOST_ENCLOSED):
            yield some
            some, size = [], 0
        some.append(part)
        size += len(part)
    if some:
        yield some


def _each_on_server(
    spark: SparkSession, pickled: Sequence[bytes], sent: Sent[Callable[[], Callable[[Any], R]]]
) -> Iterator[R]:
    """Yield the results by a function of a frame: Spark Connect has no RDDs."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do the parts of one task."""
        for batch in batches:
            numbers: list[Any] = batch.column(0).to_pylist()
            for number in numbers:
                data = pickle.dumps(_work(sent, pickle.loads(pickled[number])))  # noqa: S301 - of this session
                pieces = [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)]
                for at, piece in enumerate(pieces):
                    columns = [pa.array([number], pa.int64()), pa.array([at], pa.int64()), pa.array([piece])]
                    yield pa.record_batch(columns, names=["number", "at", "piece"])

    rows = spark.range(0, len(pickled), 1, len(pickled)).mapInArrow(run, "number long, at long, piece binary").toArrow()
    of_part: dict[int, dict[int, bytes]] = {}
    for row in rows.to_pylist():
        of_part.setdefault(row["number"], {})[row["at"]] = row["piece"]
    for number in range(len(pickled)):
        pieces = of_part[number]
        yield pickle.loads(b"".join(pieces[at] for at in sorted(pieces)))  # noqa: S301 - of this session's workers


_PIECE: Final = 4 << 20
"""Bytes of a result in one row: a message of Spark Connect has up to 128 MiB."""


def _work(sent: Sent[Callable[[], Callable[[Any], Any]]], part: Any) -> Any:
    return _function(sent)(part)


@lru_cache(1)
def _function(sent: Sent[Callable[[], Callable[[Any], Any]]]) -> Callable[[Any], Any]:
    """Return the function of a worker process, cached between tasks: the broadcast is the same object in all."""
    return sent.value()
