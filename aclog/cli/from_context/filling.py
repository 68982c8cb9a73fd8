"""The flags of one command line, to which a context adds what was not typed."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field
from typer import BadParameter

from aclog.sources.contexts.choosing import ChosenContext
from aclog.terminal.output_format import OutputFormat


@define
class Filling:
    """The flags of one command line, to which values are added that nobody typed."""

    _parameters: dict[str, Any]
    _values: dict[str, Any]
    deciding: list[str] = field(factory=list, init=False)
    """Settings that came from the context and change decisions, as people read them."""
    client_properties: Path | None = field(default=None, init=False)
    """The file of them that came from the context."""

    def is_given(self, options: tuple[str, ...]) -> bool:
        """Return whether the command line names one of these options, or another in their place."""
        return any(self._given(name) for name in options)

    def put(self, option: str, value: Any) -> bool:
        """Give an option a value, unless the command has no such option, or the command line gives it."""
        if value is None or option not in self._parameters or self._given(option):
            return False
        self._values[self._parameters[option].name] = value
        return True

    def put_settings(self, chosen: ChosenContext) -> None:
        """Give the other options what a context says of them."""
        context = chosen.context
        self.put("--acls-format", context.acls_format)
        self.put("--module", [f"{source}={path}" for source, path in context.modules.items()] or None)
        self.put("--topics", context.topics)
        if self.put("--command-config", _text(context.command_config)):
            self.client_properties = context.command_config
        self.put("--zk-tls-config-file", _text(context.zookeeper_config))
        self.put("--timezone", context.timezone)
        self._put_choice("--format", context.format)
        self._put_deciding(chosen)

    def _put_deciding(self, chosen: ChosenContext) -> None:
        context = chosen.context
        everyone, never = "--allow-everyone-if-no-acl-found", "--no-allow-everyone-if-no-acl-found"
        if context.allow_everyone is False and not self._given(everyone):
            self.put(never, True)  # aclog.toml may say something else
        put = {
            "super_users": self.put("--super-users", context.super_users),
            "allow_everyone": not self._given(never) and self.put(everyone, context.allow_everyone),
            "semantics": self.put("--semantics", context.semantics),
            "cidr": not self._given("--kafka-version") and self.put("--cidr", context.cidr),
        }
        self.deciding += [text for name, text in context.decides().items() if put[name]]

    def _put_choice(self, option: str, value: str | None) -> None:
        """Give `--format` a value if the command knows it, and a person reads: scripts get what they always have.

        Flags that say it in other words win, too.
        """
        if not sys.stdout.isatty() or any(map(self._given, ("--json", "--columns", "--follow"))):
            return
        descriptor = getattr(self._parameters.get(option), "type_descriptor", None)
        if descriptor is None or value is None or descriptor.annotation is not OutputFormat:
            return
        parse = descriptor.parameter_info.parser
        with suppress(BadParameter):
            self.put(option, value if parse is None else parse(value))

    def _given(self, option: str) -> bool:
        parameter = self._parameters.get(option)
        return parameter is not None and self._values.get(parameter.name) not in (None, [], ())


def _text(path: object) -> str | None:
    return None if path is None else str(path)
