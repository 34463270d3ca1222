#!/usr/bin/env bash
# eval-loglik --rate-distortion as a user meets it: files, repetition to the byte, bad input.
set -uo pipefail
program="${CRAIS_BIN:?}/eval-loglik"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA

small_vae vae --epochs 2
model=vae/vae.safetensors
data=$CRAIS_SOURCE/tests/models/data
curve=("$model" --simulate 40 --schedule constant-length:0.3 --chains 4 --chunk 8 --quiet)

# --- What a run leaves behind.
succeed "${curve[@]}" --rate-distortion nll --threads 1 --out straight
[ -s err.txt ] && fail "--quiet printed $(cat err.txt)"
grep -q '^Rate and distortion (negative log-likelihood), means over 40 images' out.txt || fail "stdout: $(cat out.txt)"
for file in rate_distortion.csv summary.json report.html; do
  [ -s straight/$file ] || fail "no $file"
done
if command -v gnuplot >/dev/null; then
  grep -q '<svg' straight/rate_distortion.svg || fail "no picture"
  grep -q 'Rate and distortion' straight/report.html || fail "no section of the page"
fi
if command -v python3 >/dev/null; then
  python3 - <<'PYTHON' || fail "the curve as Python reads it"
import csv, json, math
summary = json.load(open("straight/summary.json"))
(result,) = summary["results"]
rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(open("straight/rate_distortion.csv"))]
assert result["method"] == "rate-distortion:reverse=1" and result["base"] == "prior"
assert len(rows) == result["transitions"] + 1 == summary["rate_distortion"]["temperatures"]
assert result["evaluations_per_image"]["estimating"] == 2 * 4 * len(rows)
first, last = rows[0], rows[-1]
assert first["beta"] == first["rate"] == 0 and last["beta"] == 1
assert all(a["beta"] < b["beta"] for a, b in zip(rows, rows[1:]))
for row in rows:  # R + beta D = -log Z
    assert abs(row["rate"] + row["beta"] * row["distortion"] + row["log_normalizer"]) < 1e-6
assert abs(last["rate"] + last["distortion"] + result["log_likelihood"]) < 1e-6
assert abs(last["gap"] - result["certificate"]["gap"]) < 1e-6
assert abs(last["reverse_rate"] - last["rate"] + last["gap"]) < 1e-9
assert abs(last["rate_bits_per_dim"] * 784 * math.log(2) - last["rate"]) < 1e-6
assert last["rate"] > rows[len(rows) // 2]["rate"] > 0 and last["distortion"] < first["distortion"]
point = summary["rate_distortion"]["points"][-1]
assert point["beta"] == 1 and abs(point["rate"]["mean"] - last["rate"]) < 1e-9
PYTHON
fi

# --- The same bytes: other threads, shards, resumed.
same_curve() { for file in rate_distortion.csv per_image.csv schedule.csv; do same straight/$file "$1/$file"; done; }
succeed "${curve[@]}" --rate-distortion nll --threads 2 --out threads
same_curve threads
succeed "${curve[@]}" --rate-distortion nll --shard 1/2 --out shard1
succeed "${curve[@]}" --rate-distortion nll --shard 2/2 --out shard2
succeed merge shard1 shard2 --out merged
same_curve merged
grep -q '^Rate and distortion' out.txt || fail "merge prints no curve"
cp -r straight resumed
rm resumed/chunks/000001.json resumed/rate_distortion.csv resumed/summary.json
succeed "${curve[@]}" --rate-distortion nll --resume --out resumed
same_curve resumed
succeed "${curve[@]}" --rate-distortion nll --seed 1 --out seed
differ straight/rate_distortion.csv seed/rate_distortion.csv
expect 64 "other settings" -- "${curve[@]}" --rate-distortion mse:0.3 --resume --out straight
expect 65 "another run" -- merge shard1 seed --out strangers
sed -i 's/"squares":\[0/"squares":[1/' resumed/chunks/000001.json
expect 65 "000001.json" "damaged" -- "${curve[@]}" --rate-distortion nll --resume --out resumed

# --- Squared errors: of binary pixels' means, of a decoder without a likelihood.
succeed "${curve[@]}" --rate-distortion mse:0.3 --out mse
grep -q '^Rate and distortion (mean squared error)' out.txt || fail "stdout: $(cat out.txt)"
head -n 1 mse/rate_distortion.csv | grep -q ',noise_sd,mse$' || fail "csv: $(head -n 1 mse/rate_distortion.csv)"
alone=("$data/decoder_only.pt" --schedule constant-length:0.3 --chains 4 --quiet)
succeed "${alone[@]}" --simulate 20 --rate-distortion mse:0.3
expect 64 "without a likelihood" "--rate-distortion mse" -- "${alone[@]}" --simulate 20
expect 64 "without a likelihood" -- "${alone[@]}" --simulate 20 --rate-distortion nll
succeed "$data/linear_gaussian.pt" --simulate 20 --rate-distortion mse:0.3 --chains 4 --quiet
succeed "$data/linear_mlp.pt2" --simulate 20 --rate-distortion mse:0.3 --chains 4 --quiet

# --- Bad input.
expect 64 "--rate-distortion" "psnr" "mse:0.1" -- "${curve[@]}" --rate-distortion psnr
expect 64 "sd" -- "${curve[@]}" --rate-distortion mse:0
expect 64 "beta" -- "${curve[@]}" --rate-distortion nll:-1
expect 64 "mse:0.1" -- "${curve[@]}" --rate-distortion mse
expect 64 "nll:2" "--simulate" -- "${curve[@]}" --rate-distortion nll:2
expect 64 "--method" -- "${curve[@]}" --rate-distortion nll --method iwae
expect 64 "--rate-distortion nll" -- "${curve[@]}" --method rate-distortion
expect 64 "--base" "prior" -- "${curve[@]}" --rate-distortion nll --base laplace
expect 64 "--per-image" -- "${curve[@]}" --rate-distortion nll --per-image
expect 64 "--target-error" -- "${curve[@]}" --rate-distortion nll --target-error 0.1
expect 64 "--resample" -- "${curve[@]}" --rate-distortion nll --resample systematic
expect 64 "--path" "geometric" -- "${curve[@]}" --rate-distortion nll --path power:0.5
expect 64 "prior" "mixture" -- "$data/mixture_prior.pt" --simulate 5 --rate-distortion nll --quiet

finish
