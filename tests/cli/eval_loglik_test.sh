#!/usr/bin/env bash
# eval-loglik as a user meets it: files, repetition to the byte, resuming, shards, and bad input.
set -uo pipefail
program="${CRAIS_BIN:?}/eval-loglik"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA

small_vae vae --epochs 2
model=vae/vae.safetensors
small=("$model" --simulate 50 --steps 8 --chains 4 --chunk 8 --quiet)

# --- What a run leaves behind.
succeed "${small[@]}" --method ais --method iwae:20 --method elbo:20 --repeats 2 --threads 1 --out straight
[ -s err.txt ] && fail "--quiet printed $(cat err.txt)"
grep -q '^ais .* lower bound$' out.txt || fail "stdout: $(cat out.txt)"
for file in run.json plan.json summary.json per_image.csv schedule.csv chunks/000000.json; do
  [ -s straight/$file ] || fail "no $file"
done
find straight -name '*tmp*' | grep -q . && fail "temporary files stay"
[ "$(wc -l <straight/per_image.csv)" = $((1 + 50 * 3 * 2)) ] || fail "per_image.csv: $(wc -l <straight/per_image.csv) lines"
[ "$(wc -l <straight/schedule.csv)" = 10 ] || fail "schedule.csv: $(wc -l <straight/schedule.csv) lines"
if command -v python3 >/dev/null; then
  python3 - <<'PYTHON' || fail "summary.json as Python reads it"
import csv, json, statistics
summary = json.load(open("straight/summary.json"))
assert [r["method"] for r in summary["results"]] == ["ais", "iwae:20", "elbo:20"]
ais, iwae, elbo = summary["results"]
assert ais["images"] == 50 and ais["repeats"] == 2 and ais["transitions"] == 8
assert ais["evaluations_per_image"]["estimating"] == 4 * (1 + 8)
base = ais["evaluations_per_image"]["base"]
assert ais["base"] == "laplace"  # chosen: from each of three, a run that tunes and one that is judged
compared = 2 * 4 * (1 + 7) if summary["forces"] == "bfloat16" else 0  # forces, where cheap ones pay
tried = 16 * (base + 3 * 2 * 4 * (1 + 8) + compared) / 50
assert tried < ais["evaluations_per_image"]["tuning"] < tried + 16 * 4000 / 50  # the search for modes beside it
assert iwae["evaluations_per_image"]["estimating"] == 20 and iwae["evaluations_per_image"]["tuning"] == 0
assert iwae["evaluations_per_image"]["estimating_with_gradient"] == 0
assert iwae["evaluations_per_image"]["base"] == ais["evaluations_per_image"]["base"] > 9
assert elbo["log_likelihood"] < iwae["log_likelihood"] < 0
rows = list(csv.DictReader(open("straight/per_image.csv")))
values = [float(r["log_likelihood"]) for r in rows if r["method"] == "ais"]
assert abs(statistics.mean(values) - ais["log_likelihood"]) < 1e-9
assert sorted({int(r["image"]) for r in rows}) == list(range(50))
for key in ("seconds", "threads", "device", "libtorch", "crais", "settings", "checkpoint", "images"):
    assert key in summary, key
assert len(summary["checkpoint"]["sha256"]) == 64 and len(summary["images"]["sha256"]) == 64
assert summary["settings"]["steps"] == 8
PYTHON
fi

# --- The same bytes: again, with other threads, in shards, resumed, killed.
again=("${small[@]}" --method ais --method iwae:20 --method elbo:20 --repeats 2)
succeed "${again[@]}" --threads 2 --out threads
same straight/per_image.csv threads/per_image.csv
same straight/schedule.csv threads/schedule.csv
succeed "${again[@]}" --seed 1 --out seed
differ straight/per_image.csv seed/per_image.csv

succeed "${again[@]}" --shard 1/2 --out shard1
succeed "${again[@]}" --shard 2/2 --out shard2
succeed merge shard1 shard2 --out merged
same straight/per_image.csv merged/per_image.csv
same straight/schedule.csv merged/schedule.csv
expect 65 "in none of the folders" -- merge shard1 --out gap
expect 65 "earlier folder" -- merge shard1 shard1 --out twice
expect 65 "another run" -- merge shard1 seed --out strangers
expect 66 "no evaluation" -- merge vae --out nothing
expect 64 "--out" -- merge shard1 shard2
[ -e gap/summary.json ] && fail "a refused merge left results"

