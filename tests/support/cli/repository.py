"""Git repositories for tests."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

_ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    # no hooks to copy, no maintenance after each commit, no fsync: they are half the cost of a small repository
    "GIT_TEMPLATE_DIR": "",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "maintenance.auto",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.fsync",
    "GIT_CONFIG_VALUE_1": "none",
}


@frozen
class Repository:
    """A git repository with a work tree, on the branch `main`."""

    path: Path

    @staticmethod
    def create(path: Path, *flags: str) -> "Repository":
        """Make an empty one."""
        path.mkdir()
        repository = Repository(path)
        repository.git("init", "-q", "-b", "main", *flags)
        return repository

    def git(self, *arguments: str, may_fail: bool = False) -> str:
        """Run git in it and return what it prints."""
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=self.path, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
        assert may_fail or done.returncode == 0, (command, done.stderr)
        return done.stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        """Write files into the work tree."""
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, files: Mapping[str, str]) -> str:
        """Commit these files, besides those that are there; return the id of the commit."""
        self.write(files)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "change")
        return self._head()

    def _head(self) -> str:
        """The commit that HEAD is, from the files that a commit has just written: a start of git costs more."""
        folder = self.path / ".git"
        name = folder.joinpath("HEAD").read_text().strip().removeprefix("ref: ") if folder.is_dir() else ""
        place = folder / name
        return place.read_text().strip() if name and place.is_file() else self.git("rev-parse", "HEAD")
