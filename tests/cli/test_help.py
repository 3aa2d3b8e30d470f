"""`--help` of every command: 80 columns, whole plain phrases, one name and one default for an option."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from rlprof.cli.help import Option
from rlprof.cli.main import cli

FORBIDDEN = r"^Of |unless told|may be given again|\[default:|\[x>=|RANGE|\ba step\b|\) \(default"


def commands(
    command: click.Command = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


COMMANDS = [pytest.param(path, command, id=" ".join(path) or "rlprof") for path, command in commands()]


def options_of(command: click.Command) -> list[click.Option]:
    return [option for option in command.params if isinstance(option, click.Option)]


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_help_fits_80_columns(path, command):
    for columns in (80, 200):
        shown = CliRunner().invoke(cli, [*path, "--help"], prog_name="rlprof", env={"COLUMNS": str(columns)})
        assert shown.exit_code == 0
        assert shown.output.startswith(" ".join(("Usage: rlprof", *path)))
        assert max(map(len, shown.output.splitlines())) <= 80


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_every_option_has_a_whole_phrase(path, command):
    for option in options_of(command):
        text = getattr(option, "text", option.help)
        assert re.match(r"[A-Z]", text), f"{option.opts}: {text}"
        assert text.endswith("."), f"{option.opts}: {text}"


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_help_has_no_phrase_that_must_be_guessed(path, command):
    texts = [command.help, *(getattr(option, "text", option.help) for option in options_of(command))]
    for text in texts:
        assert not re.search(FORBIDDEN, text), text


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_an_alias_is_accepted_and_not_shown(path, command):
    text = CliRunner().invoke(cli, [*path, "--help"]).output
    for option in options_of(command):
        for alias in getattr(option, "aliases", ()):
            assert not re.search(rf"{alias}\b", text)
            assert alias in (*option.opts, *option.secondary_opts)


def test_run_help_has_its_groups_and_examples():
    text = CliRunner().invoke(cli, ["run", "--help"]).output
    headings = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    expected = "Recording, Output, Alerts, torch.profiler, Python profilers, Other options, Examples"
    assert ", ".join(headings) == expected


# Options that mean different things in different commands, such as --iterations of a training and of a comparison.
DIFFERENT = {
    "--iterations",
    "--step",
    "--phase",
    "--precision",
    "--output",
    "-o",
    "--tensorboard",
    "--name",
    "--pairs",
    "--port",
}


def test_an_option_has_one_default_and_one_text_in_every_command():
    found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for _, command in commands():
        for option in options_of(command):
            if isinstance(option, Option) and option.group != "Settings" and not option.hidden:
                for flag in set(option.opts) - option.aliases - DIFFERENT:
                    found[flag].add((str(option.default), re.sub(r" \(default.*", "", option.text)))
    several = {flag: texts for flag, texts in found.items() if len(texts) > 1}
    assert set(several) <= {"--format"}  # the formats differ, the rule does not


def test_capture_has_the_options_of_run_without_their_prefix():
    by_path = dict(commands())
    run = {option.name: option for option in options_of(by_path["run",])}
    for option in options_of(by_path["capture",]):
        if option.name not in ("no_wait", "output"):
            twin = run[f"torch_profiler_{option.name}"]
            assert (option.default, option.help, option.metavar) == (twin.default, twin.help, twin.metavar)


def test_output_and_html_mean_the_same_in_every_command():
    """Wherever something is written to a file, -o names it; wherever there is HTML, --html FILE is a short form."""
    written = {("report",), ("analyze",), ("compare",), ("whatif",), ("doctor",), ("export",), ("capture",), ("list",),
               ("stacks",), ("trace", "summary"), ("trace", "diff"), ("trace", "cut")}  # fmt: skip
    for path, command in commands():
        options = {option.name: option for option in options_of(command)}
        assert ("output" in options) == (path in written), path
        if "output" in options:
            assert set(options["output"].opts) == {"--output", "-o"}
            assert options["output"].text.startswith("Write to FILE")
            assert "compressed if it ends with .gz" in options["output"].text
        formats = getattr(getattr(options.get("format_"), "type", None), "choices", ())
        assert ("html" in options) == ("html" in formats), path
