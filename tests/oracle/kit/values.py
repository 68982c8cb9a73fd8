"""What a check returns: how much was compared, and each difference as a value."""

from attrs import frozen


@frozen(kw_only=True)
class Difference:
    """Where a release is not what aclog assumes of it; `kafka` and `aclog` are what each has."""

    subject: str
    kafka: str
    aclog: str

    def __str__(self) -> str:
        return f"{self.subject}\n    Kafka: {self.kafka}\n    aclog: {self.aclog}"


@frozen(kw_only=True)
class Outcome:
    """The outcome of one check. `notes` are figures and limits that a reader needs to judge it."""

    check: str
    compared: int
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()
