"""What a command took from a context: told, and asked about, before the command runs."""

from pathlib import Path

from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.sources.contexts.choosing import ChosenContext


@frozen(kw_only=True)
class Unused:
    """A context that the command line names, and does not use."""

    name: str
    why: str

    def tell(self, *, force: bool) -> None:
        """Say so."""
        del force
        from aclog.terminal.notices import note

        note(f"context {self.name} is not used: {self.why}")


@frozen(kw_only=True)
class Taken:
    """What a command took from a context."""

    chosen: ChosenContext
    writes: bool
    """Whether the command changes the context's source."""
    deciding: tuple[str, ...]
    client_properties: Path | None

    def tell(self, *, force: bool) -> None:
        """Say what decides besides the rules; ask before something is written that this command line does not name.

        Raises:
            ConfigError: the answer is no, or there is nobody to ask.

        """
        from aclog.cli.flags.context_state import tell_what_decides
        from aclog.sources.contexts.client_secrets import warn_of_readers

        context = self.chosen.context
        if self.client_properties is not None:
            warn_of_readers(self.client_properties)
        tell_what_decides(context, self.deciding)
        if self.writes and self.chosen.is_ambient and not force:
            self._ask()

    def _ask(self) -> None:
        from aclog.terminal.confirmation import confirms_on_terminal

        context = self.chosen.context
        what = f"context {context.name} ({context.address}), {self.chosen.by}"
        answer = confirms_on_terminal(
            f"Write to {what}? (y/n)",
            f"writing to {what}: stdin is no terminal to ask: expected -c {context.name} or --force",
        )
        if not answer:
            raise ConfigError(f"nothing was written to context {context.name}")
