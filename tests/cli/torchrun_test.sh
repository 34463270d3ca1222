#!/usr/bin/env bash
# eval-loglik on a folder that several workers share: under a real torchrun, and by files alone. Whatever
# is killed or paused, the results are those of one process.
set -uo pipefail
program="${CRAIS_BIN:?}/eval-loglik"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA
for variable in $(compgen -e | grep -E '^(RANK|WORLD_SIZE|MASTER_|LOCAL_|TORCHELASTIC_|SLURM_)'); do unset "$variable"; done

small_vae vae --epochs 2
model=vae/vae.safetensors
plain=("$model" --simulate 64 --steps 1000 --chains 8 --chunk 2 --step-size 0.5)
run=("${plain[@]}" --lease 5s)
succeed "${run[@]}" --out whole
alike() { # FOLDER
  same whole/per_image.csv "$1/per_image.csv"
  same whole/run.json "$1/run.json"
  [ -e "$1/claims" ] && fail "$1: claims were left: $(ls "$1/claims")"
  [ -z "$(find "$1" -name '*.tmp')" ] || fail "$1: temporary files were left"
}
chunks() { find "$1/chunks" -name '*.json' 2>/dev/null | wc -l; }
until_chunks() { # FOLDER COUNT PROCESS: false if the process ended before
  while [ "$(chunks "$1")" -lt "$2" ]; do
    kill -0 "$3" 2>/dev/null || return 1
    sleep 0.02
  done
}
tables() { grep -c '^Files: ' "$1"; }

# --- By files in the folder: three workers, one of which is killed, one paused until all is done.
workers=()
for worker in 1 2 3; do
  "$program" "${run[@]}" --threads 1 --queue folder --out folder >out$worker.txt 2>err$worker.txt &
  workers+=($!)
