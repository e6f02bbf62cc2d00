#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the man pages, the bash completion and docs/errors.md from the command's own tables: docs/man/generate.py build/slotprobe"""
import json
import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent

ENVIRONMENT = [
    ("SLOTPROBE_PROBE_PATH", "folders, separated by colons, in which record looks for adapters first"),
    ("NO_COLOR, CLICOLOR_FORCE", "turn colour off, or on even when stdout is no terminal"),
    ("TMPDIR", "where selftest records, instead of /tmp, and where check keeps what finds no memory in a file without a name, instead of /var/tmp"),
    ("SLOTPROBE_API_KEY", "the key that doctor --url gives to the server, where that wants one"),
    ("SLOTPROBE_CHECK_MEMORY", "a SIZE: what check may take for that before it goes to the file, instead of 128M; the file leaves 3G of its disk free, or SLOTPROBE_MIN_FREE"),
]

BY_HAND = """A server that cannot be started through record is preloaded by hand, with these variables; record sets them itself and takes
none of them over. Without SLOTPROBE_DIR the library is inert:"""

BY_HAND_VARIABLES = [
    ("LD_PRELOAD", "libslotprobe.so first, then the adapters (NAME.so), then whatever else"),
    ("SLOTPROBE_DIR", "the run: a folder; the first process creates it and its run.json when they are not there"),
    ("SLOTPROBE_ARM", "as --arm: graph-on, graph-off, padded-eager, graph-path-eager, or any other label"),
    ("SLOTPROBE_RECORDING", "1 records from the start, 0 starts paused until 'slotprobe ctl RUN start'"),
    ("SLOTPROBE_LEVEL", "donations or launches"),
    ("SLOTPROBE_PROBES", "names of the adapters' probes, separated by commas: what NAME.points lists"),
    ("SLOTPROBE_WATCH", "slots to be watched, separated by commas"),
    ("SLOTPROBE_LABEL", "the first label of the recording"),
    ("SLOTPROBE_MIN_FREE, SLOTPROBE_MAX_SIZE", "as --min-free and --max-size, a SIZE each"),
    ("SLOTPROBE_KEEP_KEYS", "1: as --keep-keys"),
    ("SLOTPROBE_DEBUG", "1: the library says in one line on stderr whether it records, and where, or with which error it cannot"),
]

SIZES = "A SIZE is an integer, with K, M, G or T behind it for kibi-, mebi-, gibi- or tebibytes (units of 1024): 512M is 536870912 bytes."
EXPECT = """PROBE is a name as 'slotprobe status' shows it, or a glob: * is any text, ? one character, [ab] one of a set. Put it in quotes, or
the shell takes >= for a redirection and * for file names: --expect 'core.*>=1'."""
PAGE = """--format html writes one file that opens in a browser without a network: coverage, verdict, findings with links to their events and call
sites, a map of slots and planes, a timeline, abs-max traces, a table with a filter. Where a run is too large to be drawn whole, the page says
what it left out."""
RUN_FILES = [
    ("RUN/run.json", "the manifest: command, arm, adapters, options, times, exit status"),
    ("RUN/HOST.PID.STARTTIME.log", "what one process recorded"),
    ("RUN/HOST.PID.STARTTIME.ctr", "its counters page, which is live while the process runs"),
]

