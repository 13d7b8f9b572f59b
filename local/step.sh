#!/bin/sh
# Run a step of the set-up, and say how long it took: step.sh LABEL COMMAND ...
label=$1
shift
echo "setup: $label ..."
began=$(date +%s)
"$@" || {
    status=$?
    echo "setup: $label has failed." >&2
    exit $status
}
echo "setup: $label took $(($(date +%s) - began)) s"
