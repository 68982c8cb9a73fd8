"""Log directories of nodes: formatting as kafka-storage does, and their properties."""

import asyncio
import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

from attrs import evolve

from aclog.authorizer.settings import Generation
from aclog.config.listeners import ADVERTISED, ANY_ADDRESS
from aclog.config.node_config import HostPort, NodeConfig
from aclog.config.node_settings import BOOTSTRAP, VOTERS
from aclog.config.properties import Properties, listener_addresses
from aclog.credentials.scram import (
    MIN_ITERATIONS,
    SALT_BYTES,
    ScramMechanism,
    client_key,
    kafka_salt,
    salted_password,
    server_key,
    stored_key,
)
from aclog.metalog import control_records
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.metalog.filelog import files
from aclog.metalog.filelog.committed_mark import COMMITTED_FILE
from aclog.metalog.filelog.locks import LOCK_FILE
from aclog.metalog.filelog.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from aclog.metalog.machine import disk, randomness
from aclog.metalog.primitives import current_time_ms, parse_uuid, random_uuid, uuid_text
from aclog.metalog.records import FeatureLevelRecord, UserScramCredentialRecord
from aclog.metalog.values import frozen
from aclog.server.feature_levels import SCRAM_SINCE, FeatureLevels, feature_levels

# The voter of `--initial-controllers`: `id@host:port:directory id` (org.apache.kafka.raft.DynamicVoter).


_VOTER = re.compile(r"([0-9]{1,10})@(?:\[([^\]]+)\]|([^:\[\]]+)):([0-9]{1,5}):(.+)")
_MAX_PORT = 65_535
_MAX_ID = (1 << 31) - 1
_SUPPORTED_KRAFT_VERSIONS = control_records.SupportedVersions(min_supported_version=0, max_supported_version=1)


@frozen(kw_only=True)
class InitialVoter:
    """A quorum's only voter: its node id, its metadata log directory's id, and its address."""

    node_id: int
    address: HostPort
    directory_id: UUID

    def as_voters(self, listener_name: str) -> control_records.KRaftVoters:
        """Return the VotersRecord of a quorum of this voter; its endpoint is the first controller listener."""
        endpoint = control_records.Endpoint(name=listener_name.upper(), host=self.address.host, port=self.address.port)
        voter = control_records.Voter(
            voter_id=self.node_id,
            voter_directory_id=self.directory_id,
            endpoints=(endpoint,),
            kraft_version_feature=_SUPPORTED_KRAFT_VERSIONS,
        )
        return control_records.KRaftVoters(voters=(voter,))


def parse_initial_voter(text: str) -> InitialVoter:
    """Parse the one voter.

    Raises:
        ConfigError: malformed, or several voters.

    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) > 1:
        raise ConfigError(
            f"--initial-controllers: {len(parts)} voters: expected one; a quorum of several voters is not supported"
        )
    match = _VOTER.fullmatch(parts[0]) if parts else None
    if match is None or int(match[1]) > _MAX_ID or int(match[4]) > _MAX_PORT:
        raise ConfigError(f"--initial-controllers {text!r}: expected <id>@<host>:<port>:<directory id>")
    return InitialVoter(
        node_id=int(match[1]),
        address=HostPort(host=match[2] or match[3], port=int(match[4])),
        directory_id=parse_uuid(match[5]),
    )


# The files of a formatted log directory, byte for byte as kafka-storage writes them (Formatter.doFormat).
#
# Up to Kafka 4.3 bootstrap.checkpoint in every directory, and the 0-0 checkpoint with the voters in the metadata
# log's; from 4.4 on that checkpoint alone, with the records in it. And meta.properties in each.


BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
FIRST_CHECKPOINT = files.checkpoint_name(0, 0)
READ_ONLY = 0o400

BootstrapRecord: TypeAlias = FeatureLevelRecord | UserScramCredentialRecord


@frozen(kw_only=True)
class FormatPlan:
    """The files of all directories: `records` in bootstrap.checkpoint, `voter` in the metadata log's 0-0 checkpoint.

    From Kafka 4.4 on (KIP-1170) the records are in the 0-0 checkpoint too, which only a controller has.
    """

    cluster_id: str
    release: str
    generation: Generation
    records: tuple[BootstrapRecord, ...]
    voter: InitialVoter | None
    kraft_version: int
    now_ms: int
    token_bytes: Callable[[int], bytes]


def bootstrap_bytes(records: Sequence[BootstrapRecord], *, now_ms: int) -> bytes:
    """Return bootstrap.checkpoint: the records that a new cluster's controller writes first (BootstrapDirectory)."""
    # 0, unlike in the 0-0 checkpoint, because Kafka's BootstrapDirectory writes it so.
    header = control_records.SnapshotHeader(last_contained_log_timestamp=0)
    end = len(records) + 1
    return b"".join(
        (
            control_records.control_batch(header, base_offset=0, leader_epoch=0, timestamp=now_ms),
            build_batch(list(map(encode_record, records)), base_offset=1, leader_epoch=0, timestamp=now_ms),
            control_records.control_batch(
                control_records.SnapshotFooter(), base_offset=end, leader_epoch=0, timestamp=now_ms
            ),
        )
    )


