"""Templates such as `User:{id}+admin`: from a foreign id to a name of ours, and back."""

from attrs import frozen

from aclog.metalog.errors import ConfigError

_ID = "{id}"


@frozen
class Template:
    """A text with `{id}` in it, once."""

    before: str
    after: str

    @classmethod
    def parse(cls, text: str, where: str) -> "Template":
        """Return a template. Raises ConfigError: `{id}` is not in it exactly once."""
        before, found, after = text.partition(_ID)
        if not found or _ID in after:
            raise ConfigError(f"{where}: {text[:80]!r}: expected {_ID} in it, once: what is told apart is read back")
        return cls(before, after)

    def __str__(self) -> str:
        return f"{self.before}{_ID}{self.after}"

    def name_of(self, foreign: str) -> str:
        """Return the name for a foreign id."""
        return f"{self.before}{foreign}{self.after}"

    def id_of(self, name: str) -> str | None:
        """Return the foreign id that a name is of; None if it is of none."""
        is_of = name.startswith(self.before) and name.endswith(self.after)
        if not is_of or len(name) <= len(self.before) + len(self.after):
            return None
        return name[len(self.before) : len(name) - len(self.after)]

    def has_names_below(self, prefix: str) -> bool:
        """Return whether a name that begins so may be one of this template."""
        return self.before.startswith(prefix) or prefix.startswith(self.before)

    def meets(self, other: "Template") -> bool:
        """Return whether a name may be one of both."""
        befores, afters = sorted((self.before, other.before), key=len), sorted((self.after, other.after), key=len)
        return befores[1].startswith(befores[0]) and afters[1].endswith(afters[0])

    def hides(self, other: "Template") -> bool:
        """Return whether every name of another template is a name of this one, too."""
        return other.before.startswith(self.before) and other.after.endswith(self.after)
