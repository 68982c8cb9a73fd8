"""What a policy allows, as the library tells it."""

from attrs import field, frozen

from aclog.analysis.answers.permission_report import permission_lines, permission_object
from aclog.analysis.answers.permissions import Permission
from aclog.analysis.rows.table_forms import html_text
from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.origin import Origins
from aclog.metalog.printable import printable


@frozen(repr=False)
class Grant:
    """Requests that are allowed, and the rules that allow them: who, which operations, on what, from where.

    Printed as `aclog who-can` prints it; `to_dict` is its JSON object. `rules` are the ACLs that give it, each a part
    or all, or the text `SuperUser` or `DefaultAllow`; `denies` take away a part of what they would give.
    """

    _permission: Permission
    _acls: AclsImage = field(eq=False)
    _origins: Origins = field(eq=False)

    @property
    def principals(self) -> tuple[str, ...]:
        """The principals, by name; if it is `for_anyone`, those who are not among them."""
        return self._permission.region.principals.named

    @property
    def for_anyone(self) -> bool:
        """Whether principals that no rule names are among those who may: everybody but `principals`."""
        return self._permission.region.principals.complement

    @property
    def covers_all(self) -> bool | None:
        """Whether it is on all names that begin with the prefix that was asked about; None if none was."""
        return None if self._permission.extent is None else self._permission.extent.is_all

    @property
    def rules(self) -> tuple[StandardAclWithId | str, ...]:
        """What gives it."""
        return tuple(rule if isinstance(rule, str) else self._found(rule) for rule in self._permission.rules)

    @property
    def denies(self) -> tuple[StandardAclWithId, ...]:
        """What takes away a part."""
        return tuple(map(self._found, self._permission.denies))

    def _found(self, acl: StandardAcl) -> StandardAclWithId:
        return StandardAclWithId(id=self._acls.find(acl), acl=acl)

    def __str__(self) -> str:
        return "\n".join(map(printable, permission_lines(self._permission, self._origins)))

    def __repr__(self) -> str:
        return f"<Grant {str(self).splitlines()[0]}>"

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def to_dict(self) -> dict[str, object]:
        """Return it as a line of `aclog who-can --format jsonl`."""
        return dict(permission_object(self._permission, self._origins))
