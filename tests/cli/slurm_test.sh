#!/usr/bin/env bash
# eval-loglik on a cluster: shards by the environment, runs that end in time or by a warning, and the
# script of submit under a Slurm that is made of three scripts.
set -uo pipefail
program="${CRAIS_BIN:?}/eval-loglik"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA RANK WORLD_SIZE
for variable in $(compgen -e SLURM_); do unset "$variable"; done

small_vae vae --epochs 2
model=vae/vae.safetensors
small=("$model" --simulate 50 --steps 8 --chains 4 --chunk 8 --quiet)

# --- --shard auto is the shard that the launcher says.
shards=0
alike() { # i/N VARIABLE=VALUE...
  local shard=$1 by=auto$((++shards))
  shift
  [ -d "shard-${shard/\//-of-}" ] || succeed "${small[@]}" --shard "$shard" --out "shard-${shard/\//-of-}"
  env "$@" "$program" "${small[@]}" --shard auto --out "$by" >out.txt 2>err.txt || fail "$*: exit $?: $(cat err.txt)"
  same "shard-${shard/\//-of-}/per_image.csv" "$by/per_image.csv"
  same "shard-${shard/\//-of-}/run.json" "$by/run.json"
  grep -q "\"shard\": \"$shard\"" "$by/summary.json" || fail "$*: $(grep '"shard"' "$by/summary.json")"
  grep -q '"auto/' "$by/summary.json" && fail "$*: summary.json says auto"
}
array() { # ID COUNT MIN STEP
  echo "SLURM_ARRAY_TASK_ID=$1 SLURM_ARRAY_TASK_COUNT=$2 SLURM_ARRAY_TASK_MIN=$3 SLURM_ARRAY_TASK_STEP=$4"
}
# shellcheck disable=SC2046  # words
{
  alike 1/3 $(array 0 3 0 1)
  alike 3/3 $(array 3 3 1 1)
  alike 2/3 $(array 7 3 2 5)
  alike 2/3 SLURM_PROCID=1 SLURM_NTASKS=3
  alike 4/6 $(array 2 3 1 1) SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2
  alike 3/3 RANK=2 WORLD_SIZE=3
}
refuse() { # WORDS... -- VARIABLE=VALUE...
  local words=() eval_loglik=$program program=/usr/bin/env
  while [ "$1" != -- ]; do words+=("$1") && shift; done
  shift
  expect 64 --shard "${words[@]}" -- "$@" "$eval_loglik" "${small[@]}" --shard auto
}
refuse SLURM_ARRAY_TASK_ID SLURM_PROCID RANK -- -u RANK
refuse WORLD_SIZE -- RANK=1
refuse SLURM_ARRAY_TASK_COUNT -- SLURM_ARRAY_TASK_ID=1
refuse "'two' is not a whole number" -- RANK=two WORLD_SIZE=3
refuse "RANK is 3" -- RANK=3 WORLD_SIZE=3
refuse srun -- SLURM_JOB_ID=1 SLURM_PROCID=0 SLURM_NTASKS=3
refuse "only 7 chunks" -- RANK=0 WORLD_SIZE=8

# --- A run that ends in time, and one that is warned, go on to the bytes of one left alone.
# Three times as long as this machine needs to be stopped by a second: by then it may have less to do.
for ((steps = 250; steps <= 64000; steps *= 2)); do
  long=("$model" --simulate 64 --steps "$steps" --chains 8 --chunk 4 --quiet --step-size 0.5)
  rm -rf timed
  "$program" "${long[@]}" --threads 1 --out timed --max-time 1s >out.txt 2>err.txt
  [ $? = 75 ] && break
done
rm -rf timed
steps=$((3 * steps))
long=("$model" --simulate 64 --steps "$steps" --chains 8 --chunk 4 --quiet --step-size 0.5)
succeed "${long[@]}" --out whole
expect 75 "time is up" "of 64 images done" "--resume" -- "${long[@]}" --threads 1 --out timed --max-time 1s
[ -e timed/summary.json ] && fail "--max-time 1s: finished"
succeed "${long[@]}" --out timed --max-time 1h --resume
same whole/per_image.csv timed/per_image.csv
same whole/run.json timed/run.json
expect 64 "--max-time" "--out" -- "${long[@]}" --max-time 1h
expect 64 "--max-time" "55m" -- "${long[@]}" --max-time 10 --out never
program=$CRAIS_BIN/estimate-logz expect 64 "--save-particles" "--max-time" -- normal --save-particles a.npy --max-time 1h --out never
program=$CRAIS_BIN/estimate-logz expect 75 "time is up" "--resume" -- u1 --base prior --witness none --chunk 1 --chains 4096 --problems 1000 --quiet --out logz \
  --max-time 1s

