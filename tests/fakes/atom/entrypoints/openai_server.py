"""Stand-in for ATOM's OpenAI server: reads its command line as the real one does, and serves nothing.

PYTHONPATH=tests/fakes python3 -m atom.entrypoints.openai_server --model M -tp 8

The parser is built with argparse from `atom/options.json`, in the way ATOM builds its own. A bad line ends with
argparse's own words and status 2. What a good line leads to is decided by variables:

FAKE_ATOM_RECORD     file that gets a JSON record of the process: arguments, environment, pids, limits, signal masks
FAKE_ATOM_MODE       `exit:N` (end with status N), `serve` (live until SIGTERM), default `exit:0`;
                     `parse-lines`: read JSON lists of words from stdin, answer each with a line of JSON (see below)
FAKE_ATOM_TERM_CODE  status after SIGTERM in mode `serve`, default 0
FAKE_ATOM_DATE       YYYY-MM-DD: have the options that main had on that day

`parse-lines` first prints {"version": [3, 11, 7], "defaults": {dest: value}}, then for each line of input one of
{"ok": true, "values": {dest: value that is not the default}}, {"ok": false, "error": "..."} and
{"ok": false, "help": true}. Values are [type, text] with type int, float, str, bool, json or list, or null.

Standard library only.
"""

import argparse
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

FACTS = Path(__file__).resolve().parent.parent / "options.json"
TYPES = {"int": int, "float": float, "str": str, "choice": str, "json": json.loads}


class FlexibleArgumentParser(argparse.ArgumentParser):
    """Gives every long option its dash/underscore twin. Argument groups bypass this method, so theirs get none."""

    def add_argument(self, *names, **settings):
        twins = []
        for name in names:
            body = name[2:]
            if name.startswith("--") and ("_" in body or "-" in body):
                twin = "--" + (body.replace("_", "-") if "_" in body else body.replace("-", "_"))
                if twin not in names and twin not in twins:
                    twins.append(twin)
        return super().add_argument(*names, *twins, **settings)


def as_of(option, date):
    """The option with the form and spellings it had on a day, or None."""
    spellings = [spelling for spelling in option["spellings"] if spelling[2] <= date]
    if option["since"] > date or not spellings:
        return None
    for earlier in option["earlier"]:
        if date < earlier["until"]:
            return {**option, **earlier, "spellings": spellings}
    return {**option, "spellings": spellings}


def settings_of(option):
    """Arguments of add_argument for an option."""
    settings = {"dest": option["dest"], "default": option["default"]}
    settings["help"] = option["content"] or f"sets {option['dest']}; a long text so that it is wrapped, 100%% of it"
    if option["arity"] == "none":
        return {**settings, "action": "store_true"}
    if option["arity"] == "boolean-pair":
        return {**settings, "action": argparse.BooleanOptionalAction}
    settings["type"] = TYPES[option["type"]]
    if option["choices"]:
        settings["choices"] = option["choices"]
    if option["arity"] == "optional":
        settings |= {"nargs": "?", "const": option["bare"]}
    return settings


def build_parser(parser_class=FlexibleArgumentParser, date=None):
    facts = json.loads(FACTS.read_text())
    if date:
        parser_class = type("Dated", (parser_class,), {"add_argument": argparse.ArgumentParser.add_argument})
    parser = parser_class(description="Stand-in for ATOM's server.")
    groups = {}
    for option in facts["options"]:
        if option["dest"] == "help":
            continue
        kinds = ("declared",)
        if date:
            # The spellings of that day as they are: the rule for twins is younger than some of them.
            option, kinds = as_of(option, date), ("declared", "twin")
            if option is None:
                continue
        title = option["group"]
        if title and title not in groups:
            groups[title] = parser.add_argument_group(title)
        container = groups.get(title, parser)
        names = [text for text, kind, _ in option["spellings"] if kind in kinds]
        container.add_argument(*names, **settings_of(option))
    return parser


def typed(value):
    if value is None:
        return None
    for name, kind in (("bool", bool), ("int", int), ("float", float), ("str", str)):
        if isinstance(value, kind):
            return [name, str(value)]
    return ["list", str(value)]


def parse_lines():
    class Stop(Exception):
        pass

    class Parser(FlexibleArgumentParser):
        def error(self, message):
            raise Stop({"ok": False, "error": message})

        def print_help(self, file=None):
            raise Stop({"ok": False, "help": True})

    parser = build_parser(Parser, os.environ.get("FAKE_ATOM_DATE"))
    kinds = {action.dest: action.type for action in parser._actions}
    defaults = vars(parser.parse_args([]))
    print(json.dumps({"version": list(sys.version_info[:3]), "defaults": {k: typed(v) for k, v in defaults.items()}}))
    for line in sys.stdin:
        try:
            values = vars(parser.parse_args(json.loads(line)))
        except Stop as stop:
            print(json.dumps(stop.args[0]))
            continue
        changed = {}
        for dest, value in values.items():
            if value is defaults[dest] or typed(value) == typed(defaults[dest]):
                continue
            if kinds[dest] is json.loads and value != []:
                changed[dest] = ["json", json.dumps(value)]
            else:
                changed[dest] = typed(value)
        print(json.dumps({"ok": True, "values": changed}))


def record(path):
    """Write what this process is, all at once, so that a reader never sees half of it."""
    environ = {}
    for pair in Path("/proc/self/environ").read_bytes().split(b"\0"):
        name, equals, value = pair.partition(b"=")
        if equals:
            environ[os.fsdecode(name)] = os.fsdecode(value)
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    facts = {
        "argv": sys.argv[1:],
        "orig_argv": sys.orig_argv,
        "environ": environ,
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "pgid": os.getpgrp(),
        "sid": os.getsid(0),
        "cwd": os.getcwd(),
        "nofile": {"soft": soft, "hard": hard},
        "SigBlk": status["SigBlk"].strip(),
        "SigIgn": status["SigIgn"].strip(),
    }
    unfinished = f"{path}.{os.getpid()}"
    Path(unfinished).write_text(json.dumps(facts))
    os.replace(unfinished, path)


def main():
    mode = os.environ.get("FAKE_ATOM_MODE") or "exit:0"
    if mode == "parse-lines":
        return parse_lines()
    build_parser(date=os.environ.get("FAKE_ATOM_DATE")).parse_args()
    if mode == "serve":
        status = int(os.environ.get("FAKE_ATOM_TERM_CODE") or 0)
        signal.signal(signal.SIGTERM, lambda *_: os._exit(status))
    if os.environ.get("FAKE_ATOM_RECORD"):
        record(os.environ["FAKE_ATOM_RECORD"])
    if mode == "serve":
        print("serving", flush=True)
        while True:
            time.sleep(3600)
    kind, _, status = mode.partition(":")
    if kind != "exit" or not status.isdigit():
        raise SystemExit(f"FAKE_ATOM_MODE is `{mode}`: expected exit:N, serve or parse-lines")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
