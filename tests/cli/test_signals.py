"""A signal ends a loop that waits between two rounds, whenever it comes."""

import subprocess
import sys

import pytest

LOOP = """
import os, signal, sys, threading, time
from aclog.cli.signals import Stop, on_signals
for number in range(int(sys.argv[1])):
    stop = Stop()
    with on_signals(stop.set):
        sender = threading.Thread(target=lambda: (time.sleep(number % 50 / 1e5), os.kill(os.getpid(), signal.SIGTERM)))
        sender.start()
        while not stop.wait(0):
            pass
        sender.join()
        assert stop.wait(60), "it stays set"
print("ended")
"""


@pytest.mark.process
def test_whatever_the_handler_interrupts_the_loop_ends():
    ended = subprocess.run(
        [sys.executable, "-c", LOOP, "300"], capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "ended\n"), ended.stderr


@pytest.mark.process
def test_without_a_signal_it_waits_so_long():
    code = "from aclog.cli.signals import Stop; s = Stop(); print(s.wait(0.01)); s.set(); print(s.wait(60))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert said.stdout.split() == ["False", "True"]
