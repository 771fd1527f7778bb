#!/usr/bin/env python3
"""srun as pyxis extends it, without containers: takes pyxis's options and no others, judges their values as pyxis does, then runs
the real srun (the next one in PATH) without them. What the step is to run must be visible in the container."""

import os
import re
import shutil
import sys

VALUES = ("image", "mounts", "workdir", "name", "save", "env")
FLAGS = {"ro", "rw", "nosuid", "nodev", "noexec", "private", "rprivate", "shared", "rshared", "slave", "rslave"}
SWITCHES = ("mount-home", "remap-root", "entrypoint")


def die(text):
    sys.exit("srun: error: pyxis: " + text)


def mounts(text):
    """(source, target) of SRC[:DST[:FLAGS]][,…]. Neither part can hold a comma or a colon."""
    for one in text.split(","):
        source, *rest = one.split(":", 2)
        target = rest[0] if rest else source
        if not source or not target:
            die("--container-mounts: invalid format: " + one)
        if not re.match(r"[./]|tmpfs$|umount$", source):
            die("mount source must be a relative path, an absolute path, tmpfs or umount: " + one)
        if not re.match(r"[./]", target):
            die("mount target must be a relative path or an absolute path: " + one)
        if not set(rest[1].split("+") if rest[1:] else []) <= FLAGS:
            die("unknown mount flags: " + one)
        if source.startswith("/") and not os.path.exists(source):
            die("no such file or directory: " + source)
        yield source, target


def main():
    words, given = sys.argv[1:], {}
    kept = []
    # All options of our scripts have their value in the same word.
    while words and words[0].startswith("-"):
        word = words.pop(0)
        found = re.fullmatch(r"--(no-)?container-([a-z-]+)(?:=(.*))?", word)
        if not found:
            kept.append(word)
            continue
        no, name, value = found.groups()
        if name in VALUES and not no:
            if not value:
                die("--container-%s: argument required" % name)
        elif not (value is None and (name in SWITCHES or not no and name in ("writable", "readonly", "entrypoint-log"))):
            sys.exit("srun: unrecognized option '%s'" % word)
        if given.setdefault(name, (no, value)) != (no, value):
            die("--container-%s specified multiple times" % name)
    if given:
        if "image" not in given and "name" not in given:
            die("--container-image or --container-name is needed")
        seen = [target for _, target in mounts(given.get("mounts", ("", ""))[1])] if "mounts" in given else []
        for path in (given.get("workdir", ("", "/"))[1], words[0]):
            if path != "/" and not any(path == target or path.startswith(target.rstrip("/") + "/") for target in seen):
                die("not in the container: " + path)
        if "workdir" in given:
            kept.append("--chdir=" + given["workdir"][1])
        with open(os.path.join(os.environ["STANDIN_DIR"], "pyxis"), "a") as handle:
            handle.write("%s\n" % sorted(given))
    here = os.path.dirname(os.path.abspath(sys.argv[0]))
    path = [folder for folder in os.environ["PATH"].split(":") if os.path.abspath(folder) != here]
    real = shutil.which("srun", path=":".join(path))
    os.execv(real, [real, *kept, *words])


main()
