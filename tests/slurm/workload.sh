#!/bin/bash
# What a test runs against the router: leaves a mark, waits while it is told to, ends with the code it is given.
echo "workload: ROUTER_URL=$ROUTER_URL MODEL_PATH=$MODEL_PATH"
echo "$ROUTER_URL" >>"$STANDIN_DIR/workload-began"
while [[ -e $STANDIN_DIR/hold-workload ]]; do sleep 0.05; done
exit "${1:-0}"
