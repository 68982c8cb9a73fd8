"""Logins that do not succeed."""


class LoginError(Exception):
    """Why nobody is logged in: for the viewer; `detail` for who runs the console. Neither holds a secret."""

    def __init__(self, text: str, detail: str | None = None, *, status: int = 403) -> None:
        super().__init__(text)
        self.detail = detail
        self.status = status
