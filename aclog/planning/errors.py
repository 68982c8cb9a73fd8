"""The errors of plans and of what applies them."""

from aclog.metalog.errors import MetadataError


class RefusedError(MetadataError):
    """A plan that is not made, or not applied: nothing was written."""


class StoppedError(MetadataError):
    """An apply that ended on its way: the journal has what may have been written."""


class JournalError(MetadataError):
    """A journal that is damaged, of another place, or not the one that a plan was made with."""