cp -r straight partial
rm partial/chunks/00000[3-5].json partial/summary.json partial/per_image.csv
succeed "${again[@]}" --out partial --resume
same straight/per_image.csv partial/per_image.csv
expect 64 "--resume" "--overwrite" -- "${again[@]}" --out straight
expect 64 "steps is 9 here and 8 there" -- "$model" --simulate 50 --steps 9 --chains 4 --chunk 8 --quiet \
  --method ais --method iwae:20 --method elbo:20 --repeats 2 --out straight --resume
expect 64 "exclude each other" -- "${again[@]}" --out straight --resume --overwrite
expect 64 "needs --out" -- "${again[@]}" --resume
succeed "${again[@]}" --out partial --overwrite
same straight/per_image.csv partial/per_image.csv

long=("$model" --simulate 64 --steps 4000 --chains 8 --chunk 8 --quiet --step-size 0.5)
for signal in INT KILL; do
  "$program" "${long[@]}" --threads 1 --out stopped$signal >out.txt 2>err.txt &
  pid=$!
  wait_for stopped$signal/chunks/000001.json $pid || fail "no second chunk: $(cat err.txt)"
  kill -$signal $pid
  wait $pid 2>/dev/null
  status=$?
  [ -e stopped$signal/summary.json ] && fail "finished before SIG$signal"
  if [ $signal = INT ]; then
    [ $status = 75 ] || fail "exit $status after Ctrl-C: $(cat err.txt)"
    grep -q 'of 64 images done.*--resume' err.txt || fail "Ctrl-C says: $(cat err.txt)"
  fi
  succeed "${long[@]}" --threads 2 --out stopped$signal --resume
done
same stoppedINT/per_image.csv stoppedKILL/per_image.csv

# A chunk that would take an hour is given up, and so is a pilot.
ended() { # PID: within 20 seconds
  for _ in $(seq 400); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.05
  done
  kill -9 "$1"
  return 1
}
for what in "--chains 100000 --step-size 0.5 --base prior" "--steps 100000 --schedule constant-rate:0.001" \
  "--method iwae:100000000"; do
  for signal in TERM HUP; do
    rm -rf given-up
    # shellcheck disable=SC2086  # words
    "$program" "$model" --simulate 64 --threads 1 $what --out given-up >out.txt 2>err.txt &
    pid=$!
    wait_for given-up/run.json $pid || fail "no run with $what: $(cat err.txt)"
    sleep 0.5
    kill -$signal $pid
    ended $pid || fail "SIG$signal is ignored with $what"
    wait $pid 2>/dev/null
    status=$?
    [ $status = 75 ] || fail "exit $status after SIG$signal with $what: $(cat err.txt)"
  done
done

# --- Damaged and foreign chunk files.
cp -r straight damaged
sed -i 's/"ess":\[0\.[0-9]/"ess":[0.0/' damaged/chunks/000002.json
expect 65 "000002.json" "damaged" -- "${again[@]}" --out damaged --resume
cp straight/chunks/000002.json damaged/chunks/
head -c 100 straight/chunks/000001.json >damaged/chunks/000001.json
expect 65 "000001.json" "delete it" -- "${again[@]}" --out damaged --resume
cp seed/chunks/000001.json damaged/chunks/
expect 65 "other settings" -- "${again[@]}" --out damaged --resume

# --- Every schedule, path, base and kernel says a number.
for flags in "--schedule linear" "--schedule sigmoidal:1" "--schedule exponential" "--schedule geometric:0.01" \
  "--schedule ess:0.8" "--schedule constant-length:0.3" "--schedule cess:0.8" "--schedule constant-rate:0.5" "--schedule cess:0.8 --weighted" \
  "--path power:0.5" "--path power:-0.5 --schedule constant-rate:0.5" "--base prior" "--base encoder:1.2" "--base encoder" \
  "--base laplace:1.1,rounds=3" "--base pilot:32,steps=8" "--resample systematic" "--resample multinomial:0.9" \
  "--kernel hmc" "--budget 200" "--preset paper" "--target-error 0.05" "--method bidirectional" \
  "--kernel ghmc:0.9" "--leapfrog 3" "--step-size 0.3" "--per-image --schedule cess:0.8" "--dtype float64" \
  "--schedule constant-rate:0.5 --interpolate 6" "--target-acceptance 0.9" "--schedule file:betas.txt"; do
  printf '0\n0.1\n0.5\n1\n' >betas.txt
  # shellcheck disable=SC2086
  succeed "${small[@]}" $flags
  grep -Eq '^(ais|bidirectional) +[a-z0-9.:=,]+ +-[0-9]+\.[0-9]+ ' out.txt || fail "$flags: $(cat out.txt)"
