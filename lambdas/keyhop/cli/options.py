"""What the commands have in common: help in sections, types of numbers, and shared options."""

import math
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from functools import partial
from importlib import import_module
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource, augment_usage_errors

from keyhop.cli.exit_status import raise_at_interrupt
from keyhop.cli.settings import LEAST_RATE, settings
from keyhop.errors import UnfinishedRun
from keyhop.public.limits import (
    DEFAULT_PATIENCE_SECONDS,
    DEFAULT_STACK,
    DEFAULT_WRITE_RATE,
    MOST_CONCURRENCY,
)
from keyhop.wording import did_you_mean

FORMATS = ("text", "json", "csv", "typed-json")
"""The formats of results, which are the same for all commands (output.put_out)."""

NARROW = 60
"""In a help of fewer columns, explanations are below the names."""

FLAGS = {"verify_share": "--verify", "candidates": "--candidate", "window_days": "--window"}
"""The flags whose names differ from those of the fields of inputs."""

_KNOWN_FLAGS: set[str] = set()
"""The flags of all commands."""

Decorator = Callable[[Any], Any]
Options = SimpleNamespace
"""The values of a command line: an attribute for each option and argument, by its name."""


def flag(field: str) -> str:
    """Return the flag for a field of an input."""
    return FLAGS.get(field, f"--{field.replace('_', '-')}")


def with_flags(text: str) -> str:
    """Return an error of the library, which names an argument as `dry_run=`, with its flag.

    Other words before an equals sign are those of the user.
    """

    def written(match: re.Match[str]) -> str:
        if (name := flag(match[1])) not in _KNOWN_FLAGS:
            return match[0]
        return f"{name} {match[2] or ''}" if match[2] or match[3] else name

    return re.sub(r"\b([a-z]\w*)=(?:True\b|\"([\w-]+)\")?(?=([\w/'\"]?))", written, text)


class Option(click.Option):
    """An option in a section of the help: `--index NAME` takes a value, `--dry-run` is a flag."""

    def __init__(self, names: list[str], section: str, **more: Any) -> None:
        name, _, metavar = names[0].partition(" ")
        if not metavar and "type" not in more:
            more["is_flag"] = True
        super().__init__([name, *names[1:]], metavar=metavar or None, **more)
        _KNOWN_FLAGS.update(self.opts)
        self.section = section


class Argument(click.Argument):
    """A positional argument with a help text, which click itself knows only from 8.5 on."""

    section = "Positional arguments"

    def __init__(self, names: list[str], help: str, **rest: Any) -> None:
        super().__init__(names, **rest)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.human_readable_name, self.help or ""


class Sections(click.Command):
    """A command whose help has sections, and that takes no option for the value of another one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, but `--output --resume` has no value."""
        options = [
            entry for entry in self.params if isinstance(entry, click.Option) and not entry.is_flag
        ]
        names = {name for option in options for name in option.opts}
        for name, value in pairwise(args):
            if name in names and re.match(r"-[^\d.]", value) and not ctx.resilient_parsing:
                raise click.BadOptionUsage(name, f"Option {name!r} requires an argument", ctx)
        with augment_usage_errors(ctx):
            try:
                return super().parse_args(ctx, args)
            except click.NoSuchOption as error:
                limits = {"--threads", "--max-read-rate"} & names
                if error.option_name != "--requests" or not limits:
                    raise
                raise click.UsageError(
                    "No such option '--requests'. The requests in flight are limited by "
                    f"{max(limits)}",
                    ctx,
                ) from error

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text; in a narrow terminal, the comment of an example is below it."""
        text = copy(self)
        if formatter.width < NARROW and self.help:
            example = r"(?m)^( +(?:keyhop|eval) .*?\S) {2,}(\S.*)$"
            text.help = re.sub(example, r"\1\n        \2", self.help)
        super(Sections, text).format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write arguments, then sections in the order of their first options."""
        sections = defaultdict(list)
        for entry in sorted(
            self.get_params(ctx), key=lambda entry: isinstance(entry, click.Option)
        ):
            if record := entry.get_help_record(ctx):
                sections[getattr(entry, "section", "Help")].append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records, 30 if formatter.width >= NARROW else 4)

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: arguments are written with the options, as click does only from 8.5 on."""


class Group(Sections, click.Group):
    """Commands, and options that apply to each of them: before the command and after it.

    Without a command it prints its help.
    """

    group_class = type

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; values of options are the defaults of the commands below."""
        rest = super().parse_args(ctx, args or ["--help"])
        sources = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)
        values = {k: v for k, v in ctx.params.items() if ctx.get_parameter_source(k) in sources}
        values = {**(ctx.default_map or {}), **values}
        ctx.default_map = dict.fromkeys(self.commands, values)
        return rest

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Resolve as click does; name the nearest command for a wrong one, as click 8.4 does."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            near = did_you_mean(name, self.commands)
            if args[1:2] and args[1] in self.commands:
                near = f" The command comes first: {ctx.command_path} {args[1]} {name}"
            raise click.UsageError(f"No such command {name!r}.{near}", ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Keep the order of definition: the commands that are used most come first."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands first."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)


