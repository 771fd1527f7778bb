#!/usr/bin/env python3
"""Write tests/data/recorded.json: what the old script executed for many job environments, in a form that a repository can carry.

    scripts/compact-recorded.py RECORDED FACTS > tests/data/recorded.json

RECORDED has the full records, FACTS the tables of models that the script's two versions read. Kept are the environment of each job, the
server's and the router's argv, and the variables that the server saw changed. What most cases have in common stands once, under "base";
a case lists its differences, with null for what it lacks. A long word that occurs often stands in "words", and "@N" in an argv means
the N-th of them. One line a case, so that a change of one is one line in a diff.
"""

import collections
import json
import sys

LONG = 40


def compact(value):
    """JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def most_common(dicts):
    """The pairs that more than half of the dictionaries have."""
    dicts = list(dicts)
    counts = collections.Counter(pair for one in dicts for pair in one.items())
    return {name: value for (name, value), count in sorted(counts.items()) if count * 2 > len(dicts)}


def difference(base, one):
    """What to change in the base to get the other; null takes away."""
    gone = {name: None for name in base if name not in one}
    return {**{name: value for name, value in one.items() if base.get(name) != value}, **gone}


def main():
    """Read both files, print the compact one."""
    with open(sys.argv[1], encoding="utf-8") as source:
        cases = json.load(source)["cases"]
    with open(sys.argv[2], encoding="utf-8") as source:
        facts = json.load(source)
    argvs = [case[key] for case in cases for key in ("argv_server", "argv_router") if key in case]
    counts = collections.Counter(word for argv in argvs for word in argv if len(word) > LONG)
    words = [word for word, count in counts.most_common() if count > 1]
    index = {word: f"@{number}" for number, word in enumerate(words)}
    base = {
        "env": most_common(case["env"] for case in cases),
        "exported": most_common(case["exported_env"] for case in cases if "exported_env" in case),
    }
    lines = []
    for case in cases:
        line = {"name": case["name"], "env": difference(base["env"], case["env"])}
        if case["script_version"].startswith("a07ef9310"):
            line["table"] = "first"
        for key in ("models_yaml", "cwd_files"):
            if case.get(key) is not None:
                line[key] = case[key]
        for key in ("argv_server", "argv_router"):
            if key in case:
                assert not any(word.startswith("@") for word in case[key]), case["name"]
                line[key.removeprefix("argv_")] = [index.get(word, word) for word in case[key]]
        if "exported_env" in case:
            line["exported"] = difference(base["exported"], case["exported_env"])
        lines.append(compact(line))
    tables = {name: facts[name] for name in ("current", "first")}
    head = [f'"tables":{compact(tables)}', f'"words":{compact(words)}', f'"base":{compact(base)}']
    print("{" + ",\n".join(head) + ',\n"cases":[\n' + ",\n".join(lines) + "\n]}")


main()