done
until_chunks folder 3 "${workers[0]}" || fail "--queue folder: $(cat err1.txt)"
kill -KILL "${workers[0]}"
kill -STOP "${workers[1]}"
# The clocks of machines may disagree by any amount: nobody looks at the times of files.
touch -d 1999-01-01 folder/claims/* 2>/dev/null
find folder/claims -name 'worker-*' -exec touch -d 2099-01-01 {} + 2>/dev/null
wait "${workers[2]}" || fail "--queue folder, the third: exit $?: $(cat err3.txt)"
same whole/per_image.csv folder/per_image.csv
kill -CONT "${workers[1]}"
wait "${workers[1]}" || fail "--queue folder, the paused one: exit $?: $(cat err2.txt)"
alike folder
[ "$(tables out2.txt)$(tables out3.txt)" = 01 ] || fail "--queue folder: who reports? $(cat out2.txt out3.txt)"
grep -q 'all 64 images are done; another worker' err2.txt || fail "--queue folder: $(cat err2.txt)"
wait "${workers[0]}" 2>/dev/null

# A signal stops a worker, and the same command goes on without --resume.
"$program" "${run[@]}" --queue folder --threads 1 --out stopped >out.txt 2>err.txt &
pid=$!
until_chunks stopped 2 $pid || fail "stopped: $(cat err.txt)"
kill -TERM $pid
wait $pid
status=$?
[ $status = 75 ] || fail "SIGTERM: exit $status: $(cat err.txt)"
grep -q 'interrupted; .* of 64 images done; the same command goes on' err.txt || fail "SIGTERM: $(cat err.txt)"
succeed "${run[@]}" --queue folder --out stopped
alike stopped

# --- What is refused: other settings, half an environment, no folder, no store.
expect 64 "other settings" "settings repeats is 2 here and 1 there" -- "${run[@]}" --repeats 2 --queue folder --out folder
expect 64 "--queue folder" "--shard" -- "${run[@]}" --queue folder --shard 1/2 --out never
expect 64 "--queue folder" "--overwrite" -- "${run[@]}" --queue folder --overwrite --out folder
expect 64 "--queue folder" "--out" -- "${run[@]}" --queue folder
expect 64 "--lease" -- "${plain[@]}" --queue folder --out never --lease soon
expect 64 "--queue" "compare" -- compare "$model" "$model" --limit 4 --queue folder --out never
expect 64 "--queue" "each task" -- submit slurm "$model" --tasks 2 --out never --queue folder
expect 64 "--queue store" "RANK" -- "${run[@]}" --queue store --out never
eval_loglik=$program
program="env" expect 64 "WORLD_SIZE is not" -- RANK=0 "$eval_loglik" "${run[@]}" --out never
program="env" expect 64 "RANK is not" -- WORLD_SIZE=2 "$eval_loglik" "${run[@]}" --out never
program="env" expect 64 "MASTER_ADDR" -- RANK=0 WORLD_SIZE=2 "$eval_loglik" "${run[@]}" --out never
program="env" expect 64 "MASTER_PORT" "99999" -- RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=99999 \
  "$eval_loglik" "${run[@]}" --out never
program="env" expect 64 "under torchrun" "--out" -- RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT=1 \
  "$eval_loglik" "${run[@]}"
[ -e never ] && fail "a refused worker made a folder"
program="env" succeed RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT=1 "$eval_loglik" "${run[@]}" --queue none --out none
alike none

# --- estimate-logz shares its chunks too.
logz=(u1 --base prior --witness none --problems 12 --chunk 1 --lease 2s)
program=$CRAIS_BIN/estimate-logz succeed "${logz[@]}" --out logz
"$CRAIS_BIN/estimate-logz" "${logz[@]}" --queue folder --out logz2 >out1.txt 2>err1.txt &
"$CRAIS_BIN/estimate-logz" "${logz[@]}" --queue folder --out logz2 >out2.txt 2>err2.txt || fail "estimate-logz: $(cat err2.txt)"
wait $! || fail "estimate-logz: $(cat err1.txt)"
same logz/per_problem.csv logz2/per_problem.csv
program=$CRAIS_BIN/estimate-logz expect 64 "--save-particles" -- "${logz[@]}" --queue folder --save-particles p.npy --out never

# --- Under torchrun, whose LibTorch must be that of the program.
torchrun=$CRAIS_SOURCE/.venv/bin/torchrun
[ -x "$torchrun" ] || torchrun=$(command -v torchrun)
[ $failures = 0 ] || finish
if [ -z "$torchrun" ]; then
  echo "SKIPPED: there is no torchrun"
  exit 77
fi
"$program" --version | grep -qF "LibTorch $("$(dirname "$torchrun")/python3" -c 'import torch; print(".".join(torch.__version__.split(".")[:2]))')" || {
  echo "SKIPPED: torchrun and eval-loglik have another LibTorch each"
  exit 77
}
export OMP_NUM_THREADS=1
start() { # FOLDER RESTARTS: sets pid, the agent's
  "$torchrun" --standalone --nproc-per-node 3 --max-restarts "$2" --no-python "$program" "${run[@]}" --out "$1" \
    >out.txt 2>err.txt &
  pid=$!
}
worker_of() { pgrep -P "$1" -f eval-loglik | shuf -n 1; }

# Workers are killed; torchrun starts them again, and they go on.
start killed 20
for count in 2 9 16; do
  until_chunks killed $count $pid || fail "killed: ended early: $(cat err.txt)"
  worker=$(worker_of $pid)
  [ -z "$worker" ] || kill -KILL "$worker"
done
wait $pid || fail "killed: exit $?: $(cat err.txt)"
alike killed
[ "$(tables out.txt)" = 1 ] || fail "killed: $(cat out.txt)"

# A worker is paused over its lease: the others do without it, and it comes back to a finished run.
start paused 0
until_chunks paused 2 $pid || fail "paused: ended early: $(cat err.txt)"
worker=$(worker_of $pid)
kill -STOP "$worker"
wait_for paused/summary.json $pid || fail "paused: no report without it: $(cat err.txt)"
same whole/per_image.csv paused/per_image.csv
kill -CONT "$worker"
wait $pid || fail "paused: exit $?: $(cat err.txt)"
alike paused

# The agent is killed, and its store with it: workers end with 75 and say why.
start orphaned 0
until_chunks orphaned 2 $pid || fail "orphaned: ended early: $(cat err.txt)"
mapfile -t orphans < <(pgrep -P $pid -f eval-loglik)
kill -KILL $pid
wait $pid 2>/dev/null
for orphan in "${orphans[@]}"; do
  while kill -0 "$orphan" 2>/dev/null; do sleep 0.05; done
done
[ "$(grep -c 'the store at .* is lost: .*the same command goes on' err.txt)" = 3 ] || fail "orphaned: $(cat err.txt)"
[ -e orphaned/summary.json ] && fail "orphaned: finished before"
start orphaned 0
wait $pid || fail "orphaned, again: exit $?: $(cat err.txt)"
alike orphaned

# Other settings on the same folder are refused, and a store that is not there is said to be.
"$torchrun" --standalone --nproc-per-node 2 --no-python "$program" "${run[@]}" --repeats 2 --out killed >out.txt 2>err.txt &&
  fail "other settings were accepted"
grep -q 'eval-loglik: killed holds results of other settings: settings repeats is 2' err.txt || fail "other settings: $(cat err.txt)"
program="env" expect 75 "cannot reach the store at localhost:1" "waited" -- RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost \
  MASTER_PORT=1 "$eval_loglik" "${plain[@]}" --lease 1s --out away

# Without an agent's store the first process has it, as under a torchrun of LibTorch 1.13.
port=$((20000 + RANDOM % 10000))
for rank in 0 1; do
  env RANK=$rank WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$port "$program" "${plain[@]}" --threads 1 \
    --out hosted >out$rank.txt 2>err$rank.txt &
done
wait
alike hosted
[ "$(tables out0.txt)" -ne "$(tables out1.txt)" ] || fail "hosted: $(cat out0.txt err0.txt out1.txt err1.txt)"
finish
