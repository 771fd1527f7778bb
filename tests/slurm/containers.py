"""A docker daemon for each node of a case: real dockerd, containerd and runc, with an image made of this machine.

Each has a folder, a socket, a cgroup, and namespaces of its own with what a node of a GPU cluster has in /dev (links to /dev/null's driver),
so that two runs never meet and nothing stays in /run, /dev or /sys. `scripts/slurm-testbed down` finds it by the hosts file it sees.
"""

import contextlib
import glob
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import threading

from harness import BED, Skipped, must, run

PROGRAMS = ["docker", "dockerd", "containerd", "runc", "docker-init", "unshare"]
IMAGE = "atom-standin:1"
# $1 is the daemon's folder, $2 the hosts file, $3 the node, the rest the daemon's command line.
NAMESPACE = r"""
mount --bind "$2" /etc/hosts
hostname "$3"
dev=$1/dev
mkdir "$dev"
mount -t tmpfs -o mode=755 dev "$dev"
mkdir "$dev/shm" "$dev/pts" "$dev/mqueue" "$dev/dri" "$dev/infiniband"
for node in null:3 zero:5 full:7 random:8 urandom:9 kfd:3 dri/renderD128:3 infiniband/uverbs0:3; do
    mknod --mode=666 "$dev/${node%:*}" c 1 "${node#*:}"
done
ln -s pts/ptmx "$dev/ptmx"
ln -s /proc/self/fd "$dev/fd"
mount --bind /dev/shm "$dev/shm"
mount --bind /dev/pts "$dev/pts"
mount -t mqueue mqueue "$dev/mqueue"
mount --move "$dev" /dev
mount -t tmpfs -o mode=755 run /run
shift 3
exec "$@"
"""
# runc must set the limits that `--ulimit` asks for, which not even root may raise in a sandbox without CAP_SYS_RESOURCE.
RUNTIME = r"""#!/bin/sh
case " $* " in *" create "*) python3 "$0.py" "$@" ;; esac
exec runc "$@"
"""
LIMITS = r"""
import json, resource, sys
path = sys.argv[sys.argv.index("--bundle") + 1] + "/config.json"
with open(path) as handle:
    config = json.load(handle)
for limit in config["process"].get("rlimits", []):
    kind = getattr(resource, limit["type"])
    # runc writes "without limit" as the largest number of 64 bits.
    asked = [-1 if value >= 2 ** 63 else value for value in (limit["soft"], limit["hard"])]
    try:
        resource.setrlimit(kind, tuple(asked))
    except ValueError:
        limit["soft"] = limit["hard"] = resource.getrlimit(kind)[1] % 2 ** 64
with open(path, "w") as handle:
    json.dump(config, handle)
"""


