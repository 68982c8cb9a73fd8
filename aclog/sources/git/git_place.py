"""What `--ref` names: a commit, or the index, and a path in it."""

from attrs import frozen

from aclog.metalog.errors import ConfigError

_EXPECTED = "expected GITREF:PATH, such as main:kafka or HEAD~1:kafka/acls.yaml (:PATH is the index)"


@frozen(kw_only=True)
class GitPlace:
    """A path in a commit, or in the index; `parse_git_place` makes them."""

    ref: str
    """A branch, tag or commit as git names it; empty for the index."""
    path: str
    """From the top of the repository; with `./` or `../` in front, from the working directory, as git has it."""

    @property
    def name(self) -> str:
        """As it was given."""
        return f"{self.ref}:{self.path}"


def parse_git_place(text: str) -> GitPlace:
    """Return the place that a flag names.

    Raises:
        ConfigError: no colon, a range of commits, or a reference that git would take for an option.

    """
    end = _colon(text)
    if end is None:
        raise ConfigError(f"{text!r}: no path in the repository: {_EXPECTED}")
    ref, path = text[:end], text[end + 1 :]
    if "\0" in text or "\n" in text:
        raise ConfigError(f"{text!r}: {_EXPECTED}")
    if ref.startswith(("-", "^")):
        raise ConfigError(f"{text!r}: {ref!r} is no branch, tag or commit: {_EXPECTED}")
    if ".." in _outside_braces(ref) or ref.endswith(("^!", "^@")):
        raise ConfigError(f"{text!r}: {ref!r} is a range of commits: {_EXPECTED}")
    if path.startswith("/"):
        raise ConfigError(f"{text!r}: an absolute path: expected one from the top of the repository")
    return GitPlace(ref=ref, path=path)


def _colon(text: str) -> int | None:
    """Return where the path begins; a time in braces (`main@{2026-11-20 10:00}`) may hold colons."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == ":" and depth <= 0:
            return at
    return None


def _outside_braces(ref: str) -> str:
    return ref.split("{", 1)[0]