# verb: (more description, files, examples)
MORE = {
    "record": (
        ["RUN is a new directory; without -o its name is said on stderr.", SIZES,
         "The command gets slotprobe's library and its adapters in front of its LD_PRELOAD, and with --audit slotprobe's auditor in front of its "
         "LD_AUDIT. A launcher that resets the environment (sudo, env -i, a container) loses them: put record behind it. A library that is "
         "opened with RTLD_DEEPBIND is bound past every preload; where that happens diff says bypassed_object, and --audit reaches it."],
        RUN_FILES,
        [("Record a server with CUDA graphs off, then on:", ["slotprobe record -o off --arm graph-off -- ./server --no-graphs",
                                                            "slotprobe record -o on --arm graph-on -- ./server"]),
         ("Record only what happens after the server is warm:", ["slotprobe record -o on --arm graph-on --paused -- ./server &",
                                                               "until slotprobe ctl on start; do sleep 1; done  # fails until the server uses CUDA"])]),
    "status": (
        ["Damage that it meets is said in one line on stderr; 'slotprobe verify' says more. The log of a living process is looked at only "
         "while it is short."], RUN_FILES, [("Look at a running server again every second:", ["slotprobe status --watch on"])]),
    "ctl": (
        ["It writes a control word into the page of every process of the run that lives on this host, and waits up to two seconds until the "
         "process has obeyed. The words are:",
         ("start", "record from now on; what a paused recording left out is counted as filtered"),
         ("stop", "pause: hooks stay in place, and every attempt is counted as filtered"),
         ("label TEXT", "put TEXT, at most 63 bytes, into the log and the page: a mark that says what happens from here on"),
         ("level L", "donations: what is handed over; launches: each graph launch as well"),
         ("flush", "write out what has been measured up to now, so that a reader sees it")], RUN_FILES,
        [("Mark a phase and see what it recorded:", ["slotprobe ctl on label 'after warm-up'", "slotprobe ctl on flush",
                                                      "slotprobe status on"])]),
    "report": ([PAGE], RUN_FILES, [("Read one run:", ["slotprobe report on | less"]),
                                   ("As a page to hand on:", ["slotprobe report --format html -o on.html on"])]),
    "check": ([PAGE, EXPECT], RUN_FILES, [("Hold a run against itself:", ["slotprobe check --expect 'core.donate>=100' on"])]),
    "diff": (
        ["What the verdicts, reasons and explanations mean is in docs/reading-verdicts.md of the source. A run cannot be compared with itself; "
         "two runs of one arm can.", PAGE, EXPECT], RUN_FILES,
        [("Compare two arms, for people, for a script, and as a page to hand on:", [
            "slotprobe diff off on", "slotprobe diff --json -o verdict.json off on", "slotprobe diff --format html -o verdict.html off on"]),
         ("Slot 0 of one pool may be missing:", ["slotprobe diff --allow-missing '/mamba/0$' off on"])]),
    "verify": (
        ["What was in flight when a process was killed is lost. It is printed, and the run is still whole when log and counters agree on it: "
         "that a needed measurement is missing is for check and diff to say.", EXPECT], RUN_FILES,
        [("Did every probe of an adapter fire:", ["slotprobe verify --expect 'srv.*>=1' on"])]),
    "selftest": (["Where the libcuda.so.1 that the loader finds is slotprobe's own CPU stand-in, auto tests as cpu does, and cuda fails."], [],
                 [("Show that this machine can find a difference:", ["slotprobe selftest"])]),
    "export": (
        ["Columns and fields keep their name and type; new ones are added at the end. Times (t_ns, t_real_ns) are plain integers of nanoseconds, "
         "which can exceed 9007199254740992 (2 to the 53rd): read them with a parser that keeps 64-bit integers. Hashes, keys, addresses, "
         "handles and a step's value can be any 64 bits and are hex strings. docs/fleet.md of the source has queries.",
         ("jsonl", "one object a line: first the run, then of each process its counters (types probe and counter) and the records of its log in "
                   "order, each with its type. A name has one type in all lines. NaN and infinities are the strings NaN, Infinity, -Infinity."),
         ("csv", "one row an event, with what was measured of its slot; a cell that was not measured is empty."),
         ("perfetto", "a trace in Perfetto's own format, for ui.perfetto.dev: of each slot a track with its spans from allocation to free, "
                      "its donations and restores and what was measured of them, and its abs-max; of each process its steps and graph launches.")],
        RUN_FILES,
        [("The donations as a table:", ["slotprobe export --format csv on | grep donate"]),
         ("A trace:", ["slotprobe export --format perfetto -o on.pftrace on"])]),
    "doctor": (
        ["Its checks, each with a remedy where one is needed:",
         ("driver, ptx", "is there a CUDA driver, does it work, does it take slotprobe's device code"),
         ("library, preload", "can slotprobe be preloaded, and beside what LD_PRELOAD holds already"),
         ("command", "is the command's program dynamically linked, without setuid and file capabilities"),
         ("launcher", "does the command hand on what record gives: sudo, doas, pkexec, su, env -i, ssh, systemd-run and containers do not; "
          "python -E and -I overlook PYTHONPATH, so that adapters in Python are lost, and the preload is not"),
         ("audit", "does record --audit work, which reaches libraries opened with RTLD_DEEPBIND"),
         ("libunwind, disk, permissions", "can call sites be taken, is there room, can a run be made here")], [],
        [("Before recording a server:", ["slotprobe doctor -- ./server"]),
         ("While an SGLang server runs:", ["slotprobe doctor --url http://127.0.0.1:30000 --run on --concurrency 4 --tokens 512"])]),
}

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