class Command(Sections):
    """A command whose action is in another module."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; an option before the command must be an option of the command.

        A setting counts where there is no option.
        """
        names = {parameter.name for parameter in self.params}
        before = ctx.default_map or {}
        for name in before:
            if name not in names:
                raise click.NoSuchOption(f"--{name.replace('_', '-')}", ctx=ctx)
        only_helps = ctx.resilient_parsing or not {"-h", "--help"}.isdisjoint(args)
        usable = {
            name: setting
            for name, setting in ({} if only_helps else settings()).items()
            if name in names and name not in before
        }
        ctx.default_map = {**{name: usable[name].value for name in usable}, **before}
        rest = super().parse_args(ctx, args)
        ctx.obj = {
            name: setting.source
            for name, setting in usable.items()
            if ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
        }
        if "resume" in ctx.params and not ctx.params.get("remote"):
            _take_directory_to_resume(ctx)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run index_actions.run, which is imported now, for what index.build has checked."""
        super().invoke(ctx)
        check: Any = self.callback
        actions = import_module(f"{check.__module__}_actions")
        raise_at_interrupt()
        try:
            return actions.run(Options(action=check.__name__, settings=ctx.obj, **ctx.params))
        except UnfinishedRun as error:
            command = command_line(output=None, resume=ctx.params["output"] or error.directory)
            raise UnfinishedRun(f"{error} To resume it: {command}", error.directory) from error


def _take_directory_to_resume(ctx: click.Context) -> None:
    """Make --resume DIR the output, which may then hold an unfinished run."""
    directory = ctx.params["resume"]
    ctx.params["resume"] = directory is not None
    if directory is None:
        return
    if ctx.params["output"] is not None and not ctx.resilient_parsing:
        raise click.UsageError("--resume DIR continues in DIR: leave --output out", ctx)
    ctx.params["output"] = directory


def is_given(ctx: click.Context, name: str) -> bool:
    """Return whether an option is on the command line, before the command or after it."""
    source = ctx.get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE or (
        source is ParameterSource.DEFAULT_MAP and name not in (ctx.obj or ())
    )


def check_place(remote: bool, local: Iterable[str]) -> None:
    """Raise UsageError for an option of the other place: this machine, or a deployment.

    Args:
        remote: The value of --remote.
        local: The options that only work on this machine has.
    """
    ctx = click.get_current_context()
    reasons = dict.fromkeys(local, "is for work on this machine: leave it out, or --remote")
    reasons["endpoint_url"] = (
        "does not work with --remote: a deployment reads the tables of its account"
    )
    if not remote:
        names = (p.name for p in ctx.command.params if getattr(p, "section", "") == REMOTE)
        reasons = dict.fromkeys(filter(None, names), "is for --remote: add that")
    for name, why in reasons.items():
        if is_given(ctx, name):
            raise click.UsageError(f"{flag(name)} {why}", ctx)


def how_to_go_on(options: "Options", otherwise: str) -> str:
    """Return the command that continues an interrupted run with -o; `otherwise` for another one."""
    if getattr(options, "output", None) and not options.resume:
        return f"To go on: {command_line(output=None, resume=options.output)}"
    return otherwise


def command_line(**values: Any) -> str:
    """Return the command line that is being run, with other values of these options."""
    ctx = click.get_current_context()
    words = ctx.command_path.split()
    for parameter in ctx.command.params:
        name = str(parameter.name)
        value = values.get(name, ctx.params[name])
        if value is None or not (name in values or is_given(ctx, name)):
            continue
        is_option = isinstance(parameter, click.Option)
        for item in value if parameter.multiple else [value]:
            words += [parameter.opts[0]] * is_option
            words += [str(item)] * (not getattr(parameter, "is_flag", False))
    return shlex.join(words)


def together(*decorators: Decorator) -> Decorator:
    """Combine decorators; the help lists their options in this order."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def in_section(title: str) -> Callable[..., Decorator]:
    """Return `click.option` for the options of a section."""
    return partial(click.option, cls=Option, section=title)