def first_checkpoint_bytes(voters: control_records.KRaftVoters, *, now_ms: int) -> bytes:
    """Return the 0-0 checkpoint: kraft.version 1 and the voters (Formatter.writeDynamicQuorumSnapshot)."""
    header = control_records.snapshot_header_records(
        last_contained_log_timestamp=now_ms, kraft_version=1, voters=voters
    )
    return b"".join(
        (
            control_records.control_batch(*header, base_offset=0, leader_epoch=0, timestamp=now_ms),
            control_records.control_batch(
                control_records.SnapshotFooter(), base_offset=len(header), leader_epoch=0, timestamp=now_ms
            ),
        )
    )


def template_bytes(
    records: Sequence[BootstrapRecord], *, kraft_version: int, voters: control_records.KRaftVoters | None, now_ms: int
) -> bytes:
    """Return the 0-0 checkpoint of Kafka 4.4: the voters, and the records that the first leader writes (Formatter)."""
    opening: tuple[control_records.ControlRecord, ...] = (
        control_records.SnapshotHeader(last_contained_log_timestamp=now_ms),
    )
    if kraft_version:
        # Without initial controllers too: the voters of the quorum that this node joins are in its log.
        opening += (control_records.KRaftVersion(kraft_version=kraft_version), *(() if voters is None else (voters,)))
    end = len(opening) + len(records)
    return b"".join(
        (
            control_records.control_batch(*opening, base_offset=0, leader_epoch=0, timestamp=now_ms),
            build_batch(list(map(encode_record, records)), base_offset=len(opening), leader_epoch=0, timestamp=now_ms),
            control_records.control_batch(
                control_records.SnapshotFooter(), base_offset=end, leader_epoch=0, timestamp=now_ms
            ),
        )
    )


def format_directory(config: NodeConfig, directory: Path, plan: FormatPlan) -> str:
    """Format one log directory; return kafka-storage's output line.

    Raises:
        LogError: the disk is full, or the directory cannot be written.

    """
    kind, directory_id = _kind(config, directory, plan)
    _make(directory)
    if plan.generation is Generation.V4_3:
        files.replace_durably(directory / BOOTSTRAP_CHECKPOINT, bootstrap_bytes(plan.records, now_ms=plan.now_ms))
    if directory == config.metadata_log_dir and (data := _first_checkpoint(config, plan)) is not None:
        _write_first_checkpoint(directory, data)
    # Last: a directory without meta.properties is not formatted, so a crash before this line is repaired by a second
    # run.
    meta = MetaProperties(cluster_id=plan.cluster_id, node_id=config.node_id, directory_id=directory_id)
    write_meta_properties(directory, meta, now_ms=plan.now_ms)
    return f"Formatting {kind} {directory} with metadata.version {plan.release}."


def _first_checkpoint(config: NodeConfig, plan: FormatPlan) -> bytes | None:
    """Return the contents of the 0-0 checkpoint of the metadata log's directory; None if the node gets none."""
    voters = None if plan.voter is None else plan.voter.as_voters(config.controller_listener_names[0])
    if plan.generation is not Generation.V4_3:
        if not config.is_controller:
            return None
        return template_bytes(plan.records, kraft_version=plan.kraft_version, voters=voters, now_ms=plan.now_ms)
    return None if voters is None else first_checkpoint_bytes(voters, now_ms=plan.now_ms)


def _kind(config: NodeConfig, directory: Path, plan: FormatPlan) -> tuple[str, UUID]:
    """Return Kafka's name for the directory, and its id: the voter's for the voter's own metadata log directory."""
    if directory == config.metadata_log_dir and plan.voter is not None:
        if plan.voter.node_id == config.node_id:
            return "dynamic metadata voter directory", plan.voter.directory_id
        return "dynamic metadata directory", random_uuid(plan.token_bytes)
    kind = "metadata directory" if directory == config.metadata_log_dir else "data directory"
    return kind, random_uuid(plan.token_bytes)


