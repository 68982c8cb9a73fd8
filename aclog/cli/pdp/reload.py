"""What a decision point reads again at SIGHUP."""

import ssl
from collections.abc import Iterable

from attrs import frozen

from aclog.cli.flags.source import SourceFlags
from aclog.cli.pdp.flags import PdpFlags
from aclog.cli.serving import Endpoint, read_certificate_again
from aclog.console.line_file import LineFile
from aclog.console.pdp.app import DecisionPoint
from aclog.console.pdp.mapping_file import read_mapping
from aclog.console.pdp.tokens import Tokens, read_tokens
from aclog.metalog.errors import MetadataError
from aclog.snapshots.state_source import StateSource
from aclog.terminal.notices import note, warn


@frozen(kw_only=True, eq=False)
class Reload:
    """Reads what its flags name again, and opens files again; what cannot be used is told, and all stays as it was."""

    point: DecisionPoint
    endpoint: Endpoint
    files: Iterable[LineFile]
    """What is appended to."""
    source: SourceFlags
    flags: PdpFlags

    def __call__(self, tls: ssl.SSLContext | None) -> None:
        """Read all; `tls` is that of new connections."""
        try:
            mapping, tokens, rules = read_mapping(self.flags.mapping), tokens_of(self.flags), self._rules()
            for file in self.files:
                file.reopen()
            read_certificate_again(tls, self.endpoint)
        except (MetadataError, OSError) as error:
            warn(f"not read again: {error}")
            return
        if rules is not None:
            self.point.deciders.live.replace(rules)
        self.point.deciders.replace_mapping(mapping)
        self.point.tokens = tokens
        note("rules in files, mapping, tokens and certificate were read again, and files opened again")

    def _rules(self) -> StateSource | None:
        """Return the rules in files, read whole; None if there are none. Raises MetadataError: they cannot be read."""
        if self.source.acls is None:
            return None
        found = self.source.choose(note).source
        found.image()
        return found


def tokens_of(flags: PdpFlags) -> Tokens | None:
    """Return the tokens of those who may ask; None if nobody needs one. Raises ConfigError, OSError."""
    return None if flags.tokens is None else read_tokens(flags.tokens)
