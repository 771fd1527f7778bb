#!/usr/bin/env python3
"""ATOM's server or router as far as a job on SLURM sees them; which of the two, its own arguments say.

As a server (`-m atom.entrypoints.openai_server …`) it listens on its node's own address (SLURMD_NODENAME, else ATOM_HOST_IP),
as a router (`launch …`) on the host of its first --prefill: both are told 0.0.0.0, but all nodes of a test share one machine.

STANDIN_DIR  where it leaves `argv-<name>.json`, `pid-<name>`; <name> is server-<port>-<node> or router-<node>
             and where it looks for `crash-<name>`, which holds an exit code: it ends with that (before it is ready when
             the file is there from the start), for `slow-<name>`: not ready while that is there, and for
             `no-engine`: a server leaves no process behind
Standard library only; ends by itself after five minutes whatever happens.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.parse

WORDS = sys.argv[1:]
DIR = os.environ["STANDIN_DIR"]
NODE = os.environ.get("SLURMD_NODENAME") or os.environ.get("NODE_RANK", "x")


def option(name):
    return WORDS[WORDS.index(name) + 1]


def place():
    if "atom.entrypoints.openai_server" in WORDS:
        port = int(option("--server-port"))
        return "server-%d-%s" % (port, NODE), os.environ.get("SLURMD_NODENAME") or os.environ["ATOM_HOST_IP"], port
    url = urllib.parse.urlsplit(option("--prefill"))
    return "router-%s" % NODE, url.hostname, int(option("--port"))


def write(name, text):
    path = os.path.join(DIR, name)
    with open("%s.%d" % (path, os.getpid()), "w") as handle:
        handle.write(text)
    os.rename("%s.%d" % (path, os.getpid()), path)


def there(name):
    return os.path.exists(os.path.join(DIR, name))


def crash_when_told(name):
    path = os.path.join(DIR, "crash-" + name)
    if os.path.exists(path):
        with open(path) as handle:
            code = int(handle.read())
        print("RuntimeError: the stand-in was told to crash", flush=True)
        os._exit(code)


def answer(connection, name):
    with connection:
        try:
            data = b""
            while b"\r\n\r\n" not in data:
                chunk = connection.recv(4096)
                if not chunk:
                    return
                data += chunk
            status = 503 if there("slow-" + name) else 200
            body = b'{"data": [{"id": "standin"}], "choices": [{"text": "x"}]}'
            head = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body))
            connection.sendall(head + body)
        except OSError:
            pass


def engine():
    """A process that the server would have to end itself, and that knows nothing of its session."""
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.alarm(300)
        while True:
            time.sleep(60)


def main():
    signal.alarm(300)
    name, host, port = place()
    write("argv-%s.json" % name, json.dumps(sys.argv))
    write("env-%s.json" % name, json.dumps(dict(os.environ)))
    write("pid-%s" % name, str(os.getpid()))
    crash_when_told(name)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os._exit(0))
    if name.startswith("server") and not there("no-engine"):
        engine()
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((socket.gethostbyname(host), port))
    sock.listen(64)
    print("%s listens on %s:%d" % (name, host, port), flush=True)

    def listen():
        while True:
            connection, _ = sock.accept()
            threading.Thread(target=answer, args=(connection, name), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    while True:
        crash_when_told(name)
        time.sleep(0.05)


main()
