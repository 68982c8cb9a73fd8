"""How much an observer holds, and how long it waits."""

from attrs import frozen


@frozen(kw_only=True)
class ObserverOptions:
    """Sizes in bytes, times in seconds unless said."""

    fetch_bytes: int = 8 << 20
    """The most that one fetch asks for."""
    buffer_bytes: int = 32 << 20
    """What nobody has read yet: beyond it no more is fetched."""
    kept_bytes: int = 4 << 20
    """What is kept of what was read, for those who read it again."""
    pending_bytes: int = 16 << 20
    """What is held above the high-water mark: beyond it no more is fetched."""
    max_wait_ms: int = 500
    """How long a leader that has nothing new may wait before it answers."""
    answer_seconds: float = 4.0
    """To connect, and for an answer beyond what the leader may wait: a silent leader is given up."""
    read_seconds: float = 30.0
    """How long a read waits for bytes that are known to be committed."""
    first_pause: float = 0.05
    """Before another server is tried, more each time."""
    longest_pause: float = 0.5
    refused_pause: float = 5.0
    """After a failed login or a refusal, which somebody has to do something about."""
