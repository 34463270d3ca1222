#!/usr/bin/env bash
# What a hostile file, flag or folder does to the programs: one clear line, a code that is not 70
# (a fault of ours), and nothing of anybody's touched.
set -uo pipefail
program="${CRAIS_BIN:?}/eval-loglik"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA

use() { program="$CRAIS_BIN/$1"; }

use train-vae
succeed --data synthetic:600 --hidden 20 --latent 5 --epochs 2 --quiet --out vae
use eval-loglik
model=vae/vae.safetensors
small=("$model" --simulate 24 --steps 8 --chains 4 --chunk 8 --quiet)
succeed "${small[@]}" --out run

# --- Names that no file system takes, links that lead nowhere, a folder in a file's place.
long=$(printf 'n%.0s' $(seq 300))
ln -s loop loop
mkdir folder closed
expect 66 "too long" -- "$long.safetensors"
expect 66 "symbolic links" -- loop
expect 66 "folder" -- folder
expect 73 "too long" -- "${small[@]}" --out "$long"
expect 73 "symbolic links" -- "${small[@]}" --out loop
expect 66 "no run.json" -- merge "$long" --out merged
expect 66 "too long" -- "${small[@]}" --config "$long"
expect 66 "folder" -- "${small[@]}" --schedule file:folder
for name in train-vae estimate-logz reproduce; do
  use $name
  case $name in
    train-vae) arguments=(--data synthetic:60 --epochs 1 --quiet) ;;
    estimate-logz) arguments=(normal:2 --base prior --witness none --steps 4 --quiet) ;;
    reproduce) arguments=(figure-2d --seeds 2 --quiet) ;;
  esac
  expect 73 "too long" -- "${arguments[@]}" --out "$long"
  expect 73 "symbolic links" -- "${arguments[@]}" --out loop
  expect 64 "UTF-8" -- "${arguments[@]}" --out "$(printf 'caf\xe9')"
  expect 73 'in\nthe' -- "${arguments[@]}" --out "/proc/in
the way"
done
use eval-loglik
expect 64 "UTF-8" -- "${small[@]}" --binarisation "$(printf 'static:\xff')"

# --- Numbers beyond reason.
for flag in --steps --chains --leapfrog --repeats --chunk --pilot-images --max-steps; do
  expect 64 "$flag" "1000000000" -- "$model" --simulate 24 $flag 9223372036854775807 --dry-run
done
expect 64 "more evaluations" -- "$model" --simulate 24 --steps 1000000000 --chains 1000000000 --dry-run
expect 64 "--memory-limit" "512M" -- "${small[@]}" --memory-limit 0x10G
expect 64 "--threads" -- "${small[@]}" --threads 1000000000
succeed "$model" --simulate 1 --steps 4 --quiet --seed 9223372036854775807
[ -s err.txt ] && fail "one image: $(cat err.txt)"

for budget in 1e30 1.8e19 1e16 inf; do
  expect 64 "--budget" -- "$model" --simulate 24 --budget $budget
done
expect 64 "--max-evals does nothing without --target-error" -- "$model" --simulate 24 --max-evals 1000
expect 64 "--max-evals" "1e15" -- "$model" --simulate 24 --target-error 0.1 --max-evals 1e30
expect 64 "--max-evals" "this machine has" -- "$model" --simulate 24 --target-error 1e-12 --max-evals 1e15 --steps 4 --quiet
expect 64 "--pilot-chains" "this machine has" -- "$model" --simulate 24 --pilot-chains 900000000 --quiet
expect 64 "--chains" "this machine has" -- "$model" --simulate 4096 --chains 900000000 --chunk 4096 --steps 4 --quiet
expect 64 "--chains" "this machine has" -- "$model" --simulate 24 --chains 900000000 --resample systematic:0.5 --steps 4 --quiet

# --- Words of any length, and of several lines, from the command line and from files.
word=$(head -c 50000 /dev/zero | tr '\0' a)
for name in eval-loglik train-vae estimate-logz reproduce; do
  use $name
  expect 64 "unknown flag --flag" -- "--flag=$word"
  expect 64 "unknown flag" -- "--$word"
done
use eval-loglik
expect 64 "unknown schedule" -- "$model" --simulate 3 "--schedule=$word"
expect 64 "unknown schedule" 'a\nb' -- "$model" --simulate 3 --schedule $'a\nb'
printf '{"schedule": "\x60%s\x60"}' "$word" >backticks.json
expect 64 "unknown schedule" -- "$model" --simulate 3 --config backticks.json
printf '{"schedule": "a\\u0000b"}' >nul.json
expect 65 "nul.json" "NUL" -- "$model" --simulate 3 --config nul.json
printf '0\n\x60%s\x60\n1\n' "$word" >backticks
expect 65 "backticks: line 2" -- "$model" --simulate 3 --schedule file:backticks
cp -r run lying
sed -i "s/\"method\": \[/\"method\": [ \"\`$word\`\", /" lying/run.json
expect 65 "lying" -- merge lying --out merged

