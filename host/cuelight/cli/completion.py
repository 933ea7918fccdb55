"""`cuelight completion`: scripts for shells, made from the parser itself."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from cuelight.cli.arguments import build_parser
from cuelight.engine.weights import MODELS
from cuelight.tiers import TIERS

__all__ = ["run_completion"]

WORDS = {"TIER": tuple(TIERS), "MODEL": tuple(MODELS), "CACHED": tuple(MODELS), "URI": ("twin", "pcie")}
"""By metavar, words that may stand there."""

PATHS = {"FILE": "file", "FOLDER": "folder", "MODEL": "file"}
"""By metavar, paths that may."""


@dataclass(frozen=True, slots=True)
class Slot:
    """An option or a positional argument."""

    options: tuple[str, ...]
    """Empty: positional."""
    help: str
    metavar: str | None
    """None: takes no value."""
    words: tuple[str, ...]
    path: str | None
    many: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or an action of one."""

    words: tuple[str, ...]
    """What leads to it, without `cuelight`."""
    slots: tuple[Slot, ...]
    commands: tuple[tuple[str, str], ...]
    """Names and helps of those below it."""

    @property
    def options(self) -> list[Slot]:
        """Its options."""
        return [slot for slot in self.slots if slot.options]

    @property
    def positionals(self) -> list[Slot]:
        """Its positional arguments."""
        return [slot for slot in self.slots if not slot.options]


def run_completion(arguments: argparse.Namespace) -> None:
    """Print a shell's script."""
    commands = list(_walk(build_parser(), ()))
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](commands), end="")


