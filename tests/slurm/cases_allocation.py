"""What a rank reads of its allocation: node lists, addresses, tasks, the batch script."""

import json
import os
import random
import re

from harness import AT_ONCE, BED, case, check, edit, in_order, must, succeed


@case(3)
def an_allocation_larger_than_the_job_is_said_and_works(test):
    _, text = succeed(test, 1, 1, 2, "--nodes-count", "3")
    in_order(text, "gives 3 nodes, but the job uses 2")


@case(3)
def a_step_on_other_nodes_of_the_allocation_takes_its_own_nodes(test):
    script = edit(test.script(1, 1, "--nodes-count", "3"), ("srun --nodes=2", "srun --nodelist=%s --nodes=2" % ",".join(test.nodes[1:])))
    job = test.submit(script)
    job.end("COMPLETED", "0:0")
    check(job.record(0)["host"] == test.nodes[1] or BED["namespaces"] == "no", "rank 0 is on the step's first node")
    check(test.heard("argv-server-8020-%s.json" % test.nodes[2]), "decode is on the step's second node")


@case(2)
def a_wrong_address_is_found_before_anything_starts(test):
    # A port of its own: the preflight listens on it at every address of the machine, which here is all nodes'.
    job = test.start(1, 1, "--nodes", "%s,198.51.100.77" % test.addresses[0], "--decode-port", "8220")
    text = job.end("FAILED", "2:0", AT_ONCE)
    check(re.search(r"rank 1: error: \[address-elsewhere\] 198.51.100.77, the address of rank 1, is none of this machine's, and what is sent there does not"
                    r" arrive here \(this machine has (no address but its loopback ones|[0-9a-f.:, ]+( and \d+ more)?)\)\n", text), "the wrong address is named")
    # The address of rank 0 is right.
    check("address of rank 0" not in text and "[address-elsewhere]" not in "".join(re.findall("rank 0: .*", text)), "and no other one")
    check(not test.heard("workload-began"), "the workload has not begun")


@case(2)
def a_wrong_address_that_only_the_first_rank_was_given_is_told_from_those_that_answer(test):
    prolog = test.path("prolog")
    with open(prolog, "w") as handle:
        handle.write("#!/bin/sh\n[ $SLURM_PROCID = 0 ] && echo export IPADDRS=%s,198.51.100.77\n:\n" % test.addresses[0])
    os.chmod(prolog, 0o755)
    test.env["SLURM_TASK_PROLOG"] = prolog
    text = test.overdue("(1 of 2)")
    in_order(text, "rank 0: prefill-0 is ready after", "(1 of 2)", "rank 0: error: failed in phase servers: not all servers became ready within ")
    check(re.search(r"became ready within \S+ s: decode-1 \(198.51.100.77:8020\) [^;\n]+ for \d+\S* s; exit code 69\n", text), "one server is missing")


@case(2)
def a_name_that_does_not_resolve_is_found_before_anything_starts(test):
    job = test.start(1, 1, "--nodes", "%s,no-such-host.invalid" % test.addresses[0])
    text = job.end("FAILED", "2:0", AT_ONCE)
    in_order(text, "no-such-host.invalid, the address of rank 1, is a name that this machine cannot resolve")


@case(2)
def the_batch_script_itself_is_never_taken_for_a_rank(test):
    script = edit(test.script(1, 1), ('"${step[@]}" "$atom_launch" node', '"$atom_launch" node'))
    text = test.submit(script).end("FAILED", "2:0", AT_ONCE)
    in_order(text, "which of the 2 ranks is this?", "this is the batch script itself")


@case(2)
def two_tasks_on_a_node_are_refused(test):
    script = edit(test.script(1, 1), ("#SBATCH --ntasks-per-node=1", "#SBATCH --ntasks-per-node=2"),
                  ("srun --nodes=2 --ntasks=2 --ntasks-per-node=1\n", "srun --nodes=1 --ntasks=2 --ntasks-per-node=2 --overcommit\n"))
    text = test.submit(script).end("FAILED", "2:0", AT_ONCE)
    in_order(text, "SLURM_PROCID=1 runs on node 0 of the step")


@case(0)
def node_lists_expand_as_scontrol_expands_them(test):
    chance = random.Random(5)
    lists = ["a[01-03,7],b", "node[1-2]", "r[1-2]n[08-10]-ib", "n[9-11]", "single", "mi[001,003-004],gpu7", "n[098-102]", "a,b,c,a1"]
    for _ in range(60):
        items = []
        for number in range(chance.randint(1, 4)):
            low = chance.randint(0, 120)
            width = chance.choice([0, 2, 3, 4])
            ranges = ["%0*d-%0*d" % (width, low, width, low + chance.randint(1, 12)), "%0*d" % (width, low + 20)]
            kind = chance.choice(["%s%s", "%s[%s]", "%s[%s]-x"])
            inner = ",".join(chance.sample(ranges, chance.randint(1, 2))) if "[" in kind else "%d" % low
            items.append(kind % ("abcd"[number] * chance.randint(1, 3), inner))
        lists.append(",".join(items))
    for text in lists:
        expected = must("scontrol", "show", "hostnames", text, env=BED["env"]).split()
        if len(expected) < 2 or len(set(expected)) != len(expected):
            continue
        plan = json.loads(must(BED["program"], "plan", "--quiet", "--model", "DeepSeek-V4-Pro", "--model-dir", "/models", "--prefill-workers", str(len(expected) - 1),
                               "--decode-workers", "1", "--nodes", text, "--format", "json", env=test.env))
        ordered = [rank["node"] for rank in plan["ranks"]]
        check(ordered == expected, "%s: %s, not %s" % (text, ordered, expected))
