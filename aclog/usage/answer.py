"""What accesses say about an ACL."""

from enum import StrEnum


class Answer(StrEnum):
    """Whether a log needs an ACL."""

    NEVER_MATCHED = "NEVER_MATCHED"
    """No access in the window matches the ACL."""
    NEVER_NEEDED = "NEVER_NEEDED"
    """Some accesses match, but each would be decided the same without the ACL."""
    NEEDED = "NEEDED"
    NOT_JUDGED = "NOT_JUDGED"
    """The ACL is not known to have been in force in the whole window, or an access that may have needed it could not be
    read or decided."""
