"""How many deletes a plan may hold before somebody has to say how many are meant."""

from attrs import frozen

from aclog.metalog.errors import ConfigError

_LEAST = 20
_PERCENT = 10.0


@frozen(kw_only=True)
class DeleteLimit:
    """A number of deletes, or a share of what the journal owns; by default the larger of 20 and 10%."""

    number: int | None = None
    percent: float | None = None

    @classmethod
    def parse(cls, text: str | None) -> "DeleteLimit":
        """Return the limit in the value of --max-deletes: N, or N%. Raises ConfigError: neither."""
        if text is None:
            return cls()
        digits = text.strip()
        try:
            if digits.endswith("%"):
                percent = float(digits[:-1])
                if 0 <= percent <= 100:  # False for NaN
                    return cls(percent=percent)
            elif digits.isascii() and digits.isdecimal():
                return cls(number=int(digits))
        except ValueError:
            pass
        raise ConfigError(f"--max-deletes {text[:40]!r}: expected a number such as 50, or a share such as 25%")

    def most(self, owned: int) -> int | None:
        """Return how many deletes pass if so many ACLs are owned; None: any number."""
        if self.number is not None:
            return self.number
        if self.percent is not None:
            return None if self.percent >= 100 else int(owned * self.percent / 100)
        return max(_LEAST, int(owned * _PERCENT / 100))

    def __str__(self) -> str:
        if self.number is not None:
            return str(self.number)
        if self.percent is not None:
            return f"{self.percent:g}%"
        return f"the larger of {_LEAST} and {_PERCENT:g}% of what is owned"
