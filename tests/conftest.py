"""What holds for every test: no contexts of the user's; children heed an interrupt."""

import gc
import os
import signal

pytest_plugins = [
    "tests.support.runs.tiers",
    "tests.support.runs.profiles",
    "tests.support.runs.costs",
    "tests.support.runs.shared_servers",
    "tests.support.runs.schedule",
    "tests.support.runs.kafka_logs",
]

# The contexts of whoever runs the tests are none of theirs, here and in children.
os.environ["ACLOG_CONFIG"] = "/nonexistent/aclog/config.toml"
os.environ.pop("ACLOG_CONTEXT", None)

# Thousands of tests and cached fixtures stay until the end: looking for garbage among them so often takes an eighth of
# the time. What was left open is found all the same, at the latest at the end, where pytest looks for it.
gc.set_threshold(20_000, 20, 20)


def pytest_collection_finish() -> None:
    """Exclude what collecting the tests made, modules and tests, from every garbage collection."""
    gc.freeze()


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A test run in the background of a script is born ignoring SIGINT, and its children would be too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
