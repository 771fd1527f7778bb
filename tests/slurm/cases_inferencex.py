"""Whole jobs of InferenceX as recorded, through the drop-in: what is executed must be what the old script executed, word for word,
but for the differences of DIFFERENCES, each of which docs/migrating.md names.

A job is submitted with its recorded arguments, and each rank gets its recorded container environment and nothing else. Only what
belongs to another machine is translated: addresses, and the job's number. What the ranks of 425 other recorded jobs would run
is compared in tests/it/recorded, whose rules stay there: here the drop-in inside SLURM must print what that test judges.
"""

import json
import os
import re
import shlex
import shutil
import sys

from harness import BED, PATIENCE, ROOT, case, check, in_order, must

WORKSPACE = "workspace/benchmarks/multi_node/amd_utils"
CONTAINER = os.path.join(ROOT, "tests/slurm/container.sh")
with open(os.path.join(ROOT, "tests/data/inferencex-jobs.json")) as source:
    DATA = json.load(source)
JOBS = {job["name"]: job for job in DATA["jobs"]}


class Expected:
    """What must come of a job: the environment of each rank, what each runs, or why none runs anything."""

    def __init__(self, job):
        self.submitted = job.get("submit_env", {})
        first = job["ranks"][0]["env"] if job["ranks"] else self.submitted
        environment = patched(first)
        self.count = int(environment["xP"]) + int(environment["yD"])
        recorded = dict(enumerate(job["ranks"]))
        self.env = [dict(patched(recorded[rank]["env"]) if rank in recorded else environment, NODE_RANK=str(rank)) for rank in range(self.count)]
        # (rank, what) -> words, for what was recorded.
        self.ran = {(rank, what): list(words) for rank, one in recorded.items() for what, words in one.items() if what != "env"}
        self.refused = ""

    def text(self):
        return repr((self.env, self.ran, self.refused))

    def servers(self):
        return [words for (_, what), words in self.ran.items() if what == "server"]


def patched(change):
    """An environment from its difference to the base."""
    return {name: value for name, value in {**DATA["base"], **change}.items() if value is not None}


def unknown_model(expected):
    if expected.env[0]["MODEL_NAME"] == "Nope":
        expected.refused = "model `Nope` (MODEL_NAME) is not in"


def extra_arguments(expected):
    words = expected.submitted.get("EXTRA_SERVER_ARGS", "")
    if words == expected.env[0]["EXTRA_SERVER_ARGS"]:
        return
    # job.slurm tore the words apart before the container; with quotes there this is what arrives.
    plain = Expected(JOBS["job/plain"])
    expected.env = [dict(env, EXTRA_SERVER_ARGS=words) for env in plain.env]
    expected.ran = plain.ran
    for argv in expected.servers():
        argv += shlex.split(words)


def hf_overrides(expected):
    if expected.env[0]["MODEL_NAME"] == "DeepSeek-V4-Pro":
        for argv in expected.servers():
            at = argv.index("--kv-transfer-config")
            argv[at:at] = ["--hf-overrides", '{"use_index_cache":true,"index_topk_freq":4}']


def speculation_contradiction(expected):
    if expected.env[0]["SPEC_DECODING"] == "mtp" and expected.env[0]["DECODE_MTP_SIZE"] == "0":
        expected.refused = "SPEC_DECODING=mtp asks for speculative decoding, but DECODE_MTP_SIZE=0 switches it off"


def model_path(expected):
    for argv in expected.servers():
        at = argv.index("--model") + 1
        argv[at] = argv[at].replace("//", "/")


# By the names that docs/migrating.md has; each changes what must come of the jobs that it concerns, and no others.
DIFFERENCES = {
    "extra-arguments": extra_arguments,
    "hf-overrides": hf_overrides,
    "model-path": model_path,
    "speculation-contradiction": speculation_contradiction,
    "unknown-model": unknown_model,
}


def expect(job):
    """What must come of a recorded job, and the names of the differences in it."""
    expected, names = Expected(job), set()
    for name, change in DIFFERENCES.items():
        before = expected.text()
        change(expected)
        if expected.text() != before:
            names.add(name)
    return expected, names


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as handle:
        handle.write(text)
    os.chmod(path, mode)


