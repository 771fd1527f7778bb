#!/usr/bin/env bash
# One rank of a prefill/decode job as shell scripts used to run it: the loops and constants that `atom-launch node` replaces,
# and nothing else. Started by bench-node.py with the same stand-ins; the words are commands, one string each:
#
#   RANK=0 bench-node-old.sh SERVER ROUTER WORKLOAD      waits for all servers, starts the router, runs the workload
#   RANK=1 bench-node-old.sh SERVER                      serves for as long as the router answers
#
# SERVER_URLS (with blanks), ROUTER_URL and LOGS must be set; WAIT_SERVER_TIMEOUT and WAIT_ROUTER_TIMEOUT may be.
set -u

poll=10
last_pause=60
wait_server=${WAIT_SERVER_TIMEOUT:-2500}
wait_router=${WAIT_ROUTER_TIMEOUT:-300}

answers() {
    curl --silent --fail --max-time 10 --output /dev/null "$1"
}

# Ask one address every 10 s until it answers or the time is over.
wait_for() {
    local url=$1 limit=$2 began=$SECONDS
    until answers "$url"; do
        if ((SECONDS - began >= limit)); then
            printf '%s is not ready after %s s\n' "$url" "$limit" >&2
            return 1
        fi
        sleep "$poll"
    done
}

# Each process writes through tee, whose id is the one that is remembered.
eval "$1" 2>&1 | tee "$LOGS/old-server-$RANK.log" >/dev/null &
server=$!

if ((RANK != 0)); then
    wait_for "$ROUTER_URL/health" $((wait_server + wait_router)) || exit 1
    while answers "$ROUTER_URL/health"; do
        sleep "$poll"
    done
    kill "$server"
    exit 0
fi

# One address after the other.
for url in $SERVER_URLS; do
    wait_for "$url/health" "$wait_server" || exit 1
done
eval "$2" 2>&1 | tee "$LOGS/old-router.log" >/dev/null &
router=$!
wait_for "$ROUTER_URL/v1/models" "$wait_router" || exit 1
eval "$3"
sleep "$last_pause"
kill "$router" "$server"
exit 0