def entry(name: str, text: str) -> str:
    return f".TP\n\\fB{roff(name)}\\fR\n{roff(text)}\n"


def example(text: str, lines: list) -> str:
    return f".PP\n{roff(text)}\n.PP\n.nf\n" + "".join(roff("    " + line) + "\n" for line in lines) + ".fi\n"


def verb_page(verb: dict, version: str) -> str:
    name = f"slotprobe-{verb['name']}"
    page = head(name, version, verb["help"])
    page += f".SH SYNOPSIS\n\\fBslotprobe {verb['name']}\\fR [\\fIOPTION\\fR]... {roff(verb['operands'])}\n"
    about, files, examples = MORE[verb["name"]]
    if about:
        page += ".SH DESCRIPTION\n" + "".join(entry(*a) if isinstance(a, tuple) else f".PP\n{roff(a)}\n" for a in about)
    page += ".SH OPTIONS\n" + "".join(option(o) for o in verb["options"])
    page += f".SH EXIT STATUS\n{roff(verb['exits'])}\n"
    if files:
        page += ".SH FILES\n" + "".join(entry(*f) for f in files)
    page += ".SH EXAMPLES\n" + "".join(example(*e) for e in examples)
    return page + ".SH SEE ALSO\n\\fBslotprobe\\fR(1)\n"


def main_page(tables: dict) -> str:
    page = head("slotprobe", tables["version"], "is handed-over state the same with CUDA graphs on and off")
    page += f".SH SYNOPSIS\n\\fBslotprobe\\fR \\fIVERB\\fR [\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...\n.SH DESCRIPTION\n{roff(SYNOPSIS)}\n.SH VERBS\n"
    for verb in tables["verbs"]:
        page += f".TP\n\\fBslotprobe\\-{verb['name']}\\fR(1)\n{roff(verb['help'])}\n"
    page += entry("slotprobe help [VERB]", "the same as --help")
    page += ".SH ENVIRONMENT\n" + "".join(entry(*e) for e in ENVIRONMENT) + f".PP\n{roff(BY_HAND)}\n"
    page += "".join(entry(*e) for e in BY_HAND_VARIABLES) + f".PP\n{roff(SIZES)}\n"
    page += ".SH FILES\n" + "".join(entry(*f) for f in RUN_FILES)
    page += ".SH EXAMPLES\n" + example("Record a server twice with the same requests, and compare:", [
        "slotprobe record -o off --arm graph-off -- ./server --no-graphs", "slotprobe record -o on --arm graph-on -- ./server",
        "slotprobe diff off on"])
    page += example("Without record:", ["LD_PRELOAD=/usr/local/lib/slotprobe/libslotprobe.so SLOTPROBE_DIR=on SLOTPROBE_ARM=graph-on ./server"])
    page += ".SH EXIT STATUS\nEach verb has its own: see its page. Wrong usage is 2, and 125 for record.\n"
    return page + ".SH SEE ALSO\n" + ",\n".join(f"\\fBslotprobe\\-{v['name']}\\fR(1)" for v in tables["verbs"]) + "\n"


