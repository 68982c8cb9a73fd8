"""How long a change of a log takes until it is marked on an open page: `python -m tests.support.web.lateness`."""

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

from aclog.authorizer.acl import StandardAcl
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log
from tests.support.builders.acls import acl
from tests.support.web.chromium import launch
from tests.support.web.console import ConsoleProcess
from tests.support.web.estate import added, write_estate

_SPREAD_MS, _GOLDEN = 1000, 0.618034
# Keeps when a marked row with each principal first came into the page, by the clock of the machine, in milliseconds.
_WATCH = """() => {
  window.markedAt = {};
  new MutationObserver(() => {
    const now = performance.timeOrigin + performance.now();
    for (const link of document.querySelectorAll("tr.changed a")) window.markedAt[link.textContent] ??= now;
  }).observe(document.querySelector("main"), { childList: true, subtree: true });
}"""


def milliseconds_to_the_mark(page: Page, log: Path, rules: Iterable[StandardAcl], spread_ms: float = 0) -> list[float]:
    """Append rules to a log, one by one, and return how long each took to be marked on an open page.

    The clock starts before the append and stops when the marked row is in the page, before it is painted. Each rule
    has a principal of its own, which a row of the page names as a link. The page is open, and follows the log. It asks
    every so often, and has just asked when a mark appears: unless the appends are spread, each waits the longest.
    """
    page.evaluate(_WATCH)
    times = []
    with open_log(log) as writer:
        for number, rule in enumerate(rules):
            page.wait_for_timeout(spread_ms * (number * _GOLDEN % 1))
            begun = time.time_ns() / 1e6
            writer.append([encode_record(added(rule))], timestamp=int(begun)).result(60)
            marked = page.wait_for_function("principal => window.markedAt[principal]", arg=rule.principal)
            times.append(marked.json_value() - begun)
    return times


def summary(milliseconds: Sequence[float]) -> str:
    """Return a line about these times."""
    ordered = sorted(milliseconds)
    middle, late = ordered[len(ordered) // 2], ordered[int(0.95 * (len(ordered) - 1))]
    return (
        f"{len(ordered)} changes, from the append to the marked row: "
        f"median {middle:.0f} ms, p95 {late:.0f} ms, most {ordered[-1]:.0f} ms"
    )


def measured(home: Path, changes: int) -> str:
    """Return the summary of so many changes of the estate's log, which is written to an empty folder."""
    log = write_estate(home / "log")
    with ConsoleProcess("--log", log) as console, sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page()
        page.goto(f"{console.url}/rules")
        rules = [acl("clicks", f"User:new-{each}") for each in range(changes)]
        times = milliseconds_to_the_mark(page, log, rules, _SPREAD_MS)
        browser.close()
    return summary(times)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        sys.stdout.write(f"{measured(Path(folder), 20)}\n")
