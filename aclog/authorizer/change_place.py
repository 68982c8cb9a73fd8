"""Where the ACLs of a state can be changed, for the commands that an explanation advises."""

from attrs import frozen

from aclog.authorizer.shell_word import shell_word

ANY_CLUSTER = "kafka-acls.sh --bootstrap-server HOST:PORT"
"""The command of a cluster whose address is not known."""


@frozen(kw_only=True)
class ChangePlace:
    """A log's directory, or the servers of a cluster; with none of them, a cluster whose address is not known."""

    log: str | None = None
    """A directory that `aclog acls` may change."""
    bootstrap_server: str | None = None
    bootstrap_controller: str | None = None
    """As for the flags: HOST:PORT, or several with commas."""
    command_config: str | None = None
    """The file of client properties with which the cluster was read."""

    def command(self, what: str) -> str | None:
        """Return the beginning of a command line that adds or removes (`what`) ACLs; None if no shell can name it."""
        if self.log is not None:
            directory = shell_word(self.log)
            return None if directory is None else f"aclog acls {what} --log {directory}"
        config = "" if self.command_config is None else shell_word(self.command_config)
        if config is None:
            return None
        login = f" --command-config {config}" if config else ""
        return f"{self._cluster()}{login} --{what}"

    def _cluster(self) -> str:
        # Addresses were checked when they were parsed: they need no quotes.
        if self.bootstrap_server is not None:
            return f"kafka-acls.sh --bootstrap-server {self.bootstrap_server}"
        if self.bootstrap_controller is not None:
            return f"kafka-acls.sh --bootstrap-controller {self.bootstrap_controller}"
        return ANY_CLUSTER