def _write_first_checkpoint(directory: Path, data: bytes) -> None:
    log = directory / files.METADATA_DIRECTORY
    _make(log)
    path = log / FIRST_CHECKPOINT
    try:
        with files.written_whole(path) as fd:
            disk.fchmod(fd, READ_ONLY)
            files.write_all(fd, data)
    except OSError as error:
        raise files.log_error(error, path, "cannot write") from error


def _make(directory: Path) -> None:
    try:
        files.make_directories(directory)
    except OSError as error:
        raise files.log_error(error, directory, "cannot create") from error


# A node's log directories: which are formatted, for which node, and which are empty (MetaPropertiesEnsemble).


_IGNORED = {".lock", "lost+found", LOCK_FILE}
_WRITTEN_BY_FORMAT = {
    BOOTSTRAP_CHECKPOINT,
    BOOTSTRAP_CHECKPOINT + files.TEMPORARY_SUFFIX,
    META_PROPERTIES + files.TEMPORARY_SUFFIX,
}


def log_directories(config: NodeConfig) -> tuple[Path, ...]:
    """Return every directory that gets a meta.properties, sorted by name."""
    return tuple(sorted({*config.log_dirs, config.metadata_log_dir}, key=str))


def require_formatted(config: NodeConfig) -> MetaProperties:
    """Return the meta.properties of the metadata log's directory, without which a node does not start.

    Mirrors KafkaRaftServer.initializeLogDirs. An empty directory is as likely a volume that is not mounted, or data
    that was deleted, as a new node: formatting it in silence would make a cluster without any rules.

    Raises:
        ConfigError: the directory is not formatted, or belongs to another node.
        LogError: it cannot be read.

    """
    directory = config.metadata_log_dir
    meta = read_meta_properties(directory)
    if meta is None:
        raise ConfigError(
            f"No `{META_PROPERTIES}` found in {directory} (have you run `aclog format CONFIG` to format the directory?)"
            ". If this node had data before, restore it, or mount its volume. `aclog serve --format-if-empty` formats "
            "an empty directory"
        )
    check_meta_properties(directory, meta, node_id=config.node_id, cluster_id=None)
    return meta


def directories_to_format(config: NodeConfig, cluster_id: str, *, ignore_formatted: bool) -> tuple[Path, ...]:
    """Return the directories that are not formatted.

    Raises:
        ConfigError: one is already formatted without `ignore_formatted`, belongs to another node or cluster, or
            contains a metadata log but no meta.properties.
        LogError: one cannot be read.

    """
    unformatted = []
    for directory in log_directories(config):
        meta = read_meta_properties(directory)
        if meta is None:
            _check_no_log(directory)
            unformatted.append(directory)
            continue
        check_meta_properties(directory, meta, node_id=config.node_id, cluster_id=cluster_id)
        if not ignore_formatted:
            raise ConfigError(
                f"Log directory {directory} is already formatted. "
                "Use --ignore-formatted to ignore this directory and format the others."
            )
    return tuple(unformatted)


def check_unchanged(directory: Path, meta: MetaProperties) -> None:
    """Check that a running node's directory is still the one it started on.

    Raises:
        ConfigError: its meta.properties was removed or changed.
        LogError: it cannot be read.

    """
    if read_meta_properties(directory) != meta:
        raise ConfigError(
            f"{directory / META_PROPERTIES}: removed or changed while the node runs: expected the one of node "
            f"{meta.node_id} of cluster {meta.cluster_id}; nothing more is acknowledged"
        )


def _check_no_log(directory: Path) -> None:
    if (directory / COMMITTED_FILE).exists():
        raise ConfigError(
            f"{directory}: no {META_PROPERTIES}, but {COMMITTED_FILE} records a committed log: restore it; "
            "to start over without it, remove the contents of the directory"
        )
    log = directory / files.METADATA_DIRECTORY
    # Formatting would make these records the log of a new cluster.
    if log.is_dir() and files.list_segments(log):
        raise ConfigError(
            f"{directory}: no {META_PROPERTIES}, but a log in {files.METADATA_DIRECTORY}: expected an empty directory"
        )