def choices_built(o: dict) -> str:
    """The choices of an option, without those that its help says are not built."""
    return " ".join(c for c in o["choices"].split("/") if c not in re.findall(r"(\w+) is not built yet", o["help"]))


def completion(tables: dict) -> str:
    out = ["# SPDX-License-Identifier: Apache-2.0", "# Written by docs/man/generate.py from the command's tables.", "# shellcheck shell=bash disable=SC2207",
           "_slotprobe() {", '\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} options="" values=""',
           "\tif ((COMP_CWORD == 1)); then",
           f'\t\tCOMPREPLY=($(compgen -W "{" ".join(v["name"] for v in tables["verbs"])} help --help --version" -- "$cur"))', "\t\treturn", "\tfi",
           "\tcase $verb in"]
    for verb in tables["verbs"]:
        built = [o for o in verb["options"] if "(not built yet)" not in o["help"]]
        names = [f"--{o['name']}" for o in built] + [f"-{o['letter']}" for o in built if o["letter"]]
        out += [f"\t{verb['name']})", f'\t\toptions="{" ".join(names)}"', "\t\tcase $prev in"]
        for o in built:
            if o["choices"]:
                out.append(f"\t\t--{o['name']}) values=\"{choices_built(o)}\" ;;")
        out += ["\t\t*) ;;", "\t\tesac", "\t\t;;"]
    out += ["\thelp)", f'\t\tvalues="{" ".join(v["name"] for v in tables["verbs"])}"', "\t\t;;"]
    out += ["\t*) ;;", "\tesac", '\tif [[ -n $values ]]; then', '\t\tCOMPREPLY=($(compgen -W "$values" -- "$cur"))',
            '\telif [[ $cur == -* ]]; then', '\t\tCOMPREPLY=($(compgen -W "$options" -- "$cur"))', "\telse",
            '\t\tCOMPREPLY=($(compgen -f -- "$cur"))', "\tfi", "}", "complete -o filenames -F _slotprobe slotprobe", ""]
    return "\n".join(out)


CLASSES = [
    ("invalid", "The comparison is void", "Exit status 3, whatever differs: the two runs do not answer the question."),
    ("broken", "A difference, or a broken invariant", "Exit status 1."),
    ("unproven", "Not proven", "Exit status 3, if nothing of the classes above was found: something was not measured, was lost, or cannot be vouched for."),
]


def errors(tables: dict) -> str:
    page = """# Reasons

<!-- Written by docs/man/generate.py from the table in collector/reasons.h: change that instead. -->

Every verdict but *equal* comes with reasons: a code, what was found, and what to do. `--json` has them in `reasons`. This page lists all
codes; [reading-verdicts.md](reading-verdicts.md) says how to read a verdict as a whole. Which class a reason has decides the exit status;
trouble with a file or a command line (2) has no code, but one line on stderr.
"""
    for name, title, text in CLASSES:
        page += f"\n## {title}\n\n{text}\n"
        for reason in tables["reasons"]:
            if reason["class"] == name:
                page += f"\n### {reason['code']}\n\n{reason['text'][0].upper()}{reason['text'][1:]}.\n\nWhat to do: {reason['remedy']}.\n"
    return page


def pages(command: str) -> dict:
    """Path under docs/ and text of every file that is made."""
    tables = json.loads(subprocess.run([command, "--dump-options"], capture_output=True, check=True).stdout)
    made = {"man/slotprobe.1": main_page(tables), "completions/slotprobe.bash": completion(tables), "errors.md": errors(tables)}
    for verb in tables["verbs"]:
        made[f"man/slotprobe-{verb['name']}.1"] = verb_page(verb, tables["version"])
    return made


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: docs/man/generate.py COMMAND")
    for path, text in pages(sys.argv[1]).items():
        (DOCS / path).parent.mkdir(exist_ok=True)
        (DOCS / path).write_text(text)