# --- Arrays of other dimensions than images have.
python3 - <<'PYTHON' 2>/dev/null && {
import numpy
numpy.save("flat.npy", numpy.zeros(100, "float32"))
numpy.save("one.npy", numpy.zeros((), "float32"))
numpy.save("many.npy", numpy.zeros((2, 1, 1, 1, 28, 28), "float32"))
PYTHON
  expect 65 "flat.npy: images are 1, the checkpoint's are 28 x 28" -- "$model" --data flat.npy
  expect 65 "one.npy" "single number" -- "$model" --data one.npy
  succeed "$model" --data many.npy --steps 4 --chains 2 --quiet
}

# --- A run.json that lies.
lie() { # SED WORDS...: what the change makes of `merge`
  rm -rf lying && cp -r run lying
  sed -i "$1" lying/run.json
  shift
  expect 65 "lying/run.json" "$@" -- merge lying --out merged
  [ -e merged ] && fail "a refused merge left a folder"
}
lie 's/"chunk": 8/"chunk": 0/' "no run"
lie 's/"chunk": 8/"chunk": -1/' "no run"
lie 's/"chunk": 8/"chunk": 9223372036854775807/' "no run"
lie 's/"count": 24/"count": 0/' "no run"
lie 's/"count": 24/"count": 4611686018427387904/' "no run"
lie 's/"repeats": 1/"repeats": 0/' "no run"
lie 's/"chunk": 8/"chunk": "8"/' "chunk"
lie '1s/^{/[/' "not valid JSON"
rm -rf lying && cp -r run lying && rm -r lying/chunks
for command in "merge lying --out merged" "diagnose lying" "compare lying run"; do
  # shellcheck disable=SC2086
  expect 65 "lying/chunks" "holds no chunk" -- $command
done
rm -rf lying && cp -r run lying && rm lying/plan.json
expect 65 "plan.json" -- merge lying --out merged
succeed merge run --out merged
same run/per_image.csv merged/per_image.csv

# --- Another program's folder, somebody's files, links.
use estimate-logz
succeed normal:2 --steps 4 --quiet --out density
expect 64 "other settings" -- normal:2 --steps 4 --quiet --out run --resume
use eval-loglik
expect 64 "already holds results" -- "${small[@]}" --out density
expect 64 "other settings" -- "${small[@]}" --out density --resume
mkdir mine theirs linked
echo mine >mine/summary.json
expect 64 "summary.json" "--overwrite" -- "${small[@]}" --out mine
[ "$(cat mine/summary.json)" = mine ] || fail "somebody's summary.json is gone"
echo theirs >theirs/000001.json
ln -s ../theirs linked/chunks
expect 64 "is a link" -- "${small[@]}" --out linked --overwrite
[ "$(ls theirs)" = 000001.json ] || fail "a link was followed: $(ls theirs)"
use train-vae
mkdir foreign
echo weights >foreign/vae.safetensors
expect 64 "foreign" "--overwrite" -- --data synthetic:600 --hidden 20 --latent 5 --epochs 2 --quiet --out foreign --resume
[ "$(cat foreign/vae.safetensors)" = weights ] || fail "a foreign checkpoint is overwritten"
use eval-loglik

# --- A schedule that changes under a run.
printf '0\n0.2\n1\n' >betas
succeed "${small[@]}" --schedule file:betas --out scheduled
rm scheduled/chunks/000001.json scheduled/summary.json
printf '0\n0.5\n1\n' >betas
expect 64 "schedule_sha256" -- "${small[@]}" --schedule file:betas --out scheduled --resume
printf '0\n0.2\n1\n' >betas
succeed "${small[@]}" --schedule file:betas --out scheduled --resume

# --- Weights that are finite and huge.
if command -v python3 >/dev/null; then
  python3 - "$model" huge.safetensors <<'PYTHON'
import array, json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8 : 8 + size])
numbers = array.array("f", data[8 + size :])
numbers = array.array("f", (x * 1e30 for x in numbers))
open(sys.argv[2], "wb").write(data[: 8 + size] + numbers.tobytes())
PYTHON
  expect 65 "encoder" -- huge.safetensors --simulate 8 --steps 4 --quiet
  "$program" huge.safetensors --simulate 8 --steps 4 --quiet --base prior >out.txt 2>err.txt
  grep -q 'encoder' err.txt && fail "--base prior asks the encoder: $(cat err.txt)"
  expect 65 "encoder" -- huge.safetensors --simulate 8 --method iwae:10 --base encoder --quiet
fi

# --- Nothing that a user types is a command.
use reproduce
command -v gnuplot >/dev/null && {
  out="out
system 'touch pwned'
set output 'x"
  succeed figure-2d --seeds 2 --quiet --out "$out"
  [ -e pwned ] && fail "gnuplot ran a folder's name"
  [ -s "$out/figure-2d/index.html" ] || fail "no page: $(ls "$out/figure-2d")"
}
finish