"$program" "${long[@]}" --threads 1 --out warned >out.txt 2>err.txt &
pid=$!
wait_for warned/chunks/000000.json $pid || fail "no first chunk: $(cat err.txt)"
kill -USR1 $pid
kill -TERM $pid 2>/dev/null
wait $pid
status=$?
[ $status = 75 ] || fail "exit $status after SIGUSR1: $(cat err.txt)"
grep -q 'interrupted; .* of 64 images done.*--resume' err.txt || fail "SIGUSR1 says: $(cat err.txt)"
[ -e warned/summary.json ] && fail "finished before SIGUSR1"
succeed "${long[@]}" --out warned --resume
same whole/per_image.csv warned/per_image.csv

# --- submit: what the script does, under an sbatch that runs each task at once, and again where it
# asks for it. The second task is warned once, after its first chunk.
mkdir bin
cat >bin/sbatch <<'SBATCH'
#!/usr/bin/env bash
set -u
dependency='' tasks=0 output=/dev/null
for argument in "$@"; do
  case $argument in
    --array=1-*) tasks=${argument#--array=1-} ;;
    --dependency=afterok:*) dependency=${argument#--dependency=afterok:} ;;
    --output=*) output=${argument#--output=} ;;
  esac
done
printf '%s\n' "$@" >>"$FAKE/sbatch.log"
id=$(($(cat "$FAKE/id" 2>/dev/null || echo 100) + 1))
echo $id >"$FAKE/id"
cat >"$FAKE/script.$id"
read -r first <"$FAKE/script.$id"
[[ $first = '#!'* ]] || exit 1
bash -n "$FAKE/script.$id" || exit 1
if command -v shellcheck >/dev/null; then shellcheck --norc --severity=warning "$FAKE/script.$id" >&2 || exit 1; fi
if [ -n "$dependency" ] && [ ! -e "$FAKE/ok.$dependency" ]; then exit 1; fi
[[ $(sed 's/%%//g; s/%[Aaj]//g' <<<"$output") = *%* ]] && exit 1 # no pattern that sbatch knows
status=0
log() { echo "${output/\%A_%a/${id}_$1}" | sed "s/%j/$id/; s/%%/%/g"; }
export SLURM_JOB_ID=$id SLURM_PROCID=0
if [ "$tasks" = 0 ]; then
  bash "$FAKE/script.$id" >>"$(log 0)" 2>&1 || status=1
else
  export SLURM_ARRAY_JOB_ID=$id SLURM_ARRAY_TASK_COUNT=$tasks SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=1
  for task in $(seq "$tasks"); do
    while :; do
      SLURM_ARRAY_TASK_ID=$task bash "$FAKE/script.$id" >>"$(log "$task")" 2>&1 || status=1
      rm "$FAKE/requeue.${id}_$task" 2>/dev/null || break
    done
  done
fi
[ $status = 0 ] && touch "$FAKE/ok.$id"
echo "$id;cluster"
SBATCH
cat >bin/scontrol <<'SCONTROL'
#!/usr/bin/env bash
[ "$1" = requeue ] && touch "$FAKE/requeue.$2" && echo "$2" >>"$FAKE/requeues"
SCONTROL
cat >bin/srun <<'SRUN'
#!/usr/bin/env bash
set -u
[ -n "${FAKE_STATUS:-}" ] && exit "$FAKE_STATUS"
export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1
while [[ $1 = --* ]]; do
  [[ $1 = --ntasks=* ]] && SLURM_STEP_NUM_TASKS=${1#--ntasks=}
  shift
done
"$@" &
pid=$!
if [ "$SLURM_ARRAY_TASK_ID" = 2 ] && [ ! -e "$FAKE/warned" ]; then
  touch "$FAKE/warned"
  until ls "$FAKE_OUT"/shards/2-of-*/chunks/*.json >/dev/null 2>&1; do
    kill -0 $pid 2>/dev/null || break
    sleep 0.02
  done
  kill -USR1 $pid
fi
wait $pid
SRUN
chmod +x bin/*

mkdir "its a \"model's\"" fake
cp "$model" "its a \"model's\"/a \$model.safetensors"
whole=(--simulate 64 --steps "$steps" --chains 8 --chunk 4 --step-size 0.5)
succeed submit slurm "its a \"model's\"/a \$model.safetensors" "${whole[@]}" --quiet --out "my 100% 'out'" --tasks 3 \
  --time 2:00:00 --cpus 2 --sbatch "--partition=long --mem=2G" --sbatch --account=me
cp out.txt script.sh
bash -n script.sh || fail "bash -n: $(cat script.sh)"
if command -v shellcheck >/dev/null; then shellcheck --norc --severity=warning script.sh || fail "shellcheck: $(cat script.sh)"; fi
[ -e "my 100% 'out'" ] && fail "submit made a folder"
export FAKE=$work/fake FAKE_OUT="$work/my 100% 'out'"
submitted() { (cd / && PATH="$work/bin:$PATH" bash "$work/$1" >"$work/out.txt" 2>"$work/err.txt"); }
logs() { cat "my 100% 'out'"/logs/*; }
submitted script.sh || fail "the script: exit $?: $(cat err.txt; logs)"
same whole/per_image.csv "my 100% 'out'/merged/per_image.csv"
[ "$(cat fake/requeues)" = 101_2 ] || fail "requeued: $(cat fake/requeues)"
[ -e "my 100% 'out'/logs/101_2.txt" ] || fail "logs: $(ls "my 100% 'out'/logs")"
for option in --array=1-3 --requeue --signal=USR1@60 --time=0-02:00:00 --cpus-per-task=2 --partition=long --mem=2G \
  --account=me --dependency=afterok:101; do
  grep -qxF -- "$option" fake/sbatch.log || fail "no $option in $(cat fake/sbatch.log)"
done
grep -q -- '--max-time 6600s --threads 2' script.sh || fail "the task: $(cat script.sh)"
submitted script.sh || fail "again: exit $?: $(cat err.txt)"
same whole/per_image.csv "my 100% 'out'/merged/per_image.csv"

# A task that fails for good is not requeued, and nothing is merged.
rm -r "my 100% 'out'" fake/*
FAKE_STATUS=65 submitted script.sh && fail "merged what has failed"
[ -e fake/requeues ] && fail "requeued after exit 65"
[ -e "my 100% 'out'/merged" ] && fail "merged after exit 65"
# Neither is one that had all its time and finished nothing.
mkdir -p "my 100% 'out'/logs"
sed 's/-ge 6600/-ge 0/' script.sh >futile.sh
FAKE_STATUS=75 submitted futile.sh && fail "merged what has not begun"
[ -e fake/requeues ] && fail "requeued in vain"
grep -rq 'longer --time' "my 100% 'out'/logs" || fail "in vain: $(logs)"

# --- What submit refuses.
task=(submit slurm "$model" --simulate 50 --chunk 8 --out never)
for flags in "--shard 1/2" "--resume" "--overwrite" "--max-time 1h" "--threads 2" "--dry-run"; do
  # shellcheck disable=SC2086  # words
  expect 64 "${flags%% *}" -- "${task[@]}" --tasks 2 $flags
done
expect 64 "--tasks" "7 chunks" -- "${task[@]}" --tasks 8
expect 64 "--tasks" -- "${task[@]}"
expect 64 "--tasks" -- "${task[@]}" --tasks 0
expect 64 "--out" -- submit slurm "$model" --tasks 2
expect 64 "--time" -- "${task[@]}" --tasks 2 --time soon
expect 64 "--time" "3m" -- "${task[@]}" --tasks 2 --time 2m
expect 64 "--sbatch" "dash" -- "${task[@]}" --tasks 2 --sbatch gpu
expect 64 "--sbatch" -- "${task[@]}" --tasks 2 --sbatch ""
expect 64 "unknown schedule" -- "${task[@]}" --tasks 2 --schedule fast
expect 64 "unknown scheduler 'pbs'" "slurm" -- submit pbs "$model" --out never --tasks 2
expect 64 "submit slurm MODEL" -- submit slurm --out never --tasks 2
expect 64 "submit comes first" -- --quiet submit slurm "$model" --out never
expect 64 "unknown flag --tasks" -- "$model" --tasks 2
expect 66 "missing.safetensors" -- submit slurm missing.safetensors --out never --tasks 2
succeed "${task[@]}" --tasks 2 --device cuda
grep -q -- '--device cuda' out.txt || fail "--device cuda: $(cat out.txt)"
expect 64 "--device" -- "${task[@]}" --tasks 2 --device tpu
succeed submit --help
grep -q -- '--tasks' out.txt || fail "submit --help: $(cat out.txt)"
[ -e never ] && fail "submit made a folder"
finish
