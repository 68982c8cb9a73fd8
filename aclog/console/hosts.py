"""Which names of this server a request may use: what stops DNS rebinding."""

from attrs import frozen

_OF_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "[::1]"})


@frozen
class Hosts:
    """The names in Host headers that are answered; None: all.

    A page of a stranger's host, whose address turns into this machine's, is of the same origin as what it then reads.
    Its requests still name the stranger's host. Where a login is asked for, they also lack its cookie.
    """

    names: frozenset[str] | None

    @classmethod
    def of(cls, *, listen: str, is_local: bool, base_url: str | None) -> "Hosts":
        """Return those of a server: all, unless being on its machine is all that it asks for (`is_local`).

        Then this machine's, its own and the base URL's.
        """
        if not is_local:
            return cls(None)
        own = {f"[{listen}]" if ":" in listen else listen}
        if base_url is not None:
            own.add(host_of(base_url.partition("://")[2].partition("/")[0]))
        return cls(_OF_THIS_MACHINE | {name.lower() for name in own if name})

    def answer(self, given: list[str]) -> bool:
        """Return whether a request with these Host headers is answered."""
        return self.names is None or (len(given) == 1 and host_of(given[0]) in self.names)


def host_of(authority: str) -> str:
    """Return the host of `host:port`, in lower case; an IPv6 address keeps its brackets. What is neither is whole."""
    host, colon, port = authority.lower().rpartition(":")
    return host if colon and port.isdigit() else authority.lower()
