"""Run a program on a terminal of its own and press Ctrl-C once a file is there: `terminal.py FILE PROGRAM WORDS...`."""

import os
import pty
import select
import sys

pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
pressed = False
while True:
    ready, _, _ = select.select([terminal], [], [], 0.02)
    try:
        data = os.read(terminal, 65536) if ready else None
    except OSError:
        data = b""
    if data == b"":
        break
    if data:
        os.write(1, data)
    if not pressed and os.path.exists(sys.argv[1]):
        os.write(terminal, b"\x03")
        pressed = True
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
