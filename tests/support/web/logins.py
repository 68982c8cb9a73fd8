"""Who may log in at a console, and logging in by the keyboard alone."""

from pathlib import Path

from argon2 import PasswordHasher
from playwright.sync_api import Page, expect

PASSWORD = "a long enough password"
_QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def password_line(principal: str, password: str) -> str:
    """Return the line of a principal in a file of --login, hashed at a thousandth of the usual costs."""
    return f"{principal}:{_QUICK.hash(password.encode())}"


def write_logins(path: Path, *names: str) -> Path:
    """Write the file of --login, in which everybody has the same password, and return it."""
    path.write_text("".join(f"{password_line(f'User:{name}', PASSWORD)}\n" for name in names), encoding="utf-8")
    path.chmod(0o600)
    return path


def log_in(page: Page, url: str, name: str) -> None:
    """Ask for a page, log in where it leads to, and come to what was asked for."""
    page.goto(url)
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.type(name)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.locator("#answer")).to_be_visible()
    assert page.url == url