done
succeed "${small[@]}" --per-image --schedule constant-rate:0.5 --out per-image
[ "$(cut -d, -f1 per-image/schedule.csv | sort -un | wc -l)" -gt 40 ] || fail "--per-image: not a schedule for each"
succeed "${small[@]}" --schedule file:straight/schedule.csv --out replayed
cut -d, -f1-3 straight/schedule.csv >expected.csv
cut -d, -f1-3 replayed/schedule.csv >found.csv
same expected.csv found.csv

# --- Bounds on both sides, budgets, targets, presets: what the files say of them.
few=("$model" --simulate 50 --chunk 8 --quiet --chains 8)
succeed "${few[@]}" --method bidirectional --steps 64 --out both
grep -q 'Bounds on the mean log p(x)' out.txt || fail "no certificate: $(cat out.txt)"
succeed "${small[@]}" --budget 300 --out budget
succeed "${small[@]}" --mean-error 0.05 --out mean
grep -q 'leave the mean an error of .* --mean-error asked for' out.txt || fail "--mean-error: $(cat out.txt)"
succeed "${small[@]}" --mean-error 0.05 --threads 1 --out mean1
same mean/per_image.csv mean1/per_image.csv
succeed "${small[@]}" --mean-error 0.05 --out mean --resume
same mean/per_image.csv mean1/per_image.csv
expect 64 "exclude each other" -- "${small[@]}" --mean-error 0.05 --target-error 0.1
expect 64 "above" -- "${small[@]}" --mean-error 0
succeed "${small[@]}" --target-error 0.02 --out target
succeed "${small[@]}" --target-error 0.0001 --max-evals 500 --out missed
succeed "${small[@]}" --target-error 0.02 --threads 1 --out target1
same target/per_image.csv target1/per_image.csv
succeed "${few[@]}" --preset paper --out paper
succeed "$model" --simulate 9 --quiet --preset robust --out robust
if command -v python3 >/dev/null; then
  python3 - <<'PYTHON' || fail "summaries of bounds, budgets, targets, presets"
import csv, json
def read(folder):
    summary = json.load(open(folder + "/summary.json"))
    return summary, summary["results"][0], list(csv.DictReader(open(folder + "/per_image.csv")))
_, both, rows = read("both")
certificate = both["certificate"]
gaps = [float(r["upper"]) - float(r["log_likelihood"]) for r in rows]
assert abs(sum(gaps) / 50 - certificate["gap"]) < 1e-9 and abs(max(gaps) - certificate["largest_gap"]) < 1e-9
assert -5 * certificate["gap_std_error"] < certificate["gap"] < 0.5, certificate
assert both["evaluations_per_image"]["estimating"] == 2 * 8 * 65
_, budget, _ = read("budget")
spent = budget["evaluations_per_image"]
total = spent["base"] + spent["tuning"] + spent["estimating"]
assert total <= 300 and total > 300 - spent["estimating"], spent
_, reached, rows = read("target")
assert all(float(r["std_error"]) <= 0.02 or "target" in r["flags"] for r in rows)
assert sum("target" in r["flags"] for r in rows) == reached["flagged"].get("target", 0) < 25
assert len({r["evaluations"] for r in rows}) > 1  # as many as each needs
_, missed, rows = read("missed")
assert missed["flagged"]["target"] == 50 and all(float(r["evaluations"]) <= 500 for r in rows)
summary, paper, _ = read("paper")
settings = summary["settings"]
assert settings["base"] == "prior" and settings["kernel"] == "hmc" and settings["step-size"] == "0.5"
assert settings["chains"] == 8  # what is given wins
_, robust, _ = read("robust")
assert robust["base"] == "laplace:1.1" and robust["evaluations_per_image"]["estimating"] == 4 * 241, robust
PYTHON
fi

# --- What has no end, or no room in any memory, is refused at once.
expect 66 "/dev/zero: is a device or a pipe" -- /dev/zero --simulate 1
expect 66 "/dev/zero: is a device or a pipe" -- "$model" --simulate 1 --schedule file:/dev/zero
expect 64 "images take" "of memory; ask for fewer" -- "$model" --simulate 1000000000 --dry-run

