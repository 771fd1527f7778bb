#!/usr/bin/env bash
# Stands in for python3: notes in the folder $RECORD how it was started, then does what $THEN says.
#
# A shell leaves signal masks and limits alone, so its own /proc shows what the caller handed down. It is read without a child: the masks
# change while one is forked.
while read -r line; do
    echo "$line"
done </proc/self/status >"$RECORD/status"
printf '%s\0' "$@" >"$RECORD/argv"
cat "/proc/$$/environ" >"$RECORD/environ"
echo "$$" >"$RECORD/pid"
{ ulimit -Sn && ulimit -Hn; } >"$RECORD/files"
eval "${THEN:-}"