def image(test, options=""):
    """The folders of the job's containers, in each of which the drop-in has taken the place of server_atom.sh. `options` are the
    launcher's beside those of the drop-in: the environment has none for them."""
    for name in ("models", "benchmark_logs", "image/standin"):
        test.sub(name)
    standin = "#!/bin/sh\nexec %s %s/tests/slurm/standin.py \"$@\"\n" % (sys.executable, ROOT)
    for name in ("python3", "atomesh"):
        write(test.path("image/bin/" + name), standin, 0o755)
    write(test.path("image/bin/atom-launch"),
          '#!/bin/sh\ncase $1 in node) shift && set -- node %s "$@" ;; esac\nexec %s "$@"\n' % (options, BED["program"]), 0o755)
    for name in ("server_atom.sh", "workload.sh"):
        with open(os.path.join(ROOT, "examples/inferencex", name)) as handle:
            write(test.path("%s/%s" % (WORKSPACE, name)), handle.read())
    # As InferenceX's server.sh; the name says how it takes the engine's script.
    write(test.path(WORKSPACE + "/sources.sh"), 'source "$WS_PATH/server_atom.sh"\n')
    write(test.path(WORKSPACE + "/calls.sh"), 'bash "$WS_PATH/server_atom.sh"\n')
    heard = 'printf \'%s\\0\' "$@" >/image/standin/bench; echo "$ROUTER_PORT $MODEL_PATH" >"$7/result.json"\n'
    write(test.path(WORKSPACE + "/bench.sh"), heard)
    write(test.path("workspace/benchmarks/benchmark_lib.sh"),
          "run_eval() { echo '{}' >results_a.json; }\nappend_lm_eval_summary() { echo '{}' >meta_env.json; }\n")


def node(test, name, env):
    """A folder for container.sh, and in it `variables`: those of the job and what the image has. Logs stay on a node, and each has
    its workspace; the rest is shared."""
    test.sub(name + "/run_logs")
    shutil.copytree(test.path("workspace"), test.path(name + "/workspace"))
    for shared in ("models", "benchmark_logs", "image"):
        os.symlink(test.path(shared), test.path("%s/%s" % (name, shared)))
    of_image = {"PATH": "/image/bin:" + test.env["PATH"], "HOME": "/root", "ATOM_ROUTER": "/image/bin/atomesh",
                "ATOM_TEST_MARK": test.mark, "STANDIN_DIR": "/image/standin"}
    write(test.path(name + "/variables"), "".join("%s=%s\0" % pair for pair in {**of_image, **env}.items()))


def submit_recorded(test, job, expected, here):
    """The job as submit.sh and job.slurm make it; `here` translates what belongs to another machine."""
    image(test, "--poll-interval 0.2")
    for name in ("config.json", "model.safetensors"):
        write(test.path("models/%s/%s" % (expected.env[0]["MODEL_NAME"], name)), "")
    for rank, env in enumerate(expected.env):
        node(test, "node-%d" % rank, {name: here(value) for name, value in env.items() if name != "SLURM_JOB_ID"})
    # job.slurm's srun runs a container on each node.
    write(test.path("rank.sh"), 'cd %s/node-$SLURM_PROCID\nprintf \'SLURM_JOB_ID=%%s\\0\' "$SLURM_JOB_ID" >>variables\n'
          'way=sources; ((SLURM_PROCID %% 2 == 0)) || way=calls\n'
          'exec %s "$PWD" variables bash "/%s/$way.sh"\n' % (test.folder, CONTAINER, WORKSPACE))
    write(test.path("job.slurm"), "#!/bin/bash\nsrun --kill-on-bad-exit=1 bash %s\n" % test.path("rank.sh"))
    # What was recorded for single ranks was submitted by nobody.
    words = [word for word in job.get("sbatch", JOBS["job/plain"]["sbatch"])[:-1] if word != "--parsable"]
    for flag in ("-N", "-n"):
        words[words.index(flag) + 1] = str(expected.count)
    for flag in ("--output", "--error"):
        words[words.index(flag) + 1] = test.path("slurm_job-%j.out")
    return test.submit(test.path("job.slurm"), *words)


def run_recorded(test, job):
    expected, _ = expect(job)
    translated = {"10.0.0.%d" % (number + 1): address for number, address in enumerate(test.addresses)}

    def here(word):
        return re.sub(r"10\.0\.0\.\d+", lambda found: translated[found.group()], word)

    submitted = submit_recorded(test, job, expected, here)
    if expected.refused:
        # The job's own code is 2, or 143 when srun had to end the other rank.
        text = submitted.end("FAILED", None)
        for part in (expected.refused, "nothing was started", "Exited with exit code 2"):
            in_order(text, part)
        check(not os.listdir(test.path("image/standin")), "nothing has run: %s" % os.listdir(test.path("image/standin")))
        return
    submitted.end("COMPLETED", "0:0")
    for (rank, what), words in expected.ran.items():
        words = [here(word).replace("slurm_job-4242", "slurm_job-" + submitted.id) for word in words]
        if what == "bench":
            # Behind `bash bench.sh`.
            got, words = test.read("image/standin/bench").split("\0")[:-1], words[2:]
        else:
            port = "" if what == "router" else "%d-" % (8010 if rank < int(expected.env[0]["xP"]) else 8020)
            heard = "image/standin/%%s-%s-%s%d.json" % (what, port, rank)
            got, words = json.loads(test.read(heard % "argv"))[1:], words[1:]
            of_slurm = {name for name in json.loads(test.read(heard % "env")) if name.startswith("SLURM")}
            check(of_slurm == {"SLURM_JOB_ID", "SLURM_JOB_NODELIST"}, "the container knows of SLURM %s" % of_slurm)
        check(got == words, "rank %d, %s: %s\nrecorded: %s" % (rank, what, got, words))
    check((0, "bench") in expected.ran, "the benchmark was recorded")
    left = set(os.listdir(test.path("benchmark_logs/logs/slurm_job-%s" % submitted.id)))
    needed = {"result.json", "prefill-0.log", "router-0.log"} | {"launch-rank%d.json" % rank for rank in range(expected.count)}
    needed |= {"eval_results"} if expected.env[0]["RUN_EVAL"] == "true" else set()
    check(needed <= left, "results: %s" % left)


