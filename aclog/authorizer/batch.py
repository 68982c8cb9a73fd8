"""StandardAuthorizer's decisions on many requests at once: columns in, a column of answers out."""

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aclog.authorizer.acl import WILDCARD_PRINCIPAL
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index.base import Subject
from aclog.authorizer.index.batch import Answer, Askings, all_masks, answers, distinct, scalar_masks
from aclog.authorizer.index.masks import ALLOWED, DENIED, OPERATIONS, TYPES, Masks
from aclog.authorizer.index.requests import RequestColumns

__all__ = ["Answer", "BatchAuthorizer", "RequestColumns"]

_BY_RULES = 255
_FEW = 4096
"""So few distinct requests are decided one by one: tables are not worth making."""


@frozen(eq=False, kw_only=True)
class BatchAuthorizer:
    """Decides as StandardAuthorizer.authorize does, on LITERAL resources, without audit."""

    image: AclsImage
    super_users: frozenset[str] = frozenset()
    allow_everyone: bool = False

    def authorize(self, requests: RequestColumns) -> NDArray[np.uint8]:
        """One Answer a request. Beside them it holds about 40 bytes a request."""
        if not len(requests):
            return np.zeros(0, np.uint8)
        operations = np.where(requests.operations < OPERATIONS, requests.operations, 0).astype(np.uint8)
        place_of = requests.name_of.astype(np.int64) * TYPES + np.where(requests.types < TYPES, requests.types, 0)
        places, numbers = distinct(place_of, len(requests.names) * TYPES)
        asked = Askings(
            principals=requests.principals,
            principal_of=requests.principal_of,
            hosts=requests.hosts,
            host_of=requests.host_of,
            types=(places % TYPES).tolist(),
            names=[requests.names[place] for place in (places // TYPES).tolist()],
            place_of=numbers,
        )
        if asked.repeat():
            once, rows = asked.distinct()
            masks = self._masks(once)[rows]
        else:
            masks = self._masks(asked)
        result = answers(masks, operations)
        if self.allow_everyone:
            unmatched = np.flatnonzero((masks >> operations & np.uint32(ALLOWED | DENIED)) == 0)
            result[unmatched] = self._without_rules(asked)[numbers[unmatched]]
        if self.image.state.throws:
            self._mark_errors(asked, operations, result)
        fixed = np.array([self._fixed(principal) for principal in asked.principals], np.uint8)[asked.principal_of]
        return np.where(fixed == _BY_RULES, result, fixed)

    def _masks(self, asked: Askings) -> Masks:
        image, always = self.image, self.image.documented
        if image.cidr or len(asked.place_of) < _FEW:
            return scalar_masks(image.state, asked, self._subject, star_always=always)
        image = image.merged() if image.overlay_size else image
        masks, left = all_masks(image.state, asked, star_always=always)
        masks[left] = scalar_masks(self.image.state, asked.rows(left), self._subject, star_always=always)
        return masks

    def _subject(self, principal: str, host: str) -> Subject:
        return _NOBODY if self._fixed(principal) != _BY_RULES else self.image.subject(principal, host)

    def _fixed(self, principal: str) -> int:
        """The answer to those whom the rules do not decide."""
        if principal in self.super_users:
            return Answer.ALLOWED
        return Answer.ERROR if ":" not in principal or principal == WILDCARD_PRINCIPAL else _BY_RULES

    def _without_rules(self, asked: Askings) -> NDArray[np.uint8]:
        """By place: ALLOWED where no rule is on the name, whomever it is for."""
        has_candidate = self.image.has_candidate
        free = (not has_candidate(kind, name) for kind, name in zip(asked.types, asked.names, strict=True))
        return np.fromiter(free, np.uint8, len(asked.names))

    def _mark_errors(self, asked: Askings, operations: NDArray[np.uint8], result: NDArray[np.uint8]) -> None:
        """ERROR where a rule without colon would be looked at."""
        once, rows = asked.distinct()
        values, numbers = np.unique(rows.astype(np.int64) * OPERATIONS + operations, return_inverse=True)
        wrong = np.zeros(len(values), np.bool_)
        for number, value in enumerate(values.tolist()):
            row, operation = divmod(value, OPERATIONS)
            place = once.place_of[row]
            try:
                subject = self._subject(once.principals[once.principal_of[row]], once.hosts[once.host_of[row]])
                self.image.check_principals(subject, operation, once.types[place], once.names[place])
            except InvalidRequestError:
                wrong[number] = True
        result[wrong[numbers]] = Answer.ERROR


_NOBODY = Subject((), (), dict.fromkeys(range(TYPES), 0), {-1: 0})
"""Stands for those whom the rules do not decide."""
