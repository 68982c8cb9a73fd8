"""What a decision point answers instead of a decision."""


class BadRequestError(Exception):
    """A request that is none; its text says what is wrong, and names no secret."""


class NotReadyError(Exception):
    """There is no state to decide from, or none that is fresh enough."""