def check_meta_properties(directory: Path, meta: MetaProperties, *, node_id: int, cluster_id: str | None) -> None:
    """Check that a directory belongs to this node and cluster.

    Raises:
        ConfigError: it does not.

    """
    path = directory / META_PROPERTIES
    if cluster_id is not None and meta.cluster_id != cluster_id:
        raise ConfigError(f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read {meta.cluster_id}")
    if meta.node_id != node_id:
        raise ConfigError(f"Invalid node.id in: {path}. Expected {node_id}, but read {meta.node_id}")


def foreign_file(directory: Path) -> str | None:
    """Return a file name that is not from a file system, a lock or an interrupted formatting; None without one.

    Raises:
        LogError: the directory cannot be read.

    """
    for name in _listed(directory):
        if name == files.METADATA_DIRECTORY:
            others = [inner for inner in _listed(directory / name) if not _is_first_checkpoint(inner)]
            if others:
                return f"{name}/{others[0]}"
        elif name not in _IGNORED | _WRITTEN_BY_FORMAT:
            return name
    return None


def _is_first_checkpoint(name: str) -> bool:
    """Whether it is the 0-0 checkpoint, or a partial one left by a crash."""
    return name.startswith(FIRST_CHECKPOINT.partition(".")[0]) and ".checkpoint" in name


def _listed(directory: Path) -> list[str]:
    try:
        return sorted(path.name for path in directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.log_error(error, directory, "cannot list") from error


# `--add-scram`: a new cluster's first SCRAM credentials (org.apache.kafka.metadata.storage.ScramParser).


MAX_ITERATIONS = 16_384
"""ScramMechanism.maxIterations"""

_EXPECTED = "expected SCRAM-SHA-256=[name=...,password=...] (iterations, salt; or salt and saltedpassword)"
_KEYS = {"name", "password", "iterations", "salt", "saltedpassword"}


def parse_scram_argument(argument: str, token_bytes: Callable[[int], bytes]) -> UserScramCredentialRecord:
    """Parse `MECHANISM=[name=...,password=...,...]`; `token_bytes` generates the salt.

    Passwords cannot contain a comma, as in Kafka.

    Raises:
        ConfigError: malformed; the argument is not shown, since it contains a password.

    """
    name, _, rest = argument.strip().partition("=")
    mechanism = next((mechanism for mechanism in ScramMechanism if mechanism.mechanism_name == name), None)
    if mechanism is None:
        raise _malformed("it does not begin with SCRAM-SHA-256= or SCRAM-SHA-512=")
    if not (rest.startswith("[") and rest.endswith("]") and len(rest) > 1):
        raise _malformed("the part after the mechanism is not enclosed in [ and ]")
    values = _components(rest[1:-1])
    salt = _decoded(values, "salt") if "salt" in values else kafka_salt(token_bytes(SALT_BYTES))
    iterations = _iterations(values.get("iterations", str(MIN_ITERATIONS)))
    salted = _salted_password(mechanism, values, salt, iterations)
    return UserScramCredentialRecord(
        name=values["name"],
        mechanism=mechanism,
        salt=salt,
        stored_key=stored_key(mechanism, client_key(mechanism, salted)),
        server_key=server_key(mechanism, salted),
        iterations=iterations,
    )


def _components(text: str) -> dict[str, str]:
    values = {}
    for number, part in enumerate(text.split(","), 1):
        key, equals, value = part.partition("=")
        if not equals:
            raise _malformed(f"part {number} between [ and ] is not <key>=<value> (a password cannot contain a comma)")
        if key not in _KEYS:
            raise _malformed(f"part {number} between [ and ] has an unknown key")
        quoted = len(value) > 1 and value[0] == value[-1] == '"'
        values[key] = value[1:-1] if quoted else value
    if "name" not in values:
        raise _malformed("no name")
    return values


def _iterations(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not MIN_ITERATIONS <= int(text) <= MAX_ITERATIONS:
        raise ConfigError(f"--add-scram: iterations {text!r}: expected {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    return int(text)


def _salted_password(mechanism: ScramMechanism, values: dict[str, str], salt: bytes, iterations: int) -> bytes:
    if "password" in values:
        return salted_password(mechanism, values["password"], salt, iterations)
    if "saltedpassword" not in values:
        raise _malformed("neither password nor saltedpassword")
    if "salt" not in values:
        raise _malformed("saltedpassword without salt")
    return _decoded(values, "saltedpassword")


def _decoded(values: dict[str, str], key: str) -> bytes:
    try:
        return b64decode(values[key] + "=" * (-len(values[key]) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _malformed(f"{key} is not base64") from error


def _malformed(what: str) -> ConfigError:
    return ConfigError(f"--add-scram: {what}: {_EXPECTED}")


# The watch over a running node's directory: once a second, whether its paths still name the open files.


_SECONDS = 1.0


async def watch_storage(check: Callable[[], None], lost: Callable[[MetadataError], None]) -> None:
    """Call `check` in a thread every second until it raises; then call `lost` with the error, once."""
    while True:
        await asyncio.sleep(_SECONDS)
        try:
            await asyncio.to_thread(check)
        except MetadataError as error:
            lost(error)
            return
        except OSError as error:
            lost(LogError(f"cannot check the node's directory: {error}"))
            return


# Formatting of a node's log directories, as `kafka-storage format` or by `aclog serve --format-if-empty`.
#
# Mirrors org.apache.kafka.metadata.storage.Formatter and kafka.tools.StorageTool.


STANDALONE = "--standalone"
INITIAL_CONTROLLERS = "--initial-controllers"
NO_INITIAL_CONTROLLERS = "--no-initial-controllers"
_LOCALHOST = "localhost"


@frozen(kw_only=True)
class FormatOptions:
    """The flags of `kafka-storage format`, except for the configuration and the cluster id."""

    standalone: bool = False
    initial_controllers: str | None = None
    no_initial_controllers: bool = False
    add_scram: Sequence[str] = ()
    features: Sequence[str] = ()
    """`name=level` each."""
    release_version: str | None = None
    ignore_formatted: bool = False

    @property
    def quorum_flags(self) -> list[str]:
        """The given flags about the initial voters, of which Kafka accepts one at most."""
        flags = {
            STANDALONE: self.standalone,
            INITIAL_CONTROLLERS: self.initial_controllers is not None,
            NO_INITIAL_CONTROLLERS: self.no_initial_controllers,
        }
        return [flag for flag, present in flags.items() if present]


_DEFAULT_OPTIONS = FormatOptions()


@frozen(kw_only=True)
class FormatResult:
    """The result of formatting; `lines` are kafka-storage's output. `meta` is that of the metadata log's directory.

    `needed` is the generation of Kafka that a node there must have: that of the configuration, or a later one.
    """

    meta: MetaProperties
    needed: Generation
    formatted: tuple[Path, ...]
    lines: tuple[str, ...]


def format_storage(
    config: NodeConfig,
    cluster_id: str,
    options: FormatOptions = _DEFAULT_OPTIONS,
    *,
    now_ms: int | None = None,
    token_bytes: Callable[[int], bytes] = randomness.token_bytes,
) -> FormatResult:
    """Format every log directory that is not formatted; nothing is written unless the request is valid as a whole.

    `now_ms`, in ms since 1970, is the timestamp of the new files; by default the current time.

    Raises:
        ConfigError: flags that contradict each other or the configuration, more than one voter, or a directory that is
            already formatted, belongs to another node or cluster, or contains a log without being formatted.
        LogError: the disk is full, or the directory cannot be written.

    """
    if not cluster_id.strip():
        raise ConfigError("--cluster-id: empty: expected an id")
    flags = options.quorum_flags
    _check_flags(config, flags)
    levels = feature_levels(
        options.release_version,
        options.features,
        dynamic_quorum=bool(flags) and not config.voter_ids,
        generation=config.generation,
    )
    plan = FormatPlan(
        cluster_id=cluster_id,
        release=levels.release,
        generation=levels.generation,
        records=(*levels.records, *_credentials(levels, options.add_scram, token_bytes)),
        voter=_voter(config, options, token_bytes),
        kraft_version=int(bool(flags) and not config.voter_ids),
        now_ms=current_time_ms() if now_ms is None else now_ms,
        token_bytes=token_bytes,
    )
    directories = directories_to_format(config, cluster_id, ignore_formatted=options.ignore_formatted)
    # Everything is checked from here on: only the disk can fail.
    lines = [format_directory(config, directory, plan) for directory in directories]
    meta = read_meta_properties(config.metadata_log_dir)
    if meta is None:
        raise ConfigError(f"{config.metadata_log_dir}: {META_PROPERTIES} disappeared during formatting")
    output = tuple(lines) or ("All of the log directories are already formatted.",)
    return FormatResult(meta=meta, needed=levels.generation, formatted=directories, lines=output)


def ensure_formatted(
    config: NodeConfig,
    *,
    cluster_id: str | None = None,
    now_ms: int | None = None,
    token_bytes: Callable[[int], bytes] = randomness.token_bytes,
) -> MetaProperties:
    """Return the metadata log's meta.properties; format the directories first if all of them are empty.

    A controller without controller.quorum.voters becomes the only voter of its quorum (--standalone), with a random
    cluster id unless `cluster_id` is given. A broker joins its controllers' cluster, so it needs `cluster_id` to be
    formatted.

    Raises:
        ConfigError: formatted for another node or cluster; not formatted, but not empty; or formatting needs flags.
        LogError: the disk is full, or the directory cannot be written.

    """
    meta = read_meta_properties(config.metadata_log_dir)
    if meta is not None:
        check_meta_properties(config.metadata_log_dir, meta, node_id=config.node_id, cluster_id=cluster_id)
        return meta
    for directory in log_directories(config):
        if foreign := foreign_file(directory):
            raise ConfigError(f"{directory}: not formatted, but contains {foreign}: expected an empty directory")
    if not config.is_controller and cluster_id is None:
        raise ConfigError(f"{config.metadata_log_dir}: not formatted: expected `aclog format` with the cluster's id")
    # Each would draw a cluster id of its own.
    if config.is_controller and cluster_id is None and len(config.voters) > 1:
        raise ConfigError(
            f"{config.metadata_log_dir}: not formatted, and {VOTERS} names {len(config.voters)} controllers: expected "
            "`aclog format` with the same cluster id for all of them"
        )
    # Several bootstrap servers mean several controllers: formatted alone, each would become a quorum of its own.
    standalone = config.is_controller and not config.voter_ids
    if standalone and len(config.controller_quorum) > 1:
        raise ConfigError(
            f"{config.metadata_log_dir}: not formatted, and {BOOTSTRAP} names {len(config.controller_quorum)} "
            "controllers: expected one, or `aclog format --standalone` for a quorum of this controller alone"
        )
    new_id = uuid_text(random_uuid(token_bytes)) if cluster_id is None else cluster_id
    options = FormatOptions(standalone=standalone)
    return format_storage(config, new_id, options, now_ms=now_ms, token_bytes=token_bytes).meta


def _check_flags(config: NodeConfig, flags: list[str]) -> None:
    if len(flags) > 1:
        raise ConfigError(f"{flags[0]} and {flags[1]} contradict each other: expected one of them")
    if config.voter_ids and flags and flags != [NO_INITIAL_CONTROLLERS]:
        raise ConfigError(
            f"{flags[0]} and {VOTERS} contradict each other: expected the flag and {BOOTSTRAP} in the configuration, "
            f"or {VOTERS} and no flag"
        )
    if flags == [STANDALONE] and not config.is_controller:
        raise ConfigError(f"{STANDALONE}: this node is only a broker (process.roles): expected a controller")
    if config.is_controller and not config.voter_ids and not flags:
        raise ConfigError(
            f"{VOTERS} is not set on this controller: "
            f"expected one of {STANDALONE}, {INITIAL_CONTROLLERS}, {NO_INITIAL_CONTROLLERS}"
        )


def _credentials(
    levels: FeatureLevels, add_scram: Sequence[str], token_bytes: Callable[[int], bytes]
) -> tuple[UserScramCredentialRecord, ...]:
    if add_scram and levels.metadata_version < SCRAM_SINCE:
        raise ConfigError(
            f"--add-scram: metadata.version {levels.release} does not support SCRAM: expected 3.5-IV2 or later"
        )
    return tuple(parse_scram_argument(argument, token_bytes) for argument in add_scram)


def _voter(config: NodeConfig, options: FormatOptions, token_bytes: Callable[[int], bytes]) -> InitialVoter | None:
    if options.standalone:
        directory_id = random_uuid(token_bytes)
        return InitialVoter(node_id=config.node_id, address=_controller_address(config), directory_id=directory_id)
    if options.initial_controllers is None:
        return None
    voter = parse_initial_voter(options.initial_controllers)
    if config.is_controller and voter.node_id != config.node_id:
        raise ConfigError(f"{INITIAL_CONTROLLERS}: voter {voter.node_id}: expected this controller, {config.node_id}")
    return voter


def _controller_address(config: NodeConfig) -> HostPort:
    """Return where the first controller listener is advertised; localhost if no host is configured, as in Kafka."""
    listener = next(listener for listener in config.listeners if listener.name == config.controller_listener_names[0])
    configured = listener_addresses(Properties(values=config.properties, where="the configuration"), ADVERTISED) or ()
    address = next((advertised.address for advertised in configured if advertised.name == listener.name), listener.bind)
    return address if address.host not in {"", ANY_ADDRESS} else evolve(address, host=_LOCALHOST)