# --- Without data it simulates and says so; --dry-run computes nothing; --config is the flags.
"$program" "$model" --steps 4 --chains 2 --limit 5 >out.txt 2>err.txt || fail "without data: $(cat err.txt)"
for word in 'simulated' 'scripts/fetch-mnist'; do
  grep -q "$word" err.txt || fail "without data it says: $(cat err.txt)"
done
succeed "${small[@]}" --dry-run --out never
grep -q 'Would evaluate 50 images' out.txt || fail "--dry-run: $(cat out.txt)"
[ -e never ] && fail "--dry-run wrote files"
succeed "${small[@]}" --dry-run --method mcd
grep -q 'Learning on 4,096 others of simulated' out.txt || fail "--dry-run: $(cat out.txt)"
printf '{"steps": 8, "chains": 4, "simulate": 50, "chunk": 8, "quiet": true, "method": ["ais", "iwae:20", "elbo:20"], "repeats": 2}' >config.json
succeed "$model" --config config.json --out configured
same straight/per_image.csv configured/per_image.csv
"$program" --help >out.txt 2>&1 || fail "--help: exit $?"
[ "$(grep -A 20 '^Examples' out.txt | grep -c '^ *eval-loglik ')" = 13 ] || fail "--help does not end in thirteen examples"
"$program" --version | grep -q LibTorch || fail "--version"

# --- Bad input: one clear line and its code.
expect 66 "missing.safetensors" "no such file" -- missing.safetensors
expect 66 "folder" -- vae
head -c 1000 "$model" >truncated.safetensors
expect 65 "truncated.safetensors" -- truncated.safetensors
printf 'not a checkpoint at all' >text.safetensors
expect 65 "text.safetensors" -- text.safetensors
expect 64 "--bogus" -- "$model" --bogus
expect 64 "--schedule" -- "$model" --shedule linear
expect 64 "unknown schedule 'fast'" "constant-rate:DELTA" "linear" -- "$model" --schedule fast
expect 64 "unknown path 'straight'" "power:ALPHA" -- "$model" --path straight
expect 64 "power:abc" "not a number" -- "$model" --path power:abc
expect 64 "needs delta" -- "$model" --schedule constant-rate
expect 64 "unknown parameter" -- "$model" --schedule cess:0.5,speed=3
expect 64 "must lie in" -- "$model" --schedule cess:1.5
expect 64 "unknown kernel" "hmc" -- "$model" --kernel gibbs
expect 64 "unknown base" "encoder" -- "$model" --base laplace2
succeed "${small[@]}" --method elbo:20
grep -Eq '^elbo:20 +encoder ' out.txt || fail "the ELBO is not the encoder's: $(cat out.txt)"
expect 64 "unknown resampling" "systematic" -- "$model" --resample often
expect 64 "--preset" "paper" -- "$model" --preset papers
expect 64 "--budget 40 is too small" "at least" -- "$model" --simulate 50 --budget 40
expect 64 "exclude each other" -- "$model" --budget 500 --target-error 0.1
expect 64 "one annealed entry of --method" -- "$model" --budget 500 --method iwae:20
expect 64 "--budget chooses one plan" -- "$model" --budget 500 --per-image
expect 64 "leave out --resample" -- "$model" --simulate 5 --method bidirectional --resample systematic
expect 64 "unknown method" "iwae[:K]" -- "$model" --method magic
expect 64 "given twice" -- "$model" --method ais --method ais
expect 64 "--steps" -- "$model" --steps 0
expect 64 "--limit" -- "$model" --limit 0
expect 64 "--step-size" -- "$model" --step-size fast
expect 64 "--step-size" -- "$model" --step-size -1
expect 64 "--indices" -- "$model" --simulate 10 --indices 5:20
expect 64 "--indices" -- "$model" --simulate 10 --indices 5:5
expect 64 "--shard" -- "${small[@]}" --shard 3/2
expect 64 "chunks" -- "${small[@]}" --shard 1/1000
expect 64 "--max-steps" -- "${small[@]}" --schedule constant-rate:0.0001 --max-steps 50
expect 64 "unexpected" -- "$model" "$model"
expect 69 "CUDA" -- "$model" --device cuda:63
expect 66 "nowhere" "fetch-mnist" -- "$model" --data-dir nowhere
printf '0\n0.5\n0.4\n1\n' >falling.txt
expect 65 "falling.txt" "rise" -- "${small[@]}" --schedule file:falling.txt
printf '0\nhalf\n1\n' >words.txt
expect 65 "words.txt" "half" -- "${small[@]}" --schedule file:words.txt
expect 66 "no such file" -- "${small[@]}" --schedule file:none.txt

