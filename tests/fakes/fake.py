"""A server, router or workload that behaves as a test wants: `fake.py '{"port": 8000, ...}'`.

Words: address, port            where to listen (never, when `port` is missing or null)
       ready                    path of a file: /health and the like answer 200 once it is there ("" = at once)
       closed                   do not listen until then (else: listen and answer `not_ready`, default 503)
       pages                    {path: status} that hold whatever the time
       started                  path of a file that is made at the start, with the process id in it
       fault, when              what goes wrong, and the file that brings it ("" = at once, "term" = when told to end)
       signals                  path of a file that lists the signals that came
       on_term                  exit code for TERM (default 0), or "ignore"
       orphan, setsid           processes that are left behind, the second in a session of their own
       engine                   path of a file: a process that only waits; its id is put there
       lines, bytes, flood_mb   output
       chatter                  [count, length, piece]: so many lines of this length, written in pieces of so many bytes
       reads_stdin              say how many bytes standard input has
Standard library only; ends by itself after five minutes whatever happens. One that waits for nothing computes nothing.
"""

import json
import os
import signal
import socket
import sys
import threading
import time

CONFIG = json.loads(sys.argv[1])
END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LIFETIME = 300


def there(name):
    """Whether the file of a word exists; an empty name always does."""
    path = CONFIG.get(name)
    return path is not None and (path == "" or os.path.exists(path))


def sleep_stubbornly(own_session):
    if own_session:
        os.setsid()
    signal.alarm(LIFETIME)
    for number in END_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)


def tell(path, number):
    """Put a number into a file, whole or not at all."""
    with open(path + ".part", "w") as handle:
        handle.write(str(number))
    os.rename(path + ".part", path)


def spawn_others():
    for _ in range(CONFIG.get("orphan", 0)):
        if os.fork() == 0:
            sleep_stubbornly(False)
    for _ in range(CONFIG.get("setsid", 0)):
        if os.fork() == 0:
            if os.fork() == 0:
                sleep_stubbornly(True)
            os._exit(0)
    if "engine" in CONFIG:
        engine = os.fork()
        if engine == 0:
            signal.alarm(LIFETIME)
            while True:
                signal.pause()
        tell(CONFIG["engine"], engine)


def fail(kind):
    if kind.startswith("exit:"):
        os._exit(int(kind[5:]))
    os.kill(os.getpid(), int(kind[5:]))  # kill:NUMBER
    time.sleep(60)


def on_term(number, _frame):
    if "signals" in CONFIG:
        with open(CONFIG["signals"], "a") as handle:
            handle.write("%d " % number)
    if CONFIG.get("when") == "term":
        fail(CONFIG["fault"])
    if CONFIG.get("on_term") != "ignore":
        os._exit(CONFIG.get("on_term", 0))


def answer(connection):
    with connection:
        try:
            data = b""
            while b"\r\n\r\n" not in data:
                chunk = connection.recv(4096)
                if not chunk:
                    return
                data += chunk
            path = data.split()[1].decode()
            status = 200 if there("ready") else CONFIG.get("not_ready", 503)
            status = CONFIG.get("pages", {}).get(path, status)
            if status == "hang":
                time.sleep(60)
            body = b'{"data": [{"id": "fake"}], "choices": [{"text": "x"}]}'
            connection.sendall(b"HTTP/1.1 %d Fake\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(body), body))
        except OSError:
            pass


def listen():
    while CONFIG.get("closed") and not there("ready"):
        time.sleep(0.005)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((CONFIG["address"], CONFIG["port"]))
    sock.listen(64)
    while True:
        connection, _ = sock.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def emit(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]


def output():
    emit(bytes.fromhex(CONFIG.get("bytes", "")))
    block = (b"flood " + b"y" * 121 + b"\n") * 512
    for _ in range(CONFIG.get("flood_mb", 0) * 1024 * 1024 // len(block)):
        emit(block)
    count, length, piece = CONFIG.get("chatter", [0, 0, 1])
    text = b"".join(b"chatter %06d " % number + b"z" * (length - 15) + b"\n" for number in range(count))
    for start in range(0, len(text), piece):
        emit(text[start:start + piece])
    if CONFIG.get("reads_stdin"):
        emit(b"stdin has %d bytes\n" % len(sys.stdin.buffer.read()))
    if "flooded" in CONFIG:
        open(CONFIG["flooded"], "w").close()


def main():
    signal.alarm(LIFETIME)
    for number in END_SIGNALS:
        signal.signal(number, on_term)
    spawn_others()
    for number in range(1, CONFIG.get("lines", 0) + 1):
        emit(b"line %d\n" % number)
    if "started" in CONFIG:
        tell(CONFIG["started"], os.getpid())
    threading.Thread(target=output, daemon=True).start()
    if CONFIG.get("port"):
        threading.Thread(target=listen, daemon=True).start()
    while "fault" in CONFIG and CONFIG.get("when") != "term":
        if there("when"):
            fail(CONFIG["fault"])
        time.sleep(0.005)
    while True:
        signal.pause()


main()