for recorded in DATA["jobs"]:
    case(Expected(recorded).count, name="recorded %s" % recorded["name"])(lambda test, job=recorded: run_recorded(test, job))


@case(0)
def docs_migrating_names_the_differences_that_show_and_no_others(_):
    shown = set().union(*(expect(job)[1] for job in DATA["jobs"]))
    check(shown == set(DIFFERENCES), "no job shows %s" % (set(DIFFERENCES) - shown))
    with open(os.path.join(ROOT, "docs/migrating.md")) as handle:
        section = handle.read().split("\n## InferenceX\n")[1]
    named = re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)
    check(sorted(named) == sorted(DIFFERENCES), "the table has %s" % named)
    check(" %d recorded jobs " % len(DATA["jobs"]) in section, "%d jobs" % len(DATA["jobs"]))


# Two environments that no job script makes, where a rank of a job needs more than a server alone.
REFUSED_AS_A_RANK = {
    "precedence/everything-unset/decode": "error[no-addresses]: the addresses of the 2 nodes are not known",
    "rank/'08'": "error[invalid-setting]: variable NODE_RANK must not start with 0",
}


def words_of(texts):
    """What bash makes of the commands of dry runs: a list of words for each."""
    end = "-- end --"
    # One command a paragraph, behind a comment.
    script = "".join(re.sub(r"^# rank .*\n", "printf '%s\\\\0' ", text, flags=re.MULTILINE) + "\nprintf '%%s\\0' '%s'\n" % end for text in texts)
    words = must("bash", input=script).split("\0")[:-1]
    found = [[]]
    for word in words:
        if word == end:
            found.append([])
        else:
            found[-1].append(word)
    return found[:-1]


@case(2, slow=True)
def recorded_environments_give_in_a_step_what_they_give_outside(test):
    image(test)
    program = os.path.join(ROOT, "tests/slurm/dry_runs.py")
    for place in ("node-0", "node-1", "outside"):
        node(test, place, {})
    write(test.path("rank.sh"), 'cd %s/node-$SLURM_PROCID\nenv -0 | grep -z ^SLURM >>variables\n'
          'exec %s "$PWD" variables %s %s drop-in /run_logs/results $SLURM_PROCID 2\n' % (test.folder, CONTAINER, sys.executable, program))
    write(test.path("job.slurm"), "#!/bin/bash\nsrun -N 2 -n 2 --kill-on-bad-exit=1 bash %s\n" % test.path("rank.sh"))
    job = test.submit(test.path("job.slurm"), "-N", "2")
    must(CONTAINER, test.path("outside"), test.path("outside/variables"), sys.executable, program, "launch", "/run_logs/results", "0", "1",
         patience=4 * PATIENCE)
    # Some 1,500 processes: a busy machine needs its time.
    job.end("COMPLETED", "0:0", 4 * PATIENCE)
    inside = {**json.loads(test.read("node-0/run_logs/results")), **json.loads(test.read("node-1/run_logs/results"))}
    outside = json.loads(test.read("outside/run_logs/results"))
    check(set(inside) == set(outside) and len(inside) > 400, "all have run: %d, %d" % (len(inside), len(outside)))
    words = dict(zip(inside, words_of(one["stdout"] for one in inside.values())))
    wrong = []
    for name, one in outside.items():
        launch, got = one["launch"], inside[name]
        if name in REFUSED_AS_A_RANK:
            check(got["code"] == 2 and REFUSED_AS_A_RANK[name] in got["stderr"], "%s: %s" % (name, got))
            continue
        want = []
        if launch["code"] == 0:
            command = json.loads(launch["stdout"])
            want = ["env", *("%s=%s" % pair for pair in sorted(command["env"].items())), *command["argv"]]
            if "plan" in one:
                want += json.loads(one["plan"]["stdout"])["ranks"][0]["router"]["argv"]
        if (got["code"], words[name], got["stderr"]) != (launch["code"], want, launch["stderr"]):
            wrong.append("%s: %s\noutside: %s" % (name, [got["code"], words[name], got["stderr"]], [launch["code"], want, launch["stderr"]]))
    check(not wrong, "%d differ\n%s" % (len(wrong), "\n".join(wrong[:5])))
