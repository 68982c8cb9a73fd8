"""A question whether anybody may do something, and its proof."""

from collections.abc import Iterable

from attrs import frozen

from aclog.analysis.answers.permissions import Permission, intent_permissions, permission_key, permissions
from aclog.analysis.by_generation import merged
from aclog.analysis.regions.principals import Principals
from aclog.authorizer.generation import Generation
from aclog.cli.check.proof import Asked, Claim, prove_none
from aclog.cli.existing_topics import existing_topics
from aclog.cli.flags.asked import AskedFlags
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.output import Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.policies import policies_of
from aclog.cli.premises import read_premises
from aclog.terminal.progress import tracked


@frozen(kw_only=True)
class Question:
    """Whether any of these principals may do what is asked, from a host or from any."""

    claim: Claim
    """That none may."""
    asked: AskedFlags
    principals: Principals
    host: str | None

    def prove(self, source: SourceFlags, authorizer: AuthorizerFlags, output: Output, *, unnamed: bool = False) -> int:
        """Print whether the claim holds; return the exit code. `unnamed`: only principals that nothing names count.

        Raises:
            ConfigError: a malformed question.
            MetadataError, OSError: the source is damaged or cannot be read.

        """
        query, needs = self.asked.query(self.principals, self.host), self.asked.needs()
        names = source.topics()
        chosen = source.choose(topics=names)
        image = chosen.image()
        policies = policies_of(image, authorizer, self.asked.requests())
        premises = read_premises(chosen, authorizer.given())
        topics = existing_topics(names, [image], [chosen])
        allowed: dict[Generation, Iterable[Permission]] = {
            generation: (
                intent_permissions(policy, needs, principals=self.principals, host=query.host)
                if needs
                else permissions(policy, query)
            )
            for generation, policy in policies.items()
        }
        found = [
            (each, generation)
            for each, generation in tracked(merged(allowed, permission_key), "looking for who may", "permissions")
            if each.region.principals.complement or not unnamed
        ]
        asked = Asked(policies=policies, origins=chosen.origins, premises=premises)
        return prove_none(self.claim, found, asked, topics=topics, output=output)
