"""Formatting of a node's log directories, as `kafka-storage format` or by `aclog serve --format-if-empty`.

Mirrors org.apache.kafka.metadata.storage.Formatter and kafka.tools.StorageTool.
"""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import evolve, frozen

from aclog.authorizer.generation import Generation
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import UserScramCredentialRecord
from aclog.metalog.uuids import random_uuid, uuid_text
from aclog.nodes.config.addresses import listener_addresses
from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.listener_plan import ADVERTISED, ANY_ADDRESS
from aclog.nodes.config.node_config import HostPort, NodeConfig
from aclog.nodes.config.quorum_config import BOOTSTRAP, VOTERS
from aclog.nodes.storage.feature_levels import SCRAM_SINCE, FeatureLevels, feature_levels
from aclog.nodes.storage.format_files import FormatPlan, format_directory
from aclog.nodes.storage.initial_voter import InitialVoter, parse_initial_voter
from aclog.nodes.storage.log_directories import (
    check_meta_properties,
    directories_to_format,
    foreign_file,
    log_directories,
)
from aclog.nodes.storage.meta_properties import META_PROPERTIES, MetaProperties, read_meta_properties
from aclog.nodes.storage.scram_arguments import parse_scram_argument

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
        return [flag for flag, given in flags.items() if given]


_DEFAULT_OPTIONS = FormatOptions()


@frozen(kw_only=True)
class FormatResult:
    """What was formatted; `lines` are kafka-storage's output. `meta` is that of the metadata log's directory.

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
    token_bytes: Callable[[int], bytes] = secrets.token_bytes,
) -> FormatResult:
    """Format every log directory that is not formatted; nothing is written unless the request is valid as a whole.

    `now_ms`, in ms since 1970, is the timestamp of what is written; by default the current time.

    Raises:
        ConfigError: flags that contradict each other or the configuration, more than one voter, or a directory that is
            already formatted, belongs to another node or cluster, or contains a log without being formatted.
        LogError: the disk is full, or the directory cannot be written.

    """
    if not cluster_id.strip():
        raise ConfigError("--cluster-id: empty: expected an id")
    given = options.quorum_flags
    _check_flags(config, given)
    levels = feature_levels(
        options.release_version,
        options.features,
        dynamic_quorum=bool(given) and not config.voter_ids,
        generation=config.generation,
    )
    plan = FormatPlan(
        cluster_id=cluster_id,
        release=levels.release,
        generation=levels.generation,
        records=(*levels.records, *_credentials(levels, options.add_scram, token_bytes)),
        voter=_voter(config, options, token_bytes),
        kraft_version=int(bool(given) and not config.voter_ids),
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
    token_bytes: Callable[[int], bytes] = secrets.token_bytes,
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
        if found := foreign_file(directory):
            raise ConfigError(f"{directory}: not formatted, but contains {found}: expected an empty directory")
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


def _check_flags(config: NodeConfig, given: list[str]) -> None:
    if len(given) > 1:
        raise ConfigError(f"{given[0]} and {given[1]} contradict each other: expected one of them")
    if config.voter_ids and given and given != [NO_INITIAL_CONTROLLERS]:
        raise ConfigError(
            f"{given[0]} and {VOTERS} contradict each other: expected the flag and {BOOTSTRAP} in the configuration, "
            f"or {VOTERS} and no flag"
        )
    if given == [STANDALONE] and not config.is_controller:
        raise ConfigError(f"{STANDALONE}: this node is only a broker (process.roles): expected a controller")
    if config.is_controller and not config.voter_ids and not given:
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