def number(
    what: str, fits: Callable[[Any], bool], kind: Callable[[str], Any] = float
) -> Callable[[str], Any]:
    """Return a type of option for the numbers that fit; errors call them `what`."""

    def parse(text: str) -> Any:
        with suppress(ValueError):
            if fits(value := kind(text)):
                return value
        raise click.BadParameter(f"{text!r} is not {what}")

    return parse


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a type of option for the whole numbers from `low` to `high`."""
    what = f"a whole number from {low:,} to {high:,}"
    return number(what, lambda value: low <= value <= high, int)


positive = number("a number above 0", lambda value: 0 < value < math.inf)
seconds = number("a number of seconds, 0 or more", lambda value: 0 <= value < math.inf)
share = number("a share above 0 and up to 1", lambda value: 0 < value <= 1)


def rate(text: str) -> float:
    """Return a rate of at least LEAST_RATE units a second."""
    value: float = positive(text)
    if value < LEAST_RATE:
        raise click.BadParameter(f"{text!r} is less than {LEAST_RATE:g} units a second")
    return value


def role_arn(text: str) -> str:
    """Return the ARN of a role."""
    if not re.fullmatch(r"arn:[\w-]+:iam::\d{12}:role/.+", text):
        raise click.BadParameter(
            f"{text!r} is not the ARN of a role, such as arn:aws:iam::123456789012:role/Reader"
        )
    return text


argument = partial(click.argument, cls=Argument)
table = argument("table", help="name or ARN of the table")

limit = in_section("Limits")
max_read_rate = limit(
    "--max-read-rate RATE",
    help="limit all reads together to this many read units a second",
    type=rate,
)
max_cost = limit(
    "--max-cost DOLLARS",
    help="do not begin if the least estimate is higher (of a re-key, the only one), and stop when "
    "this is spent (exit status 4). Reads and writes of DynamoDB count, from zero at each start. "
    "With --remote: do not begin if the highest estimate, of all services, is higher (default: the "
    "limit of the deployment)",
    type=positive,
)
max_write_rate = limit(
    "--max-write-rate RATE",
    help=f"limit writes to this many write units a second (default {DEFAULT_WRITE_RATE:g})",
    type=rate,
    default=DEFAULT_WRITE_RATE,
)
method = in_section("Reading")(
    "--method METHOD",
    help="skip: hop from key to key; scan: read everything; index: read the key index; auto "
    "(default): choose, say why",
    type=click.Choice(("auto", "skip", "scan", "index")),
    default="auto",
)
give_up_after = limit(
    "--give-up-after SECONDS",
    help="end after this long with nothing but throttling and failures (default "
    f"{DEFAULT_PATIENCE_SECONDS:g})",
    type=positive,
    default=DEFAULT_PATIENCE_SECONDS,
)

yes = in_section("Before it begins")(
    "--yes",
    "-y",
    help="do not ask; without a terminal (standard input and standard error) it must be given",
)

FILE_TYPES = (*FORMATS, "jsonl", "html", "svg", "txt", "yaml", "yml")
"""Names that people give to `--output` when they mean a format."""


def directory(name: str) -> str:
    """Return a run's directory; raise BadParameter for the name of a format or a file type."""
    if (word := name.lower().removeprefix(".")) not in FILE_TYPES:
        return name
    format_ = "typed-json" if word == "jsonl" else word
    advice = f"use --format {format_}" if format_ in FORMATS else "use --format for a format"
    raise click.BadParameter(
        f"{name!r} is a format, and --output names a directory: {advice}, or write ./{name} if the "
        "directory is called so"
    )


output = in_section("Output")
resume = output(
    "--resume DIR",
    type=directory,
    help="continue the unfinished run in DIR; with other limits if you like",
)
resume_anywhere = output(
    "--resume WHERE",
    help="continue the unfinished run in the directory WHERE, or with --remote the run of this "
    "name; limits may be others",
)
quiet = output("--quiet", "-q", help="no progress, no summary")
format_ = output(
    "--format FORMAT",
    "-f",
    help='text (default); json: {"pk": "a"}; typed-json: {"pk": {"S": "a"}}; csv: with a header',
    type=click.Choice(FORMATS),
)
reporting = together(format_, quiet)

REMOTE = "By a deployment"
remote = in_section(REMOTE)
remotely = together(
    remote("--remote", help="let the deployment do the work, and print the name of the run"),
    remote("--follow", help="show the progress of the run until it ends, then its result"),
    remote(
        "--name NAME", help="the name of the run (default: made of the table's name and the time)"
    ),
)
max_concurrency = remote(
    "--max-concurrency N",
    help="the maximum number of workers at once, each with 8 requests in flight (default: planned)",
    type=whole(1, MOST_CONCURRENCY),
)


def account(place: Callable[..., Decorator]) -> Decorator:
    """Return the options that name an account and a region, in a section of the help."""
    return together(
        place("--region NAME", help="AWS region (default: from your AWS configuration)"),
        place("--profile NAME", help="AWS profile"),
        place(
            "--role-arn ARN",
            help="IAM role to assume for all requests, such as one of the table's account",
            type=role_arn,
        ),
    )


place = in_section("Where the table is")
where = together(
    account(place),
    place(
        "--endpoint-url URL",
        help="another endpoint, such as DynamoDB Local (default: AWS_ENDPOINT_URL)",
        envvar=("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"),
    ),
)
stack = place(
    "--stack NAME",
    help="the stack of the deployment whose record of the key index is used (default: the record "
    f"of this machine). With --remote the deployment does the work (default: {DEFAULT_STACK})",
)
everywhere = together(reporting, where)
"""The options of every command, which are allowed before a command, too."""
