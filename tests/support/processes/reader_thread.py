"""A reader that asks without pause while a test changes what it sees."""

import threading


class ReaderThread(threading.Thread):
    """Asks without pause until told to stop; keeps the first thing that went wrong."""

    def __init__(self, ask):
        super().__init__()
        self.ask, self.stop, self.failure, self.count = ask, threading.Event(), None, 0

    def run(self):
        try:
            while not self.stop.is_set():
                self.ask()
                self.count += 1
        except BaseException as e:  # noqa: BLE001
            self.failure = e

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.join()
        assert self.failure is None, self.failure
        assert self.count > 0
