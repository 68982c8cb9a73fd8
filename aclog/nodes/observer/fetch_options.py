"""Buffer sizes and timeouts of an observer."""

from attrs import frozen

from aclog.snapshots.features import NEWEST_METADATA_VERSION


@frozen(kw_only=True)
class ObserverOptions:
    """Sizes are in bytes, times in seconds unless the name says otherwise."""

    fetch_bytes: int = 8 << 20
    """The maximum size of one Fetch response."""
    buffer_bytes: int = 32 << 20
    """The maximum size of batches not read yet; beyond it, fetching pauses."""
    kept_bytes: int = 4 << 20
    """How much is kept after it was read, for other readers."""
    pending_bytes: int = 16 << 20
    """The maximum size of batches above the high-water mark; beyond it, fetching pauses."""
    max_wait_ms: int = 500
    """How long a leader without new records may delay its response (replica.fetch.wait.max.ms)."""
    response_seconds: float = 4.0
    """How long to wait for a connection, and for a response beyond `max_wait_ms`, before the server is given up."""
    read_seconds: float = 30.0
    """How long a read waits for batches that are known to be committed."""
    retry_backoff: float = 0.05
    """Before another server is tried; doubles with each retry."""
    max_retry_backoff: float = 0.5
    newest_level: int = NEWEST_METADATA_VERSION
    """The highest level of metadata.version that a replay accepts: a server that supports a higher one is warned of."""
    wait_for_servers: bool = True
    """Whether servers none of which can be reached at first are a passing trouble; if not, waiting readers get the
    error at once."""
    refused_backoff: float = 5.0
    """After a failed login or a refusal, which only an operator can resolve."""
    older_leader_seconds: float = 30.0
    """How long a server may lead in an older epoch than the newest known one: longer than any value of one and a half
    times controller.quorum.fetch.timeout.ms (3 s by default), after which a leader that is cut off resigns.
    """
