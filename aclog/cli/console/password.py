"""Makes a line of the password file."""

import sys
from getpass import getpass

from aclog.console.login.password_file import password_line
from aclog.metalog.errors import ConfigError
from aclog.terminal.output import say


def print_password_line(principal: str) -> None:
    """Ask for a password, twice on a terminal, and print the line of `--login`'s file.

    Raises:
        ConfigError: the principal is none, or the password cannot be one.

    """
    if sys.stdin.isatty():
        password = getpass(f"password of {principal}: ")
        if getpass("the same again: ") != password:
            raise ConfigError("the passwords differ: nothing was printed")
    else:
        password = sys.stdin.readline().rstrip("\n")
    say(password_line(principal, password))