def image():
    """A root folder without files: /usr is the machine's, and comes as a mount."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name in ("etc", "usr", "proc", "sys", "dev", "tmp", "run", "root", "sbin"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(info)
        for name in ("bin", "lib", "lib64"):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, "usr/" + name
            tar.addfile(info)
        for name in ("/etc/passwd", "/etc/group", "/etc/ld.so.cache"):
            tar.add(name, arcname=name[1:])
    return data.getvalue()


class Daemon:
    """The docker of one node."""

    def __init__(self, test, node):
        self.folder = test.sub("docker-" + node)
        self.held, self.told, self.released = threading.Event(), threading.Event(), threading.Event()
        # What the node's docker uses, and the daemon's own.
        self.socket, self.own_socket = os.path.join(self.folder, "sock"), os.path.join(self.folder, "daemon.sock")
        os.symlink(self.own_socket, self.socket)
        self.cgroup = "%s-%s" % (test.mark, node)
        for name, text in (("runtime", RUNTIME), ("runtime.py", LIMITS)):
            with open(os.path.join(self.folder, name), "w") as handle:
                handle.write(text)
            os.chmod(os.path.join(self.folder, name), 0o755)
        config = os.path.join(self.folder, "daemon.json")
        with open(config, "w") as handle:
            json.dump({
                "data-root": os.path.join(self.folder, "data"), "exec-root": os.path.join(self.folder, "exec"),
                "pidfile": os.path.join(self.folder, "pid"), "hosts": ["unix://" + self.own_socket],
                # The machine's network stays as it is: containers use that alone.
                "bridge": "none", "iptables": False, "ip6tables": False, "ip-forward": False, "ip-masq": False, "userland-proxy": False,
                "cgroup-parent": "/" + self.cgroup, "exec-opts": ["native.cgroupdriver=cgroupfs"],
                "runtimes": {"node": {"path": os.path.join(self.folder, "runtime")}}, "default-runtime": "node",
            }, handle)
        hosts, = glob.glob(os.path.join(BED["env"]["SLURM_TESTBED_DIR"], "hosts.*"))
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "w") as handle:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--uts", "sh", "-ec", NAMESPACE, "sh", self.folder, hosts, node, "dockerd", "--config-file", config],
                stdin=subprocess.DEVNULL, stdout=handle, stderr=handle, env={"PATH": os.environ["PATH"]}, start_new_session=True)

    def docker(self, *words, **more):
        return must("docker", "-H", "unix://" + self.own_socket, *words, **more)

    def containers(self):
        return self.docker("ps", "--all", "--format", "{{.Names}} {{.Status}}").splitlines()

    def hold_start(self):
        """What is created from here on starts when `released` is set; `held` says that it waits, `told` that a signal has met it."""
        os.unlink(self.socket)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.socket)
        listener.listen()

        def requests(client, daemon, kills):
            while data := client.recv(65536):
                if data.startswith(b"POST ") and b"/start HTTP/" in data:
                    self.held.set()
                    self.released.wait()
                if b"/kill?signal=TERM" in data:
                    kills.set()
                daemon.sendall(data)
            daemon.shutdown(socket.SHUT_WR)

        def answers(client, daemon, kills):
            while data := daemon.recv(65536):
                client.sendall(data)
                if kills.is_set():
                    self.told.set()
            client.shutdown(socket.SHUT_WR)

        def relay(direction, *ends):
            with contextlib.suppress(OSError):
                direction(*ends)

        def accept():
            while True:
                ends = listener.accept()[0], socket.socket(socket.AF_UNIX), threading.Event()
                ends[1].connect(self.own_socket)
                for direction in (requests, answers):
                    threading.Thread(target=relay, args=(direction, *ends), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def is_up(self):
        """Whether it answers; a `Skipped` when it never will."""
        if self.process.poll() is not None:
            with open(self.log) as handle:
                raise Skipped("dockerd ends at once: %s" % (handle.read().strip().splitlines() or [""])[-1])
        return run("docker", "-H", "unix://" + self.own_socket, "info")[0] == 0

    def end(self):
        """It ends its containers, and its containerd."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for path in sorted(glob.glob("/sys/fs/cgroup/**/%s" % self.cgroup, recursive=True)):
            with contextlib.suppress(OSError):
                os.rmdir(path)


@contextlib.contextmanager
def daemons(test):
    """A docker on each node of a case, and the `docker` that finds the node's own; a dictionary by node."""
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing:
        raise Skipped("no container engine: %s is missing" % ", ".join(missing))
    with open(os.path.join(test.sub("bin"), "docker"), "w") as handle:
        handle.write('#!/bin/sh\nexec "%s" -H "unix://%s/docker-$SLURMD_NODENAME/sock" "$@"\n' % (shutil.which("docker"), test.folder))
        os.fchmod(handle.fileno(), 0o755)
    all_of_them = {}
    try:
        for node in test.nodes:
            all_of_them[node] = Daemon(test, node)
        for one in all_of_them.values():
            test.until("docker", one.is_up)
            root = os.path.join(one.folder, "root.tar")
            with open(root, "wb") as handle:
                handle.write(image())
            one.docker("import", root, IMAGE)
            # What is wanted is a container at all; that it is the right one is for the case to see.
            code, text = run("docker", "-H", "unix://" + one.own_socket, "run", "--rm", "--network", "host", "--volume", "/usr:/usr", IMAGE, "true")
            if code != 0:
                raise Skipped("no container can run here: %s" % text.strip())
        yield all_of_them
    finally:
        for one in all_of_them.values():
            one.end()
