#!/bin/bash
# What `docker run -e … image …` is to a recorded job: a root of its own with fixed folders, and the given variables alone.
#
#   container.sh FOLDER VARIABLES COMMAND…
#
# FOLDER has models, workspace, benchmark_logs, run_logs and image, which the command sees as /models … /image, and the machine's
# own folders beside them. VARIABLES is a file of NAME=VALUE, each ended by NUL. Signals reach the command: nothing stands between.
# Needs root; only this process and its children see the mounts.
set -euo pipefail

if [[ ${1:-} != --inside ]]; then
    exec unshare --mount --propagation private -- "$0" --inside "$@"
fi
shift
folder=$1 variables=$2
shift 2
mount -t tmpfs container /mnt
for path in /*; do
    case ${path#/} in
    mnt | models | workspace | benchmark_logs | run_logs | image) ;;
    *)
        if [[ -L $path ]]; then
            cp -P "$path" "/mnt$path"
        elif [[ -d $path ]]; then
            mkdir "/mnt$path"
            mount --rbind "$path" "/mnt$path"
        fi
        ;;
    esac
done
for name in models workspace benchmark_logs run_logs image; do
    mkdir "/mnt/$name"
    mount --bind "$folder/$name" "/mnt/$name"
done
mapfile -d '' -t environment <"$variables"
exec env -i "${environment[@]}" chroot /mnt "$@"
