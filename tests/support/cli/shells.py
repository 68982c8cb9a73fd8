"""bash, zsh, fish and less, to type into: those of the machine, or Debian's packages unpacked under build/.

`python -m tests.support.cli.shells` fetches what is missing, once; nothing is installed.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
from attrs import define, frozen

from tests.support.processes.debian_packages import libraries, unpack

ROOT = Path(__file__).parents[3]
HOME = ROOT / "build" / "shells"
_PACKAGES = ("zsh", "zsh-common", "fish", "fish-common", "libpcre2-32-0", "less")
_PLACES = {"zsh": "bin/zsh", "fish": "usr/bin/fish", "less": "usr/bin/less"}
"""Where the packages have the programs that a machine may lack."""
_LONGEST = 60


def make_ready() -> None:
    """Fetch zsh, fish and less, unless they are here. Exits with a word on what to install if that cannot be done."""
    if all(map(shutil.which, _PLACES)):
        return
    if not unpack(HOME, "download", *_PACKAGES):
        sys.exit("tests type into zsh, fish and less, and apt-get cannot fetch them: install all three")
    if not (HOME / "usr" / "etc").is_symlink():
        (HOME / "usr" / "etc").symlink_to("../etc")  # fish looks for its files around itself, if all of them are there


def program(name: str) -> str:
    """Return the path of zsh, fish, less or bash. Raises FileNotFoundError: it is neither installed nor fetched."""
    path = shutil.which(name) or str(HOME / _PLACES[name])
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no {name}: `make test` fetches one")
    return path


@frozen(kw_only=True)
class Shell:
    """A shell, and how one is started that reads nothing of the user's."""

    name: str

    def command(self, home: Path) -> list[str]:
        """Return the command line of an interactive one, whose settings are in `home`."""
        path = program(self.name)
        if self.name == "bash":
            return [path, "--noprofile", "--rcfile", str(home / "settings"), "-i"]
        return [path, "-i"] if self.name == "zsh" else [path, "--private", "-i"]

    def settings(self, script: str) -> dict[str, str]:
        """Return the files of settings that load a completion script, and an `aclog` that tells what it was given."""
        if self.name == "fish":
            function = "function aclog; printf '<%s>' $argv; echo END; end"
            return {".config/fish/config.fish": f"{function}\nfunction fish_prompt; echo 'READY '; end\n{script}\n"}
        function = (
            'aclog() { if [ -n "$_ACLOG_COMPLETE" ]; then command aclog "$@"; '
            "else printf '<%s>' \"$@\"; echo END; fi; }"
        )
        if self.name == "bash":
            return {"settings": f"PS1='READY '\nbind 'set enable-bracketed-paste off'\n{function}\n{script}\n"}
        begin = "PS1='READY '\nunsetopt zle_bracketed_paste prompt_sp\nautoload -Uz compinit && compinit -u -D\n"
        unpacked = f"module_path=({HOME}/usr/lib/*/zsh/*(/N))\nfpath=({HOME}/usr/share/zsh/functions/**/*(/N) $fpath)\n"
        own = {} if shutil.which("zsh") else {".zshenv": unpacked}
        return {**own, ".zshrc": f"{begin}{function}\n{script}\n"}


@define
class Terminal:
    """A shell in a terminal."""

    process: "pexpect.spawn[str]"

    def arguments(self, typed: str) -> list[str]:
        """Type a line with its Tabs, then Enter; return the arguments that `aclog` got."""
        self.process.send(typed)
        self.process.expect_exact("", timeout=_LONGEST)
        self.process.send("\r")
        self.process.expect(r"(<[^\r\n]*>)END", timeout=_LONGEST)
        words = self.process.match.group(1)
        self.process.expect_exact("READY ", timeout=_LONGEST)
        return words[1:-1].split("><")


@contextmanager
def terminal(name: str, home: Path, script: str, *, directory: Path) -> Iterator[Terminal]:
    """Start a shell that completes aclog with this script."""
    shell = Shell(name=name)
    for path, text in shell.settings(script).items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text, encoding="utf-8")
    environment = {
        "HOME": str(home),
        "ZDOTDIR": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TERM": "xterm",
        "LANG": "C.UTF-8",
        "LD_LIBRARY_PATH": libraries(HOME) if name == "fish" else "",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    command, *arguments = shell.command(home)
    process = pexpect.spawn(command, arguments, cwd=str(directory), env=environment, encoding="utf-8",
                            dimensions=(50, 200), timeout=_LONGEST)  # fmt: skip
    try:
        process.expect_exact("READY ")
        yield Terminal(process)
    finally:
        process.close(force=True)


if __name__ == "__main__":
    make_ready()
