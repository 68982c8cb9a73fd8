"""What a decision point answers."""

from attrs import frozen


@frozen(kw_only=True)
class Reply:
    """An answer, and how many decisions are in it."""

    text: str
    """JSON."""
    allowed: int = 0
    denied: int = 0

    @staticmethod
    def of_decision(text: str, *, decision: bool) -> "Reply":
        """Return an answer that is one decision."""
        return Reply(text=text, allowed=int(decision), denied=int(not decision))
