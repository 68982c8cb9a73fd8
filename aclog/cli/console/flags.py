"""The flags of `aclog console`."""

from typing import Annotated

import typer
from attrs import frozen


@frozen(kw_only=True)
class ConsoleFlags:
    """Where it listens."""

    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where to listen.", show_default=True)
    ] = "127.0.0.1:8080"
