"""Memory that a bulk replay has freed, given back to the operating system."""

import ctypes

import pyarrow as pa


def give_back_freed_memory() -> None:
    """Let the allocators return what they hold but nobody uses: after a large replay that is most of what it took.

    It is a hint: where the C library has no malloc_trim, only Arrow's pool is asked.
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
