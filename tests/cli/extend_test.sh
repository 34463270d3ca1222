#!/usr/bin/env bash
# eval-loglik extend: the bytes of one run, whatever stops it, and what it refuses.
set -uo pipefail
program="${CRAIS_BIN:?}/eval-loglik"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA

small_vae vae --epochs 2
model=vae/vae.safetensors
small=("$model" --method ais --method iwae:20 --base laplace --steps 8 --quiet)

# --- Chains, then images, then both: each the bytes of a run that had asked for all.
alike() { # FOLDER ARGUMENTS...: of one run
  local folder=$1
  shift
  rm -rf whole
  succeed "${small[@]}" "$@" --out whole
  for file in per_image.csv run.json plan.json schedule.csv thumbnails.npy; do same "$folder/$file" "whole/$file"; done
  python3 - "$folder" <<'PYTHON' || fail "$folder/summary.json is not that of one run"
import json, sys
a, b = (json.load(open(f"{f}/summary.json")) for f in (sys.argv[1], "whole"))
assert a["results"][0].pop("seconds", 0) >= 0
strip = lambda r: {k: v for k, v in r.items() if "second" not in k}
assert [strip(r) for r in a["results"][1:]] == [strip(r) for r in b["results"][1:]]
assert strip(a["results"][0]) == strip(b["results"][0]), (a["results"][0], b["results"][0])
PYTHON
}
succeed "${small[@]}" --simulate 40 --chunk 16 --chains 420 --out more
succeed extend more --chains +60 --quiet
alike more --simulate 40 --chunk 16 --chains 480 --pilot-chains 256
grep -q '^ais ' out.txt || fail "extend prints no table"
succeed extend more --images +30 --quiet
alike more --simulate 70 --chunk 16 --chains 480 --pilot-chains 256
succeed extend more --images +2 --chains +500 --quiet --threads 2
alike more --simulate 72 --chunk 16 --chains 980 --pilot-chains 256
python3 - <<'PYTHON' 2>/dev/null && {
import numpy
numpy.save("images.npy", numpy.random.default_rng(1).integers(0, 256, (60, 28, 28)).astype("uint8"))
PYTHON
  succeed "${small[@]}" --data images.npy --binarisation static:0 --indices 10:40 --chains 16 --out of-a-file
  succeed extend of-a-file --images +10 --quiet
  alike of-a-file --data images.npy --binarisation static:0 --indices 10:50 --chains 16
  expect 64 "--indices" "beyond the 60 images" -- extend of-a-file --images +20 --quiet
  succeed "${small[@]}" --data images.npy --binarisation static:0 --limit 50 --chains 16 --out limited
  expect 64 "--images" "has 50 images" "there are 60" -- extend limited --images +20 --quiet
  succeed extend limited --images +10 --quiet
  alike limited --data images.npy --binarisation static:0 --limit 60 --chains 16
  cp images.npy kept.npy
  python3 -c 'import numpy; x = numpy.load("images.npy"); x[12] = 0; numpy.save("images.npy", x)'
  expect 65 "the data have changed" -- extend of-a-file --images +5 --quiet
  mv kept.npy images.npy
}

# --- Stopped and killed, it goes on; until it has, the folder is what it was.
untouched() { # FOLDER BEFORE: the same files, but for the extension's
  diff -r -x extension "$1" "$2" >diff.txt || fail "$1 is not what it was: $(cat diff.txt)"
}
succeed "${small[@]}" --simulate 64 --chunk 4 --chains 1700 --out stopped
cp -r stopped killed
cp -r stopped whole-before
expect 75 "time is up" "the same command goes on" -- extend stopped --chains +20000 --quiet --threads 1 --max-time 1s
[ -e stopped/extension/run.json ] || fail "nothing says that an extension is under way"
untouched stopped whole-before
expect 64 "another extension is under way" -- extend stopped --chains +1 --quiet
"$program" extend killed --chains +1300 --quiet --threads 1 >out.txt 2>err.txt &
pid=$!
wait_for killed/extension/run.json $pid || fail "no extension began: $(cat err.txt)"
sleep 0.3
kill -KILL $pid 2>/dev/null
wait $pid 2>/dev/null
succeed extend killed --chains +1300 --quiet # the same command, or without a number
[ -e killed/extension ] && fail "an extension that is over is still under way"
alike killed --simulate 64 --chunk 4 --chains 3000 --pilot-chains 256
rm -rf stopped whole-before

# --- A disk that is full when the report comes: the same command adds no second time.
succeed "${small[@]}" --simulate 24 --chunk 8 --chains 8 --out full
cp -r full full-before
mkdir -p full/extension/report.html/in-the-way
expect 73 "report.html" -- extend full --chains +2 --quiet
untouched full full-before
rm -r full/extension/report.html
succeed extend full --chains +2 --quiet
alike full --simulate 24 --chunk 8 --chains 10 --pilot-chains 8
[ -e full/extension ] && fail "full: an extension that is over is still under way"

