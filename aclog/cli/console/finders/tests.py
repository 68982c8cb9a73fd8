"""Finds the tests of rules that fail, as `aclog test` does."""

from collections.abc import Sequence

from attrs import evolve, frozen

from aclog.analysis.policy import Policy
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, parse_super_users
from aclog.authorizer.origin import Origins
from aclog.authorizer.settings import Settings
from aclog.cli.console.finders.files import signature_of
from aclog.cli.flags.authorizer import AuthorizerFlags, Semantics
from aclog.console.findings.looked import Looked, Subject
from aclog.console.findings.rule_test_items import TestedFile, failing_keys, tests_looked
from aclog.sources.repository.settings import AuthorizerSettings
from aclog.sources.rule_tests.reading import read_test_file


@frozen(kw_only=True)
class TestsFinder:
    """Runs files of tests on states; they are read again each time."""

    __test__ = False
    """It is none for pytest."""

    files: Sequence[str]
    authorizer: AuthorizerFlags
    """Those of them that are given win over a file's own."""
    origins: Origins
    place: ChangePlace

    def look(self, subject: Subject) -> Looked:
        """Return the tests that fail. Raises MetadataError, OSError: what it takes is unreadable."""
        return tests_looked(self._files(subject), self.origins, self.place)

    def had(self, then: Subject, found: Looked) -> frozenset[str]:
        """Return the keys of tests that failed in an earlier state, too. Raises as `look`."""
        among = frozenset(each.key for each in found.items)
        return failing_keys(self._files(then), among) if among else frozenset()

    def signature(self) -> object:
        """Return what changes with the files."""
        return signature_of(self.files)

    def _files(self, subject: Subject) -> list[TestedFile]:
        found = []
        for file in map(read_test_file, dict.fromkeys(self.files)):
            policy = subject.policy
            settings = self.settings_for(policy.settings, file.settings)
            if settings != policy.settings:
                acls = policy.acls.with_options(documented=settings.documented, cidr=settings.cidr)
                policy = Policy(acls, settings)
            given = self.given_by(file.settings)
            premises = subject.premises.without(given)
            found.append(TestedFile(policy=policy, cases=file.cases, premises=premises, given=given))
        return found

    def given_by(self, stated: AuthorizerSettings) -> frozenset[str]:
        """Return the properties of brokers whose values flags give, or a file states."""
        values = {SUPER_USERS_CONFIG: stated.super_users, ALLOW_EVERYONE_CONFIG: stated.allow_everyone}
        return self.authorizer.given() | {name for name, value in values.items() if value is not None}

    def settings_for(self, settings: Settings, stated: AuthorizerSettings) -> Settings:
        """Return the console's settings with those that a file states, unless a flag does."""
        given = self.authorizer
        if given.super_users is None and stated.super_users is not None:
            settings = evolve(settings, super_users=parse_super_users(stated.super_users))
        if not (given.allow_everyone or given.no_allow_everyone) and stated.allow_everyone is not None:
            settings = evolve(settings, allow_everyone=stated.allow_everyone)
        if not given.documented and stated.semantics is not None:
            settings = evolve(settings, documented=stated.semantics == Semantics.DOCUMENTED)
        if given.generation is None and stated.cidr is not None:
            settings = evolve(settings, cidr=stated.cidr, is_kafka_stated=True)
        return settings