def _walk(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[Command]:
    slots, commands, below = [], [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands = [(one.dest, one.help or "") for one in action._choices_actions]
            below = list(action.choices.items())
        else:
            slots.append(_slot(action))
    yield Command(words, tuple(slots), tuple(commands))
    for name, one in below:
        yield from _walk(one, (*words, name))


def _slot(action: argparse.Action) -> Slot:
    metavar = None if action.nargs == 0 else str(action.metavar or action.dest)
    words = tuple(map(str, action.choices)) if action.choices else WORDS.get(metavar or "", ())
    return Slot(
        options=tuple(action.option_strings),
        help=re.sub(r" \((default|no effect): .*", "", action.help or ""),
        metavar=metavar,
        words=words,
        path=PATHS.get(metavar or ""),
        many=action.nargs in ("*", "+") or isinstance(action, argparse._AppendAction),
    )


def _bash(commands: list[Command]) -> str:
    steps, values, words = [], [], []
    for command in commands:
        path = " ".join(command.words)
        for name, _ in command.commands:
            steps.append(f'            "{path} {name}") command="{f"{path} {name}".strip()}" ;;')
        for slot in command.options:
            if slot.metavar is not None:
                patterns = "|".join(f'"{path} {option}"' for option in slot.options)
                values.append(f"        {patterns}) {_bash_values(slot)}; return ;;")
        names = [name for name, _ in command.commands] + [word for slot in command.positionals for word in slot.words]
        options = [option for slot in command.options for option in slot.options]
        files = next((f"; _cuelight_{slot.path}" for slot in command.positionals if slot.path), "")
        words.append(
            f'        "{path}") if [[ $current == -* ]]; then _cuelight_words "{" ".join(options)}"; '
            f'else _cuelight_words "{" ".join(names)}"{files}; fi ;;'
        )
    return "\n".join(
        [
            "# bash completion for cuelight; made by `cuelight completion bash`.",
            '_cuelight_words() { COMPREPLY+=($(compgen -W "$1" -- "$current")); }',
            "_cuelight_paths() {",
            "    local path",
            "    compopt -o filenames 2>/dev/null",
            '    while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen "$1" -- "$current")',
            "}",
            "_cuelight_file() { _cuelight_paths -f; }",
            "_cuelight_folder() { _cuelight_paths -d; }",
            "_cuelight() {",
            '    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command="" word',
            "    COMPREPLY=()",
            "    # The shell parts --option=value at the sign.",
            "    if [[ $current == = ]]; then current=",
            "    elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi",
            '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            '        case "$command $word" in',
            *steps,
            "        esac",
            "    done",
            '    case "$command $before" in',
            *values,
            "    esac",
            '    case "$command" in',
            *words,
            "    esac",
            "}",
            "complete -F _cuelight cuelight",
            "",
        ]
    )


def _bash_values(slot: Slot) -> str:
    parts = [f'_cuelight_words "{" ".join(slot.words)}"'] if slot.words else []
    return "; ".join(parts + ([f"_cuelight_{slot.path}"] if slot.path else [])) or ":"


def _zsh(commands: list[Command]) -> str:
    lines = ["#compdef cuelight", "# zsh completion for cuelight; made by `cuelight completion zsh`."]
    for command in reversed(commands):
        specs = [_zsh_spec(slot) for slot in command.slots]
        lines.append(f"{_zsh_name(command.words)}() {{")
        if command.commands:
            names = " ".join(shlex.quote(f"{name}:{text}") for name, text in command.commands)
            lines += [
                "    local context state state_descr line",
                "    typeset -A opt_args",
                f"    local -a commands=({names})",
                f"    _arguments -C {' '.join(specs)} '1:command:->command' '*::argument:->argument'",
                "    case $state in",
                "        command) _describe -t commands command commands ;;",
                "        argument)",
                "            case $line[1] in",
                *(f"                {name}) {_zsh_name((*command.words, name))} ;;" for name, _ in command.commands),
                "            esac ;;",
                "    esac",
            ]
        else:
            lines.append(f"    _arguments -s {' '.join(specs)}")
        lines.append("}")
    lines += ['if [ "$funcstack[1]" = "_cuelight" ]; then _cuelight "$@"; else compdef _cuelight cuelight; fi', ""]
    return "\n".join(lines)


def _zsh_name(words: tuple[str, ...]) -> str:
    return "_".join(("_cuelight", *words))


def _zsh_spec(slot: Slot) -> str:
    value = f":{slot.metavar}:{_zsh_values(slot)}" if slot.metavar is not None else ""
    if not slot.options:
        return shlex.quote(f"{'*' if slot.many else ''}{value}")
    text = slot.help.replace("[", "\\[").replace("]", "\\]")
    exclude = "" if slot.many else f"({' '.join(slot.options)})"
    specs = [shlex.quote(f"{'*' if slot.many else exclude}{option}[{text}]{value}") for option in slot.options]
    return " ".join(specs)


def _zsh_values(slot: Slot) -> str:
    paths = {"file": "_files", "folder": "_files -/", None: ""}[slot.path]
    words = f"({' '.join(slot.words)})" if slot.words else ""
    if words and paths:
        return f'{{_alternative "words:{slot.metavar}:{words}" "files:file:{paths}"}}'
    return words or paths or " "


def _fish(commands: list[Command]) -> str:
    lines = ["# fish completion for cuelight; made by `cuelight completion fish`.", "complete -c cuelight -f"]
    names = {command.words: [name for name, _ in command.commands] for command in commands}
    for command in commands:
        seen = [f"__fish_seen_subcommand_from {word}" for word in command.words]
        if names[command.words]:
            seen.append(f"not __fish_seen_subcommand_from {' '.join(names[command.words])}")
        start = f"complete -c cuelight -n {shlex.quote('; and '.join(seen))}"
        lines += [f"{start} -a {name} -d {shlex.quote(text)}" for name, text in command.commands]
        for slot in command.slots:
            options = [f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}" for option in slot.options]
            if slot.options and slot.metavar is not None:
                options.append("-r" if slot.path else "-x")
            if slot.words:
                options.append(f"-a {shlex.quote(' '.join(slot.words))}")
            if slot.path:
                options.append("-F")
            if slot.options:
                lines.append(f"{start} {' '.join(options)} -d {shlex.quote(slot.help)}")
            elif options:
                lines.append(f"{start} {' '.join(options)}")
    return "\n".join([*lines, ""])
