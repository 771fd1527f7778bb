#!/usr/bin/env bash
# What the launcher costs, measured in one run on this machine:
#
#   - time to exec, against a bare `true`
#   - the same against the Python step it replaces (yaml.safe_load of the same models file)
#   - a models file of 10,000 entries against one of 100: time and memory
#
#   scripts/bench-exec.sh [--runs N] [--check] [--binary PATH]
#
#   --runs N       rounds of the exec comparison (default 300; the others take a part of it)
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
    --binary)
        binary=${2:?--binary needs a path}
        shift
        ;;
    --check) options+=("$1") ;;
    -h | --help)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *)
        printf 'scripts/bench-exec.sh: unknown option %s\n' "$1" >&2
        exit 2
        ;;
    esac
    shift
done

if [[ -z $binary ]]; then
    cargo build --release --locked
    binary=$target/release/atom-launch
fi

# An interpreter itself, not a shim that is a shell script, with PyYAML: the one on PATH, the system's, or a venv of our own.
has_yaml() {
    "$1" -c 'import yaml' >/dev/null 2>&1
}
python=$(python3 -c 'import sys; print(sys.executable)')
yaml_python=
for candidate in "$python" /usr/bin/python3 "$target/bench/venv/bin/python"; do
    if has_yaml "$candidate"; then
        yaml_python=$candidate
        break
    fi
done
if [[ -z $yaml_python ]]; then
    venv=$target/bench/venv
    if "$python" -m venv "$venv" >/dev/null 2>&1 && "$venv/bin/python" -m pip install --quiet pyyaml >/dev/null 2>&1; then
        yaml_python=$venv/bin/python
    fi
fi

exec "$python" scripts/bench-exec.py --binary "$binary" --work "$target/bench" --yaml-python "$yaml_python" "${options[@]}"
