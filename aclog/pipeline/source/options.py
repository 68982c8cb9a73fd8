"""The options of the data source, parsed and checked; unknown options are errors."""

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from aclog.metalog.errors import ConfigError

KAFKA = "kafka."
"""The prefix of options that are properties of the Kafka client."""

NAMES = (
    "path",
    "topic",
    "checkpoints",
    "partitionBytes",
    "damaged",
    "pushFilters",
    "startingOffset",
    "maxRecordsPerTrigger",
    "failOnDataLoss",
)
CHECKPOINTS = ("none", "newest", "all")
EARLIEST, LATEST = "earliest", "latest"
_DAMAGED = ("fail", "setAside")
_PARTITION_BYTES = 16 << 20


@frozen(kw_only=True)
class Options:
    """Options as documented by AclogDataSource; `kafka` has the client properties, which may include secrets."""

    path: Path | None = None
    topic: str | None = None
    kafka: Mapping[str, str] = field(factory=dict, repr=False)
    checkpoints: str | None = None
    partition_bytes: int = _PARTITION_BYTES
    set_aside: bool = False
    push_filters: bool = False
    starting_offset: int | str = EARLIEST
    max_records_per_trigger: int | None = None
    fail_on_data_loss: bool = True


def read_options(given: Mapping[str, str]) -> Options:
    """Parse the options given to Spark, which may have lower-cased their names.

    Raises:
        ConfigError: an unknown option, an invalid value, options that exclude each other, or nothing to read.

    """
    known = {name.lower(): name for name in NAMES}
    found, kafka = {}, {}
    for name, value in given.items():
        if name.lower().startswith(KAFKA):
            kafka[name[len(KAFKA) :]] = value
        elif name.lower() in known:
            found[known[name.lower()]] = value
        else:
            raise ConfigError(f"option {name!r}: expected one of {', '.join(NAMES)}, or {KAFKA}*")
    options = Options(
        path=_path(found.get("path")),
        topic=found.get("topic"),
        kafka=kafka,
        checkpoints=_choice("checkpoints", found.get("checkpoints"), CHECKPOINTS),
        partition_bytes=_number("partitionBytes", found.get("partitionBytes")) or _PARTITION_BYTES,
        set_aside=_choice("damaged", found.get("damaged"), _DAMAGED) == "setAside",
        starting_offset=_starting_offset(found.get("startingOffset", EARLIEST)),
        max_records_per_trigger=_number("maxRecordsPerTrigger", found.get("maxRecordsPerTrigger")),
        push_filters=_boolean("pushFilters", found.get("pushFilters", "false")),
        fail_on_data_loss=_boolean("failOnDataLoss", found.get("failOnDataLoss", "true")),
    )
    _check_place(options)
    return options


def _check_place(options: Options) -> None:
    if (options.path is None) == (options.topic is None):
        raise ConfigError("expected a path (load(DIR), or option path) or option topic, not both")
    if options.topic is None and options.kafka:
        raise ConfigError(f"option {KAFKA}{min(options.kafka)}: expected only with option topic")
    if options.topic is not None and not options.kafka.get("bootstrap.servers"):
        raise ConfigError("option kafka.bootstrap.servers: required with option topic")
    if options.topic is not None and options.checkpoints:
        raise ConfigError("option checkpoints: not available with option topic: a topic has no checkpoints")
    if options.topic is not None and options.set_aside:
        raise ConfigError("option damaged: setAside is not available with option topic")


def _path(text: str | None) -> Path | None:
    if text is None:
        return None
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if "://" in text:
        raise ConfigError(f"path {text!r}: expected a local or shared file system path, the same on every worker")
    return Path(text).absolute()


def _choice(name: str, value: str | None, choices: tuple[str, ...]) -> str | None:
    if value is None:
        return None
    for choice in choices:
        if value.lower() == choice.lower():
            return choice
    raise ConfigError(f"option {name}: {value!r}: expected one of {', '.join(choices)}")


def _boolean(name: str, value: str) -> bool:
    return _choice(name, value, ("true", "false")) == "true"


def _number(name: str, value: str | None) -> int | None:
    if value is None:
        return None
    if not (value.isascii() and value.isdigit()) or not 0 < int(value) < 1 << 63:
        raise ConfigError(f"option {name}: {value!r}: expected a whole number above 0")
    return int(value)


def _starting_offset(value: str) -> int | str:
    if value.lower() in {EARLIEST, LATEST}:
        return value.lower()
    if not (value.isascii() and value.isdigit()) or int(value) >= 1 << 63:
        raise ConfigError(f"option startingOffset: {value!r}: expected {EARLIEST}, {LATEST} or an offset")
    return int(value)
