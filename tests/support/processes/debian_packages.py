"""Debian's packages, fetched and unpacked into a directory: nothing is installed, and nobody needs to be root."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


def unpack(home: Path, *words: str) -> bool:
    """Unpack under `home` what `apt-get WORDS` downloads; return whether it could be had.

    `words` are such as `download zsh`, which fetches what is named, or `--download-only install chromium`, which
    fetches what the machine lacks of it and of all that it needs.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return False
    packages, state = home / "packages", home / "apt"
    for directory in (packages / "partial", state / "lists" / "partial"):
        directory.mkdir(parents=True, exist_ok=True)
    lists = f"-oDir::State::lists={state / 'lists'}"
    if not _download(packages, state, words):
        # The machine has no lists of packages: some of our own.
        subprocess.run(["apt-get", lists, f"-oDir::Cache={state}", "-qq", "update"], check=False)
        if not _download(packages, state, (lists, *words)):
            return False
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(home)], check=True)
    return True


def libraries(home: Path) -> str:
    """Return where the unpacked packages have their libraries, as LD_LIBRARY_PATH takes it."""
    roots = [*home.glob("lib/*-linux-gnu"), *home.glob("usr/lib/*-linux-gnu")]
    inside = [root / name for root in roots for name in ("nss", "pulseaudio") if (root / name).is_dir()]
    return ":".join(map(str, [*roots, *inside]))


def _download(packages: Path, state: Path, words: Sequence[str]) -> bool:
    options = (f"-oDir::Cache={state}", f"-oDir::Cache::archives={packages}", "-oDebug::NoLocking=1")
    command = ["apt-get", *options, "-qq", "--yes", "--no-install-recommends", *words]
    return subprocess.run(command, cwd=packages, capture_output=True, check=False).returncode == 0
