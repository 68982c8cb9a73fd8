"""What holds for every test: no deadlines, since a busy machine is no failure; and children heed an interrupt."""

import gc
import signal

from hypothesis import settings

pytest_plugins = [
    "tests.support.runs.tiers",
    "tests.support.runs.schedule",
    "tests.support.runs.shared_servers",
    "tests.support.runs.kafka_logs",
]

settings.register_profile("aclog", deadline=None, print_blob=True)
settings.load_profile("aclog")

# Thousands of tests and cached fixtures stay until the end: looking for garbage among them so often takes an eighth of
# the time. What was left open is found all the same, at the latest at the end, where pytest looks for it.
gc.set_threshold(20_000, 20, 20)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A test run in the background of a script is born ignoring SIGINT, and its children would be too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
