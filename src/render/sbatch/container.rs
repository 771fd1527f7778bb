//! What of the script is about containers.

use super::line;
use crate::domain::words;

/// What the ranks run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container<'a> {
    /// The node itself.
    None,
    /// An image through pyxis and enroot.
    Pyxis(&'a str),
    /// An image through docker.
    Docker(&'a str),
}

/// From a step's options to what docker is asked for.
const DOCKER: &str = r#"
# What each task runs. A container is the child of docker's daemon, not of SLURM, which ends docker's client alone: it must be
# gone before its task is. The client hands TERM on to the rank, but loses one that comes before the container runs.
# shellcheck disable=SC2317  # the tasks call it
run_in_container() {
    local container=atom-$SLURM_JOB_ID client code signaled=no
    trap 'signaled=yes' TERM INT
    # An attempt before may have left one here.
    docker rm --force "$container" >/dev/null 2>&1
    docker run --rm --name "$container" "$@" &
    client=$!
    while kill -0 "$client" 2>/dev/null; do
        if [[ $signaled == yes ]]; then
            docker rm --force "$container" >/dev/null 2>&1
        elif [[ $(docker inspect --format '{{.State.Running}}' "$container" 2>/dev/null) == true ]]; then
            break
        fi
        sleep 0.5
    done
    while :; do
        code=0 signaled=no
        wait "$client" || code=$?
        [[ $signaled == yes ]] || break
    done
    docker rm --force "$container" >/dev/null 2>&1
    return "$code"
}
export -f run_in_container

step+=(
    bash -c "run_in_container \"\$@\"" bash
    # docker's init is process 1. Without it a TERM that comes before the rank listens would be lost.
    --init
    # SLURM keeps the output already.
    --log-driver none
    # The node's own addresses and ports, and its shared memory: 64 MB, docker's own, are too few for RCCL.
    --network host --ipc host
    # GPUs and RDMA; the group is for an image that does not run as root.
    --device /dev/kfd --device /dev/dri --device /dev/infiniband --group-add video
    # Processes of a server read each other's memory and bind theirs to NUMA nodes, which docker forbids.
    --cap-add SYS_PTRACE --security-opt seccomp=unconfined
    # RDMA pins memory; each connection is an open file.
    --ulimit memlock=-1 --ulimit nofile=1048576:1048576
    # Each under the path that it has on the node.
    --volume "$atom_launch:$atom_launch:ro" --volume "$SLURM_SUBMIT_DIR:$SLURM_SUBMIT_DIR"
    --volume "$log_dir:$log_dir"
"#;

/// What follows the mounts.
const DOCKER_VARIABLES: &str = r#"    --workdir "$SLURM_SUBMIT_DIR" --entrypoint ""
    # What only a task has of SLURM's variables; the job's follow.
    --env SLURM_STEP_ID --env SLURM_STEP_NODELIST
)
# What is inherited outside is inherited inside, a token such as HF_TOKEN too: by name alone, so that no value is on a command
# line. Left out is what tells of files and programs of the node.
for name in $(compgen -e); do
    case $name in
    PATH | HOME | PWD | OLDPWD | SHELL | SHLVL | USER | LOGNAME | HOSTNAME | TMPDIR | LANG | LC_* | _) ;;
    LD_* | PYTHONPATH | PYTHONHOME | ROCM_* | HIP_PATH* | CONDA* | VIRTUAL_ENV* | BASH* | XDG_* | SSH_*) ;;
    *) step+=(--env "$name") ;;
    esac
done
"#;

/// Options of srun, when it is extended by pyxis.
pub(super) fn pyxis(image: &str, mounts: &[String], out: &mut String) {
    line(
        out,
        "    # pyxis: the image, and what it must see, each under the path it has on the node.",
    );
    line(
        out,
        &format!("    --container-image={}", words::quote(image)),
    );
    let own = [
        "$atom_launch:$atom_launch:ro",
        "$SLURM_SUBMIT_DIR:$SLURM_SUBMIT_DIR",
        "$log_dir:$log_dir",
    ];
    let own = own.into_iter().map(str::to_owned);
    let all: Vec<String> = own
        .chain(mounts.iter().map(|mount| both_sides(mount)))
        .collect();
    line(
        out,
        &format!("    --container-mounts=\"{}\"", all.join(",")),
    );
    line(out, "    --container-workdir=\"$SLURM_SUBMIT_DIR\"");
    line(out, "    --no-container-mount-home");
}

/// The command of each task.
pub(super) fn docker(image: &str, mounts: &[String], out: &mut String) {
    out.push_str(DOCKER);
    for mount in mounts {
        line(out, &format!("    --volume \"{}\"", both_sides(mount)));
    }
    out.push_str(DOCKER_VARIABLES);
    line(out, &format!("step+=({})", words::quote(image)));
}

/// A mount with both sides, for double quotes: what bash would expand there is refused before.
fn both_sides(mount: &str) -> String {
    if mount.contains(':') {
        mount.to_owned()
    } else {
        format!("{mount}:{mount}")
    }
}
