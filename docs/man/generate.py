#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the man pages and the bash completion from the command's own tables: docs/man/generate.py build/slotprobe"""
import json
import pathlib
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent

ENVIRONMENT = [
    ("SLOTPROBE_PROBE_PATH", "folders, separated by colons, in which record looks for adapters first"),
    ("NO_COLOR, CLICOLOR_FORCE", "turn colour off, or on even when stdout is no terminal"),
    ("TMPDIR", "where selftest records"),
]

SYNOPSIS = """slotprobe answers one question about a running inference server: is the state that a request hands over for reuse the same with
CUDA graphs on as with CUDA graphs off, and was it really measured? A library, preloaded into the server, fingerprints each slot
of recurrent state as it is handed over. Two recorded runs are lined up slot by slot and found equal, different or not proven."""


def roff(text: str) -> str:
    """Text that troff prints as it stands."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def head(name: str, version: str, summary: str) -> str:
    return (f'.\\" Written by docs/man/generate.py: change the tables in collector/verbs.h and collector/options.h instead.\n'
            f'.TH {name.upper()} 1 "" "slotprobe {version}" "slotprobe"\n.SH NAME\n{roff(name)} \\- {roff(summary)}\n')


def option(o: dict) -> str:
    names = (f"\\fB\\-{o['letter']}\\fR, " if o["letter"] else "") + f"\\fB\\-\\-{roff(o['name'])}\\fR"
    names += f" \\fI{roff(o['metavar'])}\\fR" if o["metavar"] else ""
    text = o["help"] + (f": {o['choices'].replace('/', ', ')}" if o["choices"] else "")
    text += "; may be repeated" if o["many"] else ""
    text += f" (default {o['default']})" if o["default"] else ""
    return f".TP\n{names}\n{roff(text)}\n"


def verb_page(verb: dict, version: str) -> str:
    name = f"slotprobe-{verb['name']}"
    page = head(name, version, verb["help"])
    page += f".SH SYNOPSIS\n\\fBslotprobe {verb['name']}\\fR [\\fIOPTION\\fR]... {roff(verb['operands'])}\n"
    page += ".SH OPTIONS\n" + "".join(option(o) for o in verb["options"])
    page += f".SH EXIT STATUS\n{roff(verb['exits'])}\n.SH SEE ALSO\n\\fBslotprobe\\fR(1)\n"
    return page


def main_page(tables: dict) -> str:
    page = head("slotprobe", tables["version"], "is handed-over state the same with CUDA graphs on and off")
    page += f".SH SYNOPSIS\n\\fBslotprobe\\fR \\fIVERB\\fR [\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...\n.SH DESCRIPTION\n{roff(SYNOPSIS)}\n.SH VERBS\n"
    for verb in tables["verbs"]:
        page += f".TP\n\\fBslotprobe\\-{verb['name']}\\fR(1)\n{roff(verb['help'])}\n"
    page += ".SH ENVIRONMENT\n" + "".join(f".TP\n\\fB{roff(name)}\\fR\n{roff(text)}\n" for name, text in ENVIRONMENT)
    page += ".SH EXIT STATUS\nEach verb has its own: see its page. Wrong usage is 2, and 125 for record.\n"
    return page + ".SH SEE ALSO\n" + ",\n".join(f"\\fBslotprobe\\-{v['name']}\\fR(1)" for v in tables["verbs"]) + "\n"


def completion(tables: dict) -> str:
    out = ["# SPDX-License-Identifier: Apache-2.0", "# Written by docs/man/generate.py from the command's tables.", "# shellcheck shell=bash disable=SC2207",
           "_slotprobe() {", '\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} options="" values=""',
           "\tif ((COMP_CWORD == 1)); then",
           f'\t\tCOMPREPLY=($(compgen -W "{" ".join(v["name"] for v in tables["verbs"])} --help --version" -- "$cur"))', "\t\treturn", "\tfi",
           "\tcase $verb in"]
    for verb in tables["verbs"]:
        names = [f"--{o['name']}" for o in verb["options"]] + [f"-{o['letter']}" for o in verb["options"] if o["letter"]]
        out += [f"\t{verb['name']})", f'\t\toptions="{" ".join(names)}"', "\t\tcase $prev in"]
        for o in verb["options"]:
            if o["choices"]:
                out.append(f"\t\t--{o['name']}) values=\"{o['choices'].replace('/', ' ')}\" ;;")
        out += ["\t\t*) ;;", "\t\tesac", "\t\t;;"]
    out += ["\t*) ;;", "\tesac", '\tif [[ -n $values ]]; then', '\t\tCOMPREPLY=($(compgen -W "$values" -- "$cur"))',
            '\telif [[ $cur == -* ]]; then', '\t\tCOMPREPLY=($(compgen -W "$options" -- "$cur"))', "\telse",
            '\t\tCOMPREPLY=($(compgen -f -- "$cur"))', "\tfi", "}", "complete -o filenames -F _slotprobe slotprobe", ""]
    return "\n".join(out)


def pages(command: str) -> dict:
    """Path under docs/ and text of every file that is made."""
    tables = json.loads(subprocess.run([command, "--dump-options"], capture_output=True, check=True).stdout)
    made = {"man/slotprobe.1": main_page(tables), "completions/slotprobe.bash": completion(tables)}
    for verb in tables["verbs"]:
        made[f"man/slotprobe-{verb['name']}.1"] = verb_page(verb, tables["version"])
    return made


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: docs/man/generate.py COMMAND")
    for path, text in pages(sys.argv[1]).items():
        (DOCS / path).parent.mkdir(exist_ok=True)
        (DOCS / path).write_text(text)
