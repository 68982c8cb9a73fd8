"""The commands of the shell."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from unicodedata import combining, east_asian_width

from attrs import evolve

from aclog.analysis.comparison import Comparison, turning_same
from aclog.analysis.policy import generation_object, merged
from aclog.analysis.timeline import explained
from aclog.authorizer.acl import ResourcePattern, find_name, host_address, parse_name
from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, AclOperation, PatternType, ResourceType
from aclog.authorizer.explain import ExplainOptions, explanation_lines
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.settings import Generation, GenerationPair, asked_pattern
from aclog.metalog.errors import ConfigError, printable
from aclog.shell.command import (
    FORMAT,
    SETTINGS,
    Argument,
    Arguments,
    Command,
    Count,
    Difference,
    Line,
    Option,
    ShellState,
    Sign,
    Signature,
    Word,
    complaint,
    described,
    differences,
    given_settings,
    is_json,
    lines_of_each,
    manual,
    policy_by,
    settings_of,
)
from aclog.shell.tree import Directory, File, Node, encode_name, path_text, provenance_text, zoned_time
from aclog.shell.walk import HERE, Glob, Location, children, find_target, path_globs, target_name
from aclog.snapshots.deciding_kafka import (
    deciding_kafka,
    generation_pairs,
    kafka_of_both,
    ranges_concern_controllers,
)
from aclog.snapshots.image import Image
from aclog.snapshots.moments import LATEST, moment_text
from aclog.snapshots.publisher import Followed, follow
from aclog.terminal.columns import json_text
from aclog.terminal.moment import take_moment
from aclog.terminal.notices import AgeWatch
from aclog.terminal.output import note, warn

# `at`: time travel.


def _at(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    words = arguments.all("moment")
    if words:
        state.go_to(take_moment(" ".join(word.text for word in words)))
    yield Line(f"at {moment_text(state.moment)}: {_summary(state.image())}")


def _summary(image: Image) -> str:
    """Return the position of a state and the number of its objects."""
    provenance = provenance_text(image.end_offset - 1, image.epoch, image.timestamp)
    return (
        f"{provenance}; {len(image.acls)} ACLs, {len(image.scram)} SCRAM credentials, "
        f"{len(image.tokens)} delegation tokens"
    )


AT = Command(
    name="at",
    description="Go to the state at an offset or a time, or print the current position.",
    signature=Signature(
        arguments=(
            Argument(
                name="moment",
                count=Count.ANY,
                help="An end offset (the state after the record before it), a time such as 2026-11-20T10:00:00Z, "
                "yesterday 18:00 or 3d ago, or latest, which follows the log.",
            ),
        )
    ),
    run=_at,
    suggestions=lambda _, __: (LATEST,),
    at_prompt_only=True,
)


# `cat`: the contents of files.


def _cat(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    for target in arguments.all("targets"):
        exists = False
        for location in find_target(state, target):
            exists = True
            if isinstance(location.node, File):
                yield Line(location.node.text())
            else:
                yield complaint(f"cat: {target_name(target, location)}: Is a directory")
        if not exists:
            yield complaint(f"cat: {target.text}: No such file or directory.")


CAT = Command(
    name="cat",
    description="Print the contents of files.",
    signature=Signature(arguments=(Argument(name="targets", count=Count.SOME, help="The files to print."),)),
    run=_cat,
    path_arguments=True,
)


# `cd`: change the working directory.


_ROOT = Word(text="/", glob="/")


def _cd(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    target = arguments.one("target") or _ROOT
    locations = list(islice(find_target(state, target), 2))
    if not locations:
        yield complaint(f"cd: {target.text}: no such directory.")
    elif len(locations) > 1:
        yield complaint(f"cd: {target.text}: matches more than one node.")
    elif not isinstance(locations[0].node, Directory):
        yield complaint(f"cd: {target.text}: not a directory.")
    else:
        state.working_directory = locations[0].names


CD = Command(
    name="cd",
    description="Change the working directory.",
    signature=Signature(
        arguments=(Argument(name="target", count=Count.OPTIONAL, help="Where to go; by default the root."),)
    ),
    run=_cd,
    path_arguments=True,
    at_prompt_only=True,
)


# `diff`: the changes between two moments.


_OF = Option(
    flag="--of", value="WHAT", help="rules (the default): the nodes of the tree; access: the access gained and lost."
)
_RULES, _ACCESS = "rules", "access"


def _diff(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    start, end = (arguments.one(name) for name in ("from", "to"))
    what = arguments.text(_OF.flag) or _RULES
    if what not in (_RULES, _ACCESS):
        raise ConfigError(f"--of {what}: expected {_RULES} or {_ACCESS}")
    as_json = is_json(arguments)
    before = state.image_at(take_moment(start.text)) if start else state.image()
    after = state.image_at(take_moment(end.text)) if end else state.image()
    if what == _ACCESS:
        yield from map(Line, _access_lines(state, arguments, (before, after), as_json=as_json))
    elif as_json:
        yield from (Line(json_text(difference.to_dict())) for difference in differences(before, after))
    else:
        yield from _of_objects(before, after)


def _access_lines(
    state: ShellState, arguments: Arguments, images: tuple[Image, Image], *, as_json: bool
) -> Iterator[str]:
    """Yield the access gained and lost between two states, each decided by the Kafka of its time."""
    settings = settings_of(arguments)
    old, new = kafka_of_both(images, (settings.generation, settings.generation))
    comparisons = dict[Generation | GenerationPair | None, Comparison]()
    for generation, pair in generation_pairs(old, new).items():
        both = [policy_by(image, settings, own) for image, own in zip(images, (pair.old, pair.new), strict=True)]
        comparison = Comparison.of(*both)
        if pair.only_controllers:
            comparison = comparison.by_controllers()
        comparisons[generation] = comparison
        if not comparison.differences:
            comparison.premises = turning_same(state.premises(given_settings(arguments)), comparison)
    ambiguous = next((each for each in (new, old) if not each.is_known), new)
    if as_json:
        if len(comparisons) > 1:
            warn(ambiguous.ambiguity())
        lines = merged({generation: each.json_lines() for generation, each in comparisons.items()}, json_text)
        yield from dict.fromkeys(json_text({**line, **generation_object(only)}) for line, only in lines)
        return
    reports = {generation: list(map(printable, each.text_lines())) for generation, each in comparisons.items()}
    yield from lines_of_each(reports, ambiguous)


def _of_objects(before: Image, after: Image) -> Iterator[Line]:
    counts: Counter[Sign] = Counter()
    for difference in differences(before, after):
        counts[difference.sign] += 1
        yield Line(str(difference))
    yield Line(f"{counts[Sign.ADDED]} added, {counts[Sign.REMOVED]} removed, {counts[Sign.CHANGED]} changed")


_MOMENT = "An end offset, a time such as 2026-11-20T10:00:00Z, -3d or 'yesterday 18:00', or latest"

DIFF = Command(
    name="diff",
    description="Print the nodes added (+), removed (-) and changed (~) between two moments.",
    signature=Signature(
        arguments=(
            Argument(name="from", count=Count.ONE, help=f"{_MOMENT}."),
            Argument(name="to", count=Count.OPTIONAL, help=f"{_MOMENT}; by default the current position."),
        ),
        options=(_OF, FORMAT, *SETTINGS),
    ),
    run=_diff,
    suggestions=lambda _, __: (LATEST,),
    notes=(
        "An ACL that was removed and added again has a new id and counts as one change.",
        "`diff --of access` prints access gained and lost, as `aclog diff` does; the other options are for it.",
    ),
)


# `exit`: leave the shell.


def _exit(state: ShellState, _: Arguments) -> Iterator[Line]:
    state.done = True
    yield from ()


EXIT = Command(
    name="exit",
    description="Leave the shell.",
    signature=Signature(),
    run=_exit,
    at_prompt_only=True,
)
QUIT = evolve(EXIT, name="quit")


# `find`: the paths of all nodes under a node.


def _find(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    for target in arguments.all("paths") or (HERE,):
        exists = False
        for location in find_target(state, target):
            exists = True
            yield from _paths(location.node, target_name(target, location))
        if not exists:
            yield complaint(f"find: {target.text}: no such file or directory.")


def _paths(node: Node, path: str) -> Iterator[Line]:
    yield Line(path)
    if isinstance(node, Directory):
        for name, child in children(node):
            yield from _paths(child, f"{path.rstrip('/')}/{encode_name(name)}")


FIND = Command(
    name="find",
    description="Print the path of every node under the given ones.",
    signature=Signature(
        arguments=(Argument(name="paths", count=Count.ANY, help="Where to start; by default the working directory."),)
    ),
    run=_find,
    path_arguments=True,
)


# `help`: the list of commands.


def help_page(commands: Mapping[str, Command]) -> list[str]:
    """Return the lines that `help` prints."""
    choices = "{" + ",".join(commands) + "}"
    page = ["The aclog shell: a metadata image as a tree of files.", "", f"usage:  {choices} ...", ""]
    page += ["positional arguments:", f"  {choices}"]
    for command in commands.values():
        page += described(command.name, command.description, indent=4)
    return [*page, "", "See man COMMAND for more. Paths may contain the globs *, ? and {a,b}; quotes disable them."]


def help_command(commands: Mapping[str, Command]) -> Command:
    """Return the command that lists `commands`, which may be filled in later: it also lists itself."""

    def show_help(_: ShellState, __: Arguments) -> Iterator[Line]:
        yield from map(Line, help_page(commands))

    return Command(name="help", description="Print this list of commands.", signature=Signature(), run=show_help)


# `history`: the lines typed in this session and, at a prompt, in earlier ones.


def _history(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    word = arguments.one("numEntriesToShow")
    count = _count(word.text) if word else len(state.history)
    for number in range(max(0, len(state.history) - count), len(state.history)):
        yield Line(f"{number:5d}  {state.history[number]}")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ConfigError(f"history: {text!r} is not a number of lines: expected 0 or more")
    return int(text)


HISTORY = Command(
    name="history",
    description="Print the lines that were typed.",
    signature=Signature(
        arguments=(
            Argument(name="numEntriesToShow", count=Count.OPTIONAL, help="How many of the last lines; by default all."),
        )
    ),
    run=_history,
    at_prompt_only=True,
)


# `ls`: the names in a directory.


COLUMNS_LIMIT = 1_000
"""Longer listings are printed one name per line, lazily, instead of in columns."""

_GAP = 2


def _ls(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    targets = arguments.all("targets") or (HERE,)
    listings: list[Iterator[Location]] = []
    for target in targets:
        of_target = find_target(state, target)
        first = next(of_target, None)
        if first is None:
            yield complaint(f"ls: {target.text}: no such file or directory.")
        else:
            listings.append(chain([first], of_target))
    yield from _listed(chain.from_iterable(listings), state.screen_width)


def _listed(locations: Iterator[Location], screen_width: int | None) -> Iterator[Line]:
    """Yield files first, then each directory, under its name unless it is the only one."""
    directories: list[tuple[str, Directory]] = []
    printed = False
    for line in _laid_out(_files(locations, directories), screen_width):
        printed = True
        yield line
    titled = printed or len(directories) > 1
    for name, directory in directories:
        lines = _laid_out(map(encode_name, directory.names("")), screen_width)
        first = next(lines, None)
        if first is None:  # like Kafka's shell, print nothing for an empty directory, not even its name
            continue
        if titled:
            yield from [Line("")] if printed else []
            yield Line(f"{name}:")
            printed = True
        yield from chain([first], lines)


def _files(locations: Iterator[Location], directories: list[tuple[str, Directory]]) -> Iterator[str]:
    """Yield the names of files as they are found, and collect the directories."""
    for location in locations:
        if isinstance(location.node, Directory):
            directories.append((location.shown_name, location.node))
        else:
            yield location.shown_name


def _laid_out(names: Iterable[str], screen_width: int | None) -> Iterator[Line]:
    """Yield one name per line, or columns if there is a screen and the names are few enough to be measured first."""
    remaining = iter(names)
    if screen_width is not None:
        few = list(islice(remaining, COLUMNS_LIMIT + 1))
        if len(few) <= COLUMNS_LIMIT:
            yield from map(Line, in_columns(few, screen_width))
            return
        remaining = chain(few, remaining)
    yield from map(Line, remaining)


def in_columns(names: Sequence[str], screen_width: int) -> list[str]:
    """Lay out names down and then across, as ls does, in as many columns as fit into `screen_width`; at least one."""
    widths = [display_width(name) for name in names]
    for count in range(min(len(names), screen_width // (1 + _GAP)), 1, -1):
        rows = -(-len(names) // count)
        column_widths = [max(widths[start : start + rows]) for start in range(0, len(names), rows)]
        if sum(column_widths) + _GAP * (len(column_widths) - 1) <= screen_width:
            return [_row(names, widths, column_widths, row, rows=rows) for row in range(rows)]
    return list(names)


def display_width(text: str) -> int:
    """Return how many terminal cells a text takes."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _row(names: Sequence[str], widths: Sequence[int], column_widths: Sequence[int], row: int, rows: int) -> str:
    *others, last = range(row, len(names), rows)
    return "".join(names[i] + " " * (column_widths[i // rows] + _GAP - widths[i]) for i in others) + names[last]


LS = Command(
    name="ls",
    description="List the names in a directory.",
    signature=Signature(
        arguments=(Argument(name="targets", count=Count.ANY, help="What to list; by default the working directory."),)
    ),
    run=_ls,
    path_arguments=True,
)


# `man`: the help page of a command.


def man_command(commands: Mapping[str, Command]) -> Command:
    """Return the command that describes one of `commands`, which may be filled in later: it also describes itself."""

    def show_manual(_: ShellState, arguments: Arguments) -> Iterator[Line]:
        """Print the help page of one command."""
        word = arguments.one("cmd")
        command = commands.get(word.text) if word else None
        if word and command:
            page = manual(command.name, command.description, command.signature)
            yield from map(Line, [*page, *(["", *command.notes] if command.notes else [])])
        elif word:
            yield complaint(f"man: unknown command {word.text}. Type help to get a list of commands.")

    return Command(
        name="man",
        description="Print the manual of a command.",
        signature=Signature(arguments=(Argument(name="cmd", count=Count.ONE, help="The command."),)),
        run=show_manual,
        suggestions=lambda _, __: commands,
    )


# `pwd`: the working directory.


def _pwd(state: ShellState, _: Arguments) -> Iterator[Line]:
    yield Line(path_text(state.working_directory))


PWD = Command(
    name="pwd",
    description="Print the working directory.",
    signature=Signature(),
    run=_pwd,
    at_prompt_only=True,
)


# `tree`: everything under a node, indented.


INDENT = 2


def _tree(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    for target in arguments.all("targets"):
        exists = False
        for location in find_target(state, target):
            exists = True
            yield from _branches(location.node, 0)
        if not exists:
            yield complaint(f"tree: {target.text}: No such file or directory.")


def _branches(node: Node, indent: int) -> Iterator[Line]:
    if isinstance(node, File):
        yield Line(" " * indent + node.text())
        return
    for name, child in children(node):
        yield Line(f"{' ' * indent}{encode_name(name)}:")
        yield from _branches(child, indent + INDENT)


TREE = Command(
    name="tree",
    description="Print everything under the given nodes, indented.",
    signature=Signature(arguments=(Argument(name="targets", count=Count.SOME, help="The nodes to print."),)),
    run=_tree,
    path_arguments=True,
)


# `watch`: print changes as they are committed.


def _watch(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    log = state.source.log
    if log is None:
        yield complaint(f"watch: {state.source.name} is a single state: expected a log")
        return
    as_json = is_json(arguments)
    target = arguments.one("path") or HERE
    globs = path_globs(state.working_directory, target.glob)
    image = state.image()
    if not as_json:
        yield Line(f"watching {target.text} from offset {image.end_offset}; stop with Ctrl-C", flush=True)
    age = AgeWatch()
    for step in follow(state.source, log, image, lambda: age.tell(state.source.freshness())):
        where = f"offset {step.before.end_offset}..{step.after.end_offset - 1} {zoned_time(step.after.timestamp)}"
        if step.changes is None:
            why = "the log no longer has all of these offsets: their net effect"
            if as_json:
                note(f"{where} {why}")
            else:
                yield Line(f"{where} {why}", flush=True)
        touched = None if step.changes is None else {change.id for change in step.changes}
        for difference in differences(step.before, step.after, touched):
            if is_under(globs, difference):
                yield Line(_json(step, difference) if as_json else f"{where} {difference}", flush=True)


def _json(step: Followed, difference: Difference) -> str:
    place = {
        "offset": step.before.end_offset,
        "endOffset": step.after.end_offset,
        "timestamp": step.after.timestamp,
    }
    return json_text({**place, **difference.to_dict()})


def is_under(globs: Sequence[Glob], difference: Difference) -> bool:
    """Return whether one of the difference's paths is at or below the watched path."""
    return any(
        len(path) >= len(globs)
        and all(glob.matches(encode_name(name)) for glob, name in zip(globs, path, strict=False))
        for path in difference.paths
    )


WATCH = Command(
    name="watch",
    description="Print changes as they are committed, until Ctrl-C.",
    signature=Signature(
        arguments=(
            Argument(
                name="path",
                count=Count.OPTIONAL,
                help="Print only changes at or below this path; by default the working directory.",
            ),
        ),
        options=(FORMAT,),
    ),
    run=_watch,
    path_arguments=True,
    notes=(
        "It starts at the current position: after `at OFFSET`, with the changes after that offset.",
        "Where the log no longer has the next records, it prints their net effect, and continues.",
    ),
)


# `why`: a decision and its explanation.


DEFAULT_HOST = "127.0.0.1"
_HOST = Option(flag="--host", value="H", help=f"The client's address; by default {DEFAULT_HOST}.")
_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
_PATTERN = Option(
    flag="--resource-pattern-type",
    value="TYPE",
    help="Take names as they are: literal, or prefixed for all that begin so.",
)
_TYPES = [kind for kind in ResourceType if kind not in {ResourceType.UNKNOWN, ResourceType.ANY}]
_OPERATIONS = [one for one in AclOperation if one not in {AclOperation.UNKNOWN, AclOperation.ANY}]


def parse_operation(text: str) -> AclOperation:
    """Parse an operation in any case, with or without `-` and `_`: `describe-configs` or `DescribeConfigs`.

    Raises:
        ConfigError: there is no such operation.

    """
    operation = find_name(_OPERATIONS, text)
    if operation is None:
        names = ", ".join(one.name for one in _OPERATIONS)
        raise ConfigError(f"{text!r} is not an operation: expected one of {names}{_in_ascii(text)}")
    return operation


def parse_resource(text: str, pattern_type: PatternType | None = None) -> ResourcePattern:
    """Parse a resource: `TYPE:NAME`, such as `topic:orders`, `topic:pii-*` for all that begin so, or just `cluster`.

    With a pattern type a name is taken as it is.

    Raises:
        ConfigError: there is no such type, the name is missing, or a star is where none can be.

    """
    kind, colon, name = text.partition(":")
    resource_type = find_name(_TYPES, kind)
    if resource_type is not None:
        if resource_type is ResourceType.CLUSTER and not colon:
            return ResourcePattern(resource_type=resource_type, name=CLUSTER_NAME)
        if colon:
            return asked_pattern(resource_type, name, pattern_type)
    expected = f"TYPE:NAME, such as topic:orders, with TYPE one of {', '.join(map(_type_word, _TYPES))}"
    raise ConfigError(f"{text!r} is not a resource: expected {expected}{_in_ascii(kind)}")


def _asked_resource(text: str, pattern_type: PatternType | None) -> ResourcePattern:
    """Return a resource as `parse_resource` does, or a topic by its name alone. Raises as parse_resource."""
    is_name = ":" not in text and find_name(_TYPES, text) is None
    return asked_pattern(ResourceType.TOPIC, text, pattern_type) if is_name else parse_resource(text, pattern_type)


def _in_ascii(text: str) -> str:
    return "" if text.isascii() else ", in ASCII"


def _type_word(resource_type: ResourceType) -> str:
    return resource_type.name.lower().replace("_", "-")


def _why(state: ShellState, arguments: Arguments) -> Iterator[Line]:
    operation = parse_operation(arguments.text("operation"))
    pattern_name = arguments.text(_PATTERN.flag)
    pattern_type = parse_name(_PATTERNS, pattern_name) if pattern_name else None
    patterns = [_asked_resource(word.text, pattern_type) for word in arguments.all("resources")]
    context = RequestContext(
        principal=arguments.text("principal"), host=host_address(arguments.text(_HOST.flag) or DEFAULT_HOST)
    )
    image, settings = state.image(), settings_of(arguments)
    options = ExplainOptions(
        allow_everyone=settings.allow_everyone,
        host_given=bool(arguments.text(_HOST.flag)),
        as_of=None if state.moment is None else moment_text(state.moment),
        place=state.source.change_place,
        origins=state.origins,
        premises=state.premises(given_settings(arguments)),
    )
    for number, pattern in enumerate(patterns):  # of names that begin so: if all are decided alike
        action = Action(operation=operation, resource_pattern=pattern)
        concerned = ranges_concern_controllers(image.acls, [(pattern.resource_type, operation)])
        kafka = deciding_kafka(image, settings.generation, controllers=concerned)
        explanations = {
            generation: list(
                explanation_lines(explained(policy_by(image, settings, generation), context, action, options))
            )
            for generation in kafka.generations
        }
        yield from [Line("")] if number else []
        yield from map(Line, lines_of_each(explanations, kafka))


def _suggestions(state: ShellState, number: int) -> Iterable[str]:
    if number == 0:
        return sorted(state.image().acls.principals())
    if number == 1:
        return [operation.name for operation in _OPERATIONS]
    types = ["cluster" if kind is ResourceType.CLUSTER else f"{_type_word(kind)}:" for kind in _TYPES]
    patterns = state.image().acls.resource_patterns()
    return [*types, *sorted(each.name for each in patterns if _is_topic_name(each))]


def _is_topic_name(pattern: ResourcePattern) -> bool:
    """Return whether a pattern is one topic, whose name alone is not a type."""
    is_topic = pattern.resource_type == ResourceType.TOPIC and pattern.pattern_type == PatternType.LITERAL
    return is_topic and pattern.name != WILDCARD and ":" not in pattern.name and find_name(_TYPES, pattern.name) is None


WHY = Command(
    name="why",
    description="Decide a request, and print the ACLs that took part and the changes that would reverse the decision.",
    signature=Signature(
        arguments=(
            Argument(name="principal", count=Count.ONE, help="The principal, such as User:alice."),
            Argument(name="operation", count=Count.ONE, help="The operation, such as READ or describe-configs."),
            Argument(
                name="resources",
                count=Count.SOME,
                help="The resources: TYPE:NAME, such as topic:pii-*, user:User:bob; a topic's name; or cluster.",
            ),
        ),
        options=(_HOST, _PATTERN, *SETTINGS),
    ),
    run=_why,
    suggestions=_suggestions,
)
