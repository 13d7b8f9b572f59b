#!/bin/sh
# Run a step of the set-up, and say every ten seconds that it is at work, and how long it took:
# step.sh LABEL COMMAND ...
label=$1
shift
echo "setup: $label ..."
began=$(date +%s)
(
    told=$began
    while sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do # ends with the shell, by Ctrl-C too
        now=$(date +%s)
        if [ $((now - told)) -ge 10 ]; then
            told=$now
            echo "setup: $label: at work for $((now - began)) s"
        fi
    done
) &
ticker=$!
"$@"
status=$?
kill $ticker 2>/dev/null
if [ $status -ne 0 ]; then
    echo "setup: $label has failed." >&2
    exit $status
fi
echo "setup: $label took $(($(date +%s) - began)) s"
