#!/usr/bin/env bash
# What waiting costs, measured in one run on this machine, for `atom-launch node` and for the shell loops that it replaces
# (scripts/bench-node-old.sh) with the same stand-ins:
#
#   - seconds from the last server's readiness to the workload's start, from a server's death to the end of its rank, and
#     from the workload's end until all is gone
#   - processor and peak memory of the launcher while it watches 8 and 1,000 endpoints
#
#   scripts/bench-node.sh [--runs N] [--watch S] [--skip-old] [--check] [--binary PATH]
#
#   --runs N       jobs of each kind (default 5)
#   --watch S      watch for so many seconds (default 20)
#   --skip-old     leave the old loops out: they take four minutes
#   --check        exit with 1 when a target is missed; a shared machine misses them now and then
#   --binary PATH  measure this binary; without it the release binary is built first
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${CARGO_TARGET_DIR:-target}
binary=
options=()
while (($#)); do
    case $1 in
    --runs)
        options+=("$1" "${2:?--runs needs a number}")
        shift
        ;;
    --watch)
        options+=("$1" "${2:?--watch needs a number}")
        shift
        ;;
    --binary)
        binary=${2:?--binary needs a path}
        shift
        ;;
    --check | --skip-old) options+=("$1") ;;
    -h | --help)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *)
        printf 'scripts/bench-node.sh: unknown option %s\n' "$1" >&2
        exit 2
        ;;
    esac
    shift
done

if [[ -z $binary ]]; then
    cargo build --release --locked
    binary=$target/release/atom-launch
fi

# An interpreter itself, not a shim that is a shell script: the stand-ins are started many times.
python=$(python3 -c 'import sys; print(sys.executable)')
exec "$python" scripts/bench-node.py --binary "$binary" --work "$target/bench" "${options[@]}"
