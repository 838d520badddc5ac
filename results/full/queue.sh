#!/bin/sh
# Train the main table with the paper's recipe, pair by pair, into this folder. One process, one
# thread. Stop it at any time: the same command continues where it stopped.
#   nice -n 19 results/full/queue.sh >> queue.log 2>&1 &
# CAPNETS names the command (default: capnets), SEEDS the seeds (default: 0).
cd "$(dirname "$0")/../.." || exit 1
export OMP_NUM_THREADS=1

run() {
    # The models and tasks of one invocation are trained in the order of the table.
    # shellcheck disable=SC2086
    ${CAPNETS:-capnets} reproduce "$1" --recipe paper --seeds "${SEEDS:-0}" \
        --models "$2" --tasks "$3" --results results/full || exit 1
}

for task in US UC WTri US+S TriC; do
    for pair in gru,c-gru lstm,c-lstm rnn,c-rnn; do
        run table1 "$pair" "$task"
    done
done
run table1 deepset US,UC,WTri,US+S,TriC
run table1 attention US,UC,WTri,US+S,TriC