mkdir bad-data small-data
printf 'this is no IDX file' >bad-data/t10k-images-idx3-ubyte
expect 65 "t10k-images-idx3-ubyte" -- "$model" --data-dir bad-data
{ printf '\0\0\010\003\0\0\0\002\0\0\0\024\0\0\0\024'; head -c 800 /dev/zero; } >small-data/t10k-images-idx3-ubyte
expect 65 "20 x 20" "28 x 28" -- "$model" --data-dir small-data
mkdir cut-data
{ printf '\0\0\010\003\0\0\0\143\0\0\0\034\0\0\0\034'; head -c 77616 /dev/urandom; } | gzip | head -c 2000 \
  >cut-data/t10k-images-idx3-ubyte.gz
expect 65 "t10k-images-idx3-ubyte.gz" "truncated" -- "$model" --data-dir cut-data
mkdir grey-data
{ printf '\0\0\010\003\0\0\0\002\0\0\0\034\0\0\0\034'; head -c 1568 /dev/urandom; } >grey-data/t10k-images-idx3-ubyte
expect 64 "needs --simulate" "exact draw" "certifies" -- "$model" --data-dir grey-data --binarisation static:0 --method bidirectional
"$program" "$model" --data-dir grey-data --binarisation threshold:127 --steps 2 --chains 2 --out mismatch >out.txt 2>err.txt ||
  fail "a mismatched binarisation: $(cat err.txt)"
grep -q 'WARNING.*threshold:127' err.txt || fail "no warning of another binarisation: $(cat err.txt)"
grep -q 'threshold:127' mismatch/summary.json || fail "the mismatch is not recorded"
grep -q '"warnings"' mismatch/summary.json || fail "summary.json has no warnings"
grep -q '^WARNING: the checkpoint model was trained' out.txt ||
  fail "the table does not warn of another binarisation: $(cat out.txt)"
grep -q 'Warning: .*threshold:127' mismatch/report.html || fail "the page does not warn of another binarisation"
python3 - <<'PYTHON' 2>/dev/null && {
import numpy
numpy.save("grey.npy", numpy.random.default_rng(1).random((3, 28, 28)).astype("float32"))
PYTHON
  expect 65 "grey.npy: entry 0 of image 0" "0 or 1" "--binarisation static:0" "ContinuousBernoulli" -- "$model" --data grey.npy
  expect 64 "grey.npy" "floats k / 255" -- "$model" --data grey.npy --binarisation static:0
  "$program" "$model" --data grey.npy --binarisation none --steps 2 --chains 2 --out grey >out.txt 2>err.txt ||
    fail "grey pixels that are asked for: $(cat err.txt)"
  grep -q 'grey pixels under bernoulli' grey/summary.json || fail "grey pixels are not recorded"
}

touch file
expect 73 "file" -- "${small[@]}" --out file
expect 73 "file" -- "${small[@]}" --out file/below
if [ "$(id -u)" = 0 ] && mkdir full && mount -t tmpfs -o size=64k tmpfs full 2>/dev/null; then
  head -c 56000 /dev/zero >full/ballast
  expect 74 "full" "No space left" -- "${small[@]}" --out full/run --repeats 50
  find full -name '*.tmp' | grep -q . && fail "a full disk left temporary files"
  rm full/ballast
  mount -o remount,size=8m full
  succeed "${small[@]}" --out full/run --repeats 50 --resume
  umount full
else
  echo "skipped: a full disk (needs to mount a small tmpfs)"
fi
# --- One draw has an error over images, and none of Monte Carlo.
for method in elbo:1 iwae:1; do
  succeed "$model" --simulate 24 --method $method --base encoder --quiet --format json
  [ -s err.txt ] && fail "$method: $(cat err.txt)"
  grep -q '"data_std_error": [0-9]' out.txt || fail "$method has no error over images: $(cat out.txt)"
  grep -qE '"monte_carlo_std_error": (null|"nan")' out.txt || fail "$method: $(grep monte_carlo out.txt)"
  succeed "$model" --simulate 24 --method $method --base encoder --quiet
  grep -q nan out.txt && fail "$method: $(cat out.txt)"
done
expect 64 "elbo:0" -- "$model" --simulate 3 --method elbo:0

finish
