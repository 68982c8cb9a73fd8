"""Who looks at the console in a browser: with a mouse or by the keyboard alone, and every step is counted."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from attrs import define, field
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request, expect

from aclog.console.login.forms import CSP_REPORT
from tests.support.web.chromium import PATIENCE_MS

_TABS = 600
"""A page with more stops than this is not one for the keyboard."""
# A question that cannot be asked, which Chromium calls an error; and one that a newer one overtook.
_ALWAYS_EXPECTED = ("htmx:sendAbort", "htmx:afterRequest", "status of 400", "status of 404", "status of 503")
_TELL_VIOLATIONS = """document.addEventListener("securitypolicyviolation",
  (event) => console.error("policy violated: " + event.violatedDirective + " by " + event.blockedURI));"""


class Hands(StrEnum):
    """What somebody uses a page with."""

    MOUSE = "mouse"
    KEYS = "keys"
    PLAIN = "plain"
    """A mouse, and no script."""


@define(eq=False)
class Visitor:
    """One tab."""

    page: Page
    base: str
    hands: Hands = Hands.MOUSE
    home: Path = Path()
    """Where the files are that are opened."""
    steps: int = field(default=0, init=False)
    """Links that were followed, and forms that were sent, since `start`."""

    def start(self, path: str = "/") -> None:
        """Go to a page by its address."""
        self.page.goto(self.base + path)
        self.steps = 0

    def follow(self, name: str, *, beside: str = "") -> None:
        """Follow the first link with this text, perhaps in the row of another one."""
        around = self.page.get_by_role("row").filter(has=self._link(self.page, beside)) if beside else self.page
        self._act(self._link(around, name).first)
        self.steps += 1

    def submit(self, name: str) -> None:
        """Press the button of a form."""
        self._act(self.page.get_by_role("button", name=name, exact=True).first)
        self.steps += 1

    def fill(self, label: str, text: str) -> None:
        """Enter something into the first field with this label, or choose it."""
        control = self.page.locator("main").get_by_label(label, exact=True).first
        self._unfold(control)
        is_choice = control.evaluate("each => each.tagName") == "SELECT"
        if self.hands is Hands.KEYS:
            self._tab_to(control)
            if not is_choice:
                self.page.keyboard.press("ControlOrMeta+A")
            self.page.keyboard.type(text)
        elif is_choice:
            control.select_option(text)
        else:
            control.fill(text)

    def search(self, text: str) -> None:
        """Type something into the search of the header, and press Enter."""
        control = self.page.get_by_label("Find", exact=True).first
        if self.hands is Hands.KEYS:
            self.page.keyboard.press("/")
            expect(control).to_be_focused()
            self.page.keyboard.type(text)
        else:
            control.fill(text)
        control.press("Enter")
        self.steps += 1

    def moment(self, text: str) -> None:
        """Choose a moment in the header; an empty text is now."""
        control = self.page.locator("#as-of")
        self._unfold(control)
        if self.hands is Hands.KEYS:
            self._tab_to(control)
        control.fill(text)
        control.press("Enter")
        self.steps += 1

    def _unfold(self, control: Locator) -> None:
        """Open what a field is folded in."""
        folds = control.locator("xpath=ancestor::details[not(@open)]")
        if folds.count():
            self._act(folds.first.locator("summary"))

    def open_file(self, path: Path) -> None:
        """Choose a file, which a window of the system would ask for."""
        self.page.get_by_label("Open a file").set_input_files(path)
        self.steps += 1

    def sees(self, *texts: str) -> None:
        """Wait until the answer has all these texts."""
        for text in texts:
            expect(self.answer).to_contain_text(text)

    def misses(self, part: str, *texts: str) -> None:
        """Assert that a part of the answer has none of these texts; to be called after `sees`."""
        for text in texts:
            expect(self.part(part)).not_to_contain_text(text)

    def part(self, key: str) -> Locator:
        """The part of the answer with this key."""
        return self.page.locator(f'#answer [aria-labelledby="h-{key}"]').first

    @property
    def answer(self) -> Locator:
        """The part of a page that answers."""
        return self.page.locator("#answer")

    @staticmethod
    def _link(around: Page | Locator, name: str) -> Locator:
        return around.get_by_role("link", name=name, exact=True)

    def _act(self, target: Locator) -> None:
        if self.hands is Hands.KEYS:
            self._tab_to(target)
            self.page.keyboard.press("Enter")
        else:
            target.click()

    def _tab_to(self, target: Locator) -> None:
        expect(target).to_be_visible()
        for _ in range(_TABS):
            if target.evaluate("each => each === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"the keyboard does not reach {target}")


@contextmanager
def watched(
    browser: Browser, base: str, *, expected: Sequence[str] = (), **options: object
) -> Iterator[BrowserContext]:
    """A context in which nothing may go wrong: no error, no dialog, no other host, and nothing against the policy.

    `expected` are parts of errors that a test brings about; `options` are those of Browser.new_context.
    """
    troubles: list[str] = []
    context = browser.new_context(**options)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(_TELL_VIOLATIONS)

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(
            each in message.text for each in (*_ALWAYS_EXPECTED, *expected)
        ):
            troubles.append(message.text)

    def on_request(request: Request) -> None:
        address = urlsplit(request.url)
        if address.netloc != urlsplit(base).netloc or address.path == CSP_REPORT:
            troubles.append(f"asked {request.url} {request.post_data}")

    context.on("console", on_console)
    context.on("weberror", lambda error: troubles.append(str(error.error)))
    context.on("dialog", lambda dialog: troubles.append(dialog.message))
    context.on("request", on_request)
    try:
        yield context
        if troubles:
            raise AssertionError(f"went wrong: {troubles}")
    finally:
        context.close()
