"""The command lines of kafka-acls.sh and kafka-configs.sh that are run on both servers."""

from attrs import frozen


@frozen
class Command:
    """One command line, without the address and the --command-config.

    `to` is broker, controller or nowhere.
    """

    line: str
    to: str = "broker"
    user: str = "admin"
    tool: str = "acls"


def acls(line: str, to: str = "broker", **more: str) -> Command:
    return Command(line, to, **more)


def controller(line: str, **more: str) -> Command:
    return Command(line, "controller", **more)


def configs(line: str, **more: str) -> Command:
    return Command(line, tool="configs", **more)


ADDING = (
    acls("--add --allow-principal User:alice --operation Read --topic orders"),
    acls(
        "--add --allow-principal User:alice --allow-principal User:bob --allow-host 10.0.0.1 --allow-host 10.0.0.2 "
        "--operation Read --operation Write --topic orders --topic pay"
    ),
    acls("--add --deny-principal User:mallory --deny-host 10.6.6.6 --operation All --topic '*'"),
    acls("--add --deny-principal User:mallory --topic orders"),
    acls("--add --allow-principal User:carol --deny-principal User:dave --operation Describe --group crew"),
    acls("--add --allow-principal User:alice --producer --topic made"),
    acls("--add --allow-principal User:alice --producer --topic made --idempotent"),
    acls(
        "--add --allow-principal User:alice --producer --topic made --transactional-id tx-"
        " --resource-pattern-type prefixed"
    ),
    acls("--add --allow-principal User:bob --consumer --topic made --group readers"),
    acls("--add --allow-principal User:bob --consumer --topic team. --group team. --resource-pattern-type prefixed"),
    acls("--add --allow-principal User:both --producer --consumer --topic both --group both"),
    acls("--add --allow-principal User:tx --operation Write --operation Describe --transactional-id tx-1"),
    acls("--add --allow-principal User:tx --operation TwoPhaseCommit --transactional-id tx-1"),
    acls("--add --allow-principal User:ops --cluster --operation Alter --operation Describe"),
    acls("--add --allow-principal User:ops --cluster"),
    acls("--add --allow-principal User:tok --delegation-token tok-1 --operation Describe"),
    acls(
        "--add --allow-principal User:ops --user-principal User:alice --operation CreateTokens "
        "--operation DescribeTokens"
    ),
    acls("--add --allow-principal User:alice --operation Read --topic orders"),
    acls("--add --allow-principal 'User:CN=x,OU=y, O=z' --operation Read --topic 'dn'"),
    acls("--add --allow-principal User:ünï --operation Read --topic orders --group crew"),
    controller("--add --allow-principal User:direct --operation Read --topic by-controller"),
    controller("--add --allow-principal User:direct --consumer --topic by-controller --group '*'"),
    controller("--add --allow-principal User:direct --producer --topic by-controller --idempotent"),
)
LISTING = (
    acls("--list"),
    controller("--list"),
    acls("--list --topic orders"),
    acls("--list --topic orders --topic pay"),
    acls("--list --topic orders --group crew"),
    acls("--list --topic team.one --resource-pattern-type match"),
    acls("--list --topic team. --resource-pattern-type prefixed"),
    acls("--list --topic team. --resource-pattern-type any"),
    acls("--list --topic team. --resource-pattern-type literal"),
    acls("--list --topic orders --resource-pattern-type match"),
    controller("--list --topic orders --resource-pattern-type match"),
    acls("--list --topic no-such"),
    acls("--list --cluster"),
    acls("--list --group '*'"),
    acls("--list --transactional-id tx-1 --resource-pattern-type match"),
    acls("--list --delegation-token tok-1"),
    acls("--list --user-principal User:alice"),
    acls("--list --principal User:alice"),
    acls("--list --principal User:alice --principal User:bob --topic orders"),
    acls("--list --principal User:nobody"),
    controller("--list --principal User:direct"),
)
REMOVING = (
    acls("--remove --allow-principal User:alice --operation Read --topic orders --force"),
    acls("--remove --allow-principal User:alice --operation Read --topic orders --force"),
    acls("--remove --topic pay"),  # asks at a terminal, which there is none of
    acls("--remove --allow-principal User:bob --allow-host 10.0.0.1 --operation Write --topic pay --force"),
    acls("--remove --allow-principal User:alice --producer --topic made --force"),
    acls("--remove --allow-principal User:bob --consumer --topic made --group readers --force"),
    acls("--remove --topic team.one --resource-pattern-type match --force"),
    acls("--remove --topic orders --force"),
    acls("--remove --deny-principal User:dave --group crew --force"),
    acls("--remove --cluster --force"),
    controller("--remove --allow-principal User:direct --operation Read --topic by-controller --force"),
    controller("--remove --topic by-controller --resource-pattern-type any --force"),
    acls("--remove --user-principal User:alice --force"),
    acls("--remove --topic no-such --force"),
    acls("--add --allow-principal User:last --operation Read --topic the-last"),
    acls("--list"),
)
REFUSED = (
    acls("--list", "nowhere"),
    acls(""),
    acls("--add --list"),
    acls("--add --topic t"),
    acls("--add --allow-principal User:x --operation Read"),
    acls("--add --allow-principal x --operation Read --topic t"),
    acls("--add --allow-principal User:x --operation Fly --topic t"),
    acls("--add --allow-principal User:x --operation Read --cluster"),
    acls("--add --allow-principal User:x --operation Alter --group g"),
    acls("--add --allow-principal User:x --operation Read --topic t --resource-pattern-type match"),
    acls("--add --allow-principal User:x --operation Read --topic t --resource-pattern-type any"),
    acls("--add --allow-principal User:x --operation Read --topic t --resource-pattern-type odd"),
    acls("--add --allow-principal User:x --producer"),
    acls("--add --allow-principal User:x --consumer --topic t"),
    acls("--add --allow-principal User:x --consumer --topic t --group g --operation Read"),
    acls("--add --allow-principal User:x --idempotent --topic t"),
    acls("--add --deny-principal User:x --producer --topic t"),
    acls("--add --allow-host 1.2.3.4 --operation Read --topic t"),
    acls("--add --allow-principal User:x --operation Read --topic ''"),
    acls("--list --principal User:alice --principal"),
    acls("--add --allow-principal User:x --operation Read --topic t", user="alice"),
    acls("--list", user="alice"),
    acls("--remove --topic t --force", user="alice"),
    controller("--list", user="alice"),
    controller("--add --allow-principal User:x --operation Read --topic t", user="alice"),
    acls("--no-such-flag"),
)
SCRAM = (
    configs("--alter --add-config 'SCRAM-SHA-256=[iterations=8192,password=p]' --entity-type users --entity-name sue"),
    configs(
        "--alter --add-config 'SCRAM-SHA-256=[password=p],SCRAM-SHA-512=[password=q]' --entity-type users "
        "--entity-name sid"
    ),
    configs("--alter --add-config 'SCRAM-SHA-512=[password=last]' --entity-type users --entity-name zoe"),
    configs("--describe --entity-type users"),
    configs("--describe --entity-type users --entity-name sid"),
    configs("--describe --entity-type users --entity-name nobody"),
    configs("--alter --delete-config SCRAM-SHA-512 --entity-type users --entity-name sid"),
    configs("--alter --delete-config SCRAM-SHA-512 --entity-type users --entity-name sue"),
    configs("--alter --delete-config SCRAM-SHA-256 --entity-type users --entity-name nobody"),
    configs("--alter --add-config 'SCRAM-SHA-256=[iterations=5000,password=p]' --entity-type users --entity-name yan"),
    configs("--describe --entity-type users"),
    configs("--alter --add-config 'SCRAM-SHA-256=[iterations=1,password=p]' --entity-type users --entity-name few"),
    configs(
        "--alter --add-config 'SCRAM-SHA-256=[iterations=20000,password=p]' --entity-type users --entity-name many"
    ),
    configs("--alter --add-config 'SCRAM-SHA-1=[password=p]' --entity-type users --entity-name odd"),
    configs("--alter --add-config 'SCRAM-SHA-256=[password=p]' --entity-type users --entity-name x", user="alice"),
    configs("--describe --entity-type users", user="alice"),
    configs("--describe --entity-type clients"),
    configs("--describe --entity-type users --entity-default"),
)
COMMANDS = (*ADDING, *LISTING, *REMOVING, *REFUSED, *SCRAM)
