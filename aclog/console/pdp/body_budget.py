"""How many bytes of bodies are held at once, whoever sends them."""

from attrs import define, field

from aclog.console.pdp.errors import NotReadyError


@define(eq=False)
class BodyBudget:
    """What is left for bodies; owned by the event loop."""

    left: int = field(default=64 << 20)
    """In bytes."""

    def take(self, size: int) -> None:
        """Take some bytes. Raises NotReadyError: so much is not left."""
        if size > self.left:
            raise NotReadyError("too much is being asked at once: ask again later")
        self.left -= size

    def give_back(self, size: int) -> None:
        """Give bytes back."""
        self.left += size