# --- A shard stays one.
for i in 1 2; do
  succeed "${small[@]}" --simulate 40 --chunk 8 --chains 8 --shard $i/2 --out part$i
  succeed extend part$i --chains +8 --quiet
  grep -q "\"shard\": \"$i/2\"" part$i/summary.json || fail "part$i became $(grep shard part$i/summary.json)"
done
[ "$(find part1/chunks -name '*.json' | wc -l)" = 3 ] || fail "part1 has chunks of part2: $(ls part1/chunks)"
succeed merge part1 part2 --out parts
succeed "${small[@]}" --simulate 40 --chunk 8 --chains 16 --pilot-chains 8 --out unparted
same parts/per_image.csv unparted/per_image.csv
for shard in '"auto"' '"3"' '"0/2"' '7'; do
  sed "s|\"shard\": \"1/2\"|\"shard\": $shard|" parts/../part1/summary.json >summary.json
  cp summary.json part1/summary.json
  expect 65 "part1/summary.json" "shard" -- extend part1 --chains +8
  sed -i "s|\"shard\": $shard|\"shard\": \"1/2\"|" part1/summary.json
done

# --- Another model in the file's place, other data, another build.
small_vae other --epochs 2 --seed 9
cp $model first.safetensors
succeed "${small[@]}" --simulate 24 --chunk 8 --chains 8 --out mine
cp -r mine mine-before
cp other/vae.safetensors $model
for more in "--chains +16" "--images +20" "--images +20 --chains +8"; do
  # shellcheck disable=SC2086
  expect 64 "mine: what it was made of has changed: checkpoint sha256" -- extend mine $more --quiet
  untouched mine mine-before
done
cp first.safetensors $model
CRAIS_EVALUATOR=aten expect 64 "another build" "--accept-other-version" -- extend mine --chains +16 --quiet
untouched mine mine-before
printf '0\n0.5\n1\n' >betas
succeed "$model" --simulate 24 --chains 8 --schedule file:betas --quiet --out scheduled
printf '0\n0.6\n1\n' >betas
expect 64 "schedule_sha256" -- extend scheduled --chains +8 --quiet

# --- MNIST that is not at hand is not replaced by simulated images.
python3 - <<'PYTHON' 2>/dev/null && {
import os, numpy, struct
os.makedirs("data")
pixels = numpy.random.default_rng(3).integers(0, 256, (60, 28, 28)).astype("uint8")
open("data/t10k-images-idx3-ubyte", "wb").write(struct.pack(">iiii", 2051, 60, 28, 28) + pixels.tobytes())
open("data/t10k-labels-idx1-ubyte", "wb").write(struct.pack(">ii", 2049, 60) + bytes(60))
PYTHON
  rm data/t10k-labels-idx1-ubyte
  mkdir away && mv data away/mnist
  succeed "${small[@]}" --data-dir away/mnist --limit 20 --chunk 8 --chains 8 --out digits
  cp -r digits digits-before
  expect 64 "digits" "MNIST" "--data-dir" -- extend digits --chains +8 --quiet
  untouched digits digits-before
  succeed extend digits --chains +8 --quiet --data-dir away/mnist
  alike digits --data-dir away/mnist --limit 20 --chunk 8 --chains 16 --pilot-chains 8
}

# --- What cannot be extended says why.
expect 64 "how many more" "--chains +N" -- extend more
expect 64 "how many more, as +16" -- extend more --chains 16
expect 64 "from +1" -- extend more --chains +0
expect 64 "whole number" -- extend more --images +many
expect 66 "holds no evaluation" -- extend vae --chains +1
expect 64 "unexpected" -- extend more whole --chains +1
expect 64 "--steps" -- extend more --chains +1 --steps 9
for flags in "--budget 500" "--target-error 0.5" "--resample systematic:0.5" "--method elbo"; do
  rm -rf other
  # shellcheck disable=SC2086
  succeed "$model" --simulate 10 --chains 8 --steps 8 --quiet --out other $flags
  expect 64 "other: chains cannot be added" -- extend other --chains +8
done
rm -rf other
succeed "$model" --simulate 10 --chains 8 --steps 8 --quiet --out other
sed -i 's/"chains": 8/"chains": -8/' other/run.json
expect 65 "other/run.json" "--chains" -- extend other --chains +8
echo '{"checkpoint": {"path": 7}}' >more/summary.json
expect 65 "more/summary.json" "model's file" -- extend more --chains +1
rm more/summary.json
expect 64 "finish the run first" -- extend more --chains +1

finish
