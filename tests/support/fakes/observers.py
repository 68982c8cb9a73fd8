"""Observers of a fake quorum: options with short timeouts, and a way to wait for them."""

from aclog.client.fetching import ObserverOptions

QUICK = ObserverOptions(
    retry_backoff=0.005, max_retry_backoff=0.02, refused_backoff=0.02, response_seconds=0.5, max_wait_ms=100
)
