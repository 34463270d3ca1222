#!/usr/bin/env bash
# estimate-logz as a user meets it: tables, files, repetition to the byte, and bad input.
set -uo pipefail
program="${CRAIS_BIN:?}/estimate-logz"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA

# --- What there is.
succeed list
for target in u1 u2 u5 u6 u10 u11 normal mixture laplace student-t smc-mixture logistic-regression; do
  grep -q "^$target" out.txt || fail "list does not name $target"
done
"$program" --help >out.txt 2>&1 || fail "--help: exit $?"
[ "$(grep -A 9 '^Examples' out.txt | grep -c '^ *estimate-logz ')" = 5 ] || fail "--help does not end in five examples"
"$program" --version | grep -q LibTorch || fail "--version"

# --- What a run says and leaves behind.
small=(u1 --base prior --witness none --steps 12 --chains 8 --problems 7 --chunk 3 --quiet)
succeed "${small[@]}" --method ais --method iwae:50 --method elbo:20 --repeats 2 --threads 1 --out straight
[ -s err.txt ] && fail "--quiet printed $(cat err.txt)"
grep -Eq '^ais +prior +[0-9.]+ .* 1\.8775 .* lower bound$' out.txt || fail "stdout: $(cat out.txt)"
listed=$(find straight -mindepth 1 -maxdepth 1 -printf '%P\n' | sort | tr '\n' ' ')
[ "$listed" = "chunks per_problem.csv plan.json report.html run.json schedule.csv summary.json " ] || fail "files: $listed"
[ "$(wc -l <straight/per_problem.csv)" = $((1 + 7 * 3 * 2)) ] || fail "per_problem.csv: $(wc -l <straight/per_problem.csv) lines"
[ "$(wc -l <straight/schedule.csv)" = 14 ] || fail "schedule.csv: $(wc -l <straight/schedule.csv) lines"
if command -v python3 >/dev/null; then
  python3 - <<'PYTHON' || fail "the files as Python reads them"
import csv, json, math, statistics
summary = json.load(open("straight/summary.json"))
assert summary["target"] == "u1" and summary["dim"] == 2 and summary["settings"]["seed"] == 0
for key in ("crais", "libtorch", "device", "threads", "seconds"):
    assert key in summary, key
assert [r["method"] for r in summary["results"]] == ["ais", "iwae:50", "elbo:20"]
ais, iwae, elbo = summary["results"]
assert ais["transitions"] == 12 and ais["problems"] == 7 and ais["repeats"] == 2 and ais["label"] == "lower bound"
assert ais["evaluations_per_problem"]["estimating"] == 8 * (1 + 12)
assert abs(ais["evaluations_per_problem"]["tuning"] - 8 * (1 + 12)) < 1e-9
assert ais["evaluations_per_problem"]["base"] == 0
assert iwae["accept_prob"] is None and iwae["evaluations_per_problem"]["estimating"] == 50
assert elbo["log_normalizer"] < iwae["log_normalizer"]
rows = list(csv.DictReader(open("straight/per_problem.csv")))
values = [float(r["log_normalizer"]) for r in rows if r["method"] == "ais"]
truth = summary["true_log_normalizer"]
assert len(set(values)) == 14
assert abs(statistics.mean(values) - ais["log_normalizer"]) < 1e-12
assert abs(statistics.stdev(values) / math.sqrt(14) - ais["monte_carlo_std_error"]) < 1e-12
assert abs(ais["error"] - (ais["log_normalizer"] - truth)) < 1e-12
assert abs(ais["z_score"] * ais["monte_carlo_std_error"] - ais["error"]) < 1e-12
assert abs(ais["root_mean_square_error"] ** 2 - statistics.mean((v - truth) ** 2 for v in values)) < 1e-12
assert all(abs(float(r["error"]) - (float(r["log_normalizer"]) - truth)) < 1e-12 for r in rows)
assert sorted({(int(r["problem"]), int(r["repeat"])) for r in rows}) == [(p, r) for p in range(7) for r in range(2)]
PYTHON
fi

# --- The same bytes again, and with other threads; others with another seed.
again=("${small[@]}" --method ais --method iwae:50 --method elbo:20 --repeats 2)
cp out.txt first.txt
succeed "${again[@]}" --threads 2 --out threads
for file in per_problem.csv schedule.csv; do same straight/$file threads/$file; done
sed -i 's/straight/threads/' first.txt
same first.txt out.txt
succeed "${again[@]}" --seed 1 --out seed
differ straight/per_problem.csv seed/per_problem.csv
expect 64 "straight" "--overwrite" -- "${again[@]}" --out straight
expect 64 "needs --out" -- "${again[@]}" --overwrite
succeed "${again[@]}" --out seed --overwrite
same straight/per_problem.csv seed/per_problem.csv
printf '{"base": "prior", "witness": "none", "steps": 12, "chains": 8, "problems": 7, "chunk": 3, "quiet": true, "method": ["ais", "iwae:50", "elbo:20"], "repeats": 2}' >config.json
succeed u1 --config config.json --out configured
same straight/per_problem.csv configured/per_problem.csv

# --- Every target, schedule, path, kernel says a number near the truth.
for target in u2:4 u3:4 u4:4 u5 u5:s=std u6 u10 u11 laplace:3 student-t:3 student-t:2,nu=2 normal:2 mixture:3 smc-mixture:48; do
  succeed "$target" --base prior --witness none --steps 30 --chains 16 --problems 3 --quiet
  grep -Eq '^ais +prior +(>=)?-?[0-9]+\.[0-9]+ ' out.txt || fail "$target: $(cat out.txt)"
done
for flags in "--schedule sigmoidal" "--schedule geometric" "--schedule cess:0.8" "--schedule constant-rate:0.2" \
  "--schedule cess:0.8 --per-problem" "--path power:0.5" "--path power:1 --per-problem" "--kernel ghmc:0.9" "--kernel mala" \
  "--kernel random-walk" "--leapfrog 3" "--step-size 0.3" "--dtype float32" "--pilot-problems 1" "--schedule cess:0.8 --interpolate 9" \
  "--method iwae:3000 --per-problem" "--base laplace:1.2" "--base pilot:64" "--resample systematic" "--budget 2000" \
  "--target-error 0.2"; do
  base="--base prior"
  case $flags in *--base*) base= ;; esac
  # shellcheck disable=SC2086
  succeed laplace:2 $base --witness none --steps 24 --chains 64 --problems 4 --quiet --out any --overwrite $flags
  z=$(awk 'NR > 3 && NF > 9 {print $6; exit}' out.txt)
  awk -v z="$z" 'BEGIN {exit !(z < 5 && z > -8)}' || fail "$flags: z = '$z': $(cat out.txt)"
done
succeed u1 --base prior --witness none --steps 8 --chains 4 --problems 1 --quiet
grep -Eq '^ais .* 1  lower bound$' out.txt || fail "one problem: $(cat out.txt)"
succeed u2 --base prior --witness none --steps 8 --chains 4 --problems 2 --quiet --out unknown
head -n 2 out.txt | grep -q truth && fail "a truth for u2"
grep -q '"true_log_normalizer": null' unknown/summary.json || fail "no null for an unknown truth"

# --- Bases that are fitted, and say what that cost.
succeed normal:16 --witness none --base laplace --steps 8 --problems 3 --quiet --out fitted
grep -q '"base": 49' fitted/summary.json || fail "cost of the Laplace base: $(grep base fitted/summary.json)"
error=$(awk '/^ais/ {print $6}' out.txt)  # exact: its z may be 0 / 0
awk -v e="$error" 'BEGIN {exit !(e < 0.001 && e > -0.001)}' || fail "a normal from its own Laplace base: $(cat out.txt)"
succeed mixture:3 --witness none --preset paper --chains 64 --problems 2 --quiet
grep -Eq '^ais +prior .* [0-9]+\.0+ ' out.txt || fail "--preset paper: $(cat out.txt)"

# --- Bounds from both sides, where there are exact draws.
succeed u10 --base prior --witness none --method bidirectional --steps 12 --problems 4 --quiet --out bounds
[ "$(grep -c '^bidirectional' out.txt)" = 2 ] || fail "no table of bounds: $(cat out.txt)"
grep -q '"largest_gap"' bounds/summary.json || fail "no certificate"
head -n 1 bounds/per_problem.csv | grep -q ',upper,upper_std_error,.*,error$' || fail "columns: $(head -n 1 bounds/per_problem.csv)"
expect 64 "bidirectional" "exact draws" "u1" -- u1 --method bidirectional

# --- Methods that learn first.
learned=(u1 --base prior --witness none --chains 8 --problems 6 --chunk 4 --quiet --method 'mcd:5,iterations=20,hidden=6,batch=12,patience=0')
succeed "${learned[@]}" --out learned --threads 1
succeed "${learned[@]}" --out relearned --threads 2
same learned/per_problem.csv relearned/per_problem.csv
grep -Eq '^mcd:5,.* lower bound$' out.txt || fail "mcd: $(cat out.txt)"
# 20 iterations of 2 chains on 6 pilots at 2 (1 + 5), and two validations of 42 chains each at 1 + 5.
grep -q '"tuning": 984.0' learned/summary.json || fail "mcd: $(grep tuning learned/summary.json)"
grep -q '"estimating": 48.0' learned/summary.json || fail "mcd: $(grep estimating learned/summary.json)"
expect 64 "mcd" "geometric path" -- u1 --method mcd --path power:0.5
expect 64 "mcd" "--resample" -- u1 --method mcd --resample systematic
expect 64 "rate" -- u1 --method mcd:8,rate=0
expect 64 "unknown parameter depth" -- u1 --method mcd:8,depth=3
expect 64 "diverge" "step=" -- u6 --base prior --method mcd:64,step=30,iterations=9 --quiet

# --- Ctrl-C keeps the finished chunks; --resume ends in the same bytes.
long=(mixture:64 --base prior --witness none --steps 400 --chains 32 --problems 60 --step-size 0.5)
"$program" "${long[@]}" --threads 1 --out stopped >out.txt 2>err.txt &
pid=$!
wait_for stopped/chunks/000000.json $pid || fail "no first chunk: $(cat err.txt)"
kill -INT $pid
wait $pid
status=$?
[ $status = 75 ] || fail "exit $status after Ctrl-C: $(cat err.txt)"
grep -q 'interrupted' err.txt || fail "Ctrl-C says: $(cat err.txt)"
[ -e stopped/summary.json ] && fail "an interrupted run left results"
expect 64 "already holds results" "--resume" -- "${long[@]}" --out stopped
expect 64 "other settings" "seed" -- "${long[@]}" --seed 1 --out stopped --resume
succeed "${long[@]}" --quiet --out stopped --resume
succeed "${long[@]}" --quiet --out whole --threads 2
same stopped/per_problem.csv whole/per_problem.csv
sed -i 's/"sources": "[0-9a-f]*"/"sources": "0123456789abcdef"/' stopped/run.json
expect 64 "another build" "sources" "--accept-other-version" -- "${long[@]}" --out stopped --resume

# --- Means under the target, and the particles themselves.
means=(u11 --base prior --witness none --steps 24 --chains 64 --problems 6 --chunk 4 --quiet --expect moments --expect modes)
succeed "${means[@]}" --out means --threads 1
grep -q '^Under the target: moments, by ais' out.txt || fail "no table of moments: $(cat out.txt)"
grep -q 'the delta method over particles' out.txt || fail "errors of AIS: $(cat out.txt)"
grep -q 'expectations.csv' out.txt || fail "the files do not name expectations.csv"
[ "$(wc -l <means/expectations.csv)" = 7 ] || fail "expectations.csv: $(cat means/expectations.csv)"
rm means/chunks/000001.json means/summary.json means/expectations.csv
cp -r means halfway
succeed "${means[@]}" --out halfway --resume
succeed "${means[@]}" --out means --overwrite --threads 2
same means/expectations.csv halfway/expectations.csv
succeed "${means[@]}" --out smc --resample systematic:0.9
grep -q ',replicates,6,384,' smc/expectations.csv || fail "errors of SMC: $(cat smc/expectations.csv)"
succeed u11 --base prior --witness none --steps 24 --chains 64 --problems 1 --quiet --expect moments --resample systematic:0.9
grep -q 'resampled depend on each other, and there is one' out.txt || fail "one replicate of SMC: $(cat out.txt)"
succeed "${means[@]}" --save-particles weighted.npy --out plain
same means/expectations.csv plain/expectations.csv
same means/per_problem.csv plain/per_problem.csv
succeed "${means[@]}" --save-particles weighted.csv
succeed "${means[@]}" --save-particles equal.csv --resampled
[ "$(wc -l <weighted.csv)" = 385 ] || fail "weighted.csv: $(wc -l <weighted.csv) lines"
[ "$(head -n 1 weighted.csv)" = problem,particle,z1,z2,log_weight ] || fail "weighted.csv: $(head -n 1 weighted.csv)"
[ "$(head -n 1 equal.csv)" = problem,particle,z1,z2 ] || fail "equal.csv: $(head -n 1 equal.csv)"
[ "$(wc -c <weighted.npy)" = $((128 + 6 * 64 * 3 * 8)) ] || fail "weighted.npy: $(wc -c <weighted.npy) bytes"
"$program" "${means[@]/--quiet/--threads=1}" --save-particles weighted.npy >out.txt 2>err.txt || fail "$(cat err.txt)"
grep -q 'weighted.npy: 6 problems x 64 particles x 3 numbers' err.txt || fail "no size beforehand: $(cat err.txt)"
if command -v python3 >/dev/null; then
  python3 - <<'PYTHON' || fail "particles as Python reads them"
import csv, json, math, struct
lines = list(csv.DictReader(open("weighted.csv")))
raw = open("weighted.npy", "rb").read()
assert raw[:8] == b"\x93NUMPY\x01\x00"
size = struct.unpack("<H", raw[8:10])[0]
header = eval(raw[10:10 + size])
assert header == {"descr": "<f8", "fortran_order": False, "shape": (6, 64, 3)}
numbers = struct.unpack("<%dd" % (6 * 64 * 3), raw[10 + size:])
assert list(numbers) == [float(row[key]) for row in lines for key in ("z1", "z2", "log_weight")]
weights = [math.exp(float(row["log_weight"])) for row in lines]
values = list(csv.DictReader(open("plain/per_problem.csv")))
for p in range(6):
    mean = sum(weights[64 * p:64 * p + 64]) / 64
    assert abs(math.log(mean) - float(values[p]["log_normalizer"])) < 1e-9
z1 = [float(row["z1"]) for row in lines]
mean = sum(w * z for w, z in zip(weights, z1)) / sum(weights)
n = len(z1)
error = math.sqrt(n / (n - 1) * sum((w * (z - mean)) ** 2 for w, z in zip(weights, z1))) / sum(weights)
found = json.load(open("plain/summary.json"))["expectations"]
assert [e["expectation"] for e in found] == ["moments", "modes"]
first = found[0]["outputs"][0]
assert abs(first["mean"] - mean) < 1e-12 and abs(first["std_error"] - error) < 1e-12
assert abs(sum(mode["mean"] for mode in found[1]["outputs"]) - 1) < 1e-12
for mode in found[1]["outputs"]:
    assert abs(mode["mean"] - mode["truth"]) < 5 * mode["std_error"]
drawn = {(row["problem"], row["z1"]) for row in csv.DictReader(open("equal.csv"))}
assert drawn <= {(row["problem"], row["z1"]) for row in lines} and len(drawn) > 100
PYTHON
fi
expect 64 "--expect modes" "mixture" -- u2:4 --expect modes
expect 64 "unknown expectation 'median'" "moments" "norm" -- u1 --expect median
expect 64 "iwae:50" "--expect" "ais" -- u1 --method iwae:50 --expect norm
expect 64 "--target-error" "--expect" -- u1 --expect norm --target-error 0.1
expect 64 "--save-particles particles.txt" ".npy or .csv" -- u1 --save-particles particles.txt
expect 64 "--resampled" "--save-particles" -- u1 --resampled
expect 64 "--save-particles" "--resume" -- "${means[@]}" --save-particles p.npy --out means --resume
expect 64 "--save-particles" "--problems" -- u1 --repeats 2 --save-particles p.npy
touch file
expect 73 "file" -- u1 --base prior --witness none --steps 4 --chains 4 --problems 2 --quiet --save-particles file/p.npy

# --- For programs.
succeed u1 --base prior --witness none --steps 8 --chains 4 --problems 3 --quiet --method ais --method iwae:50 --format csv
[ "$(wc -l <out.txt)" = 3 ] || fail "--format csv: $(cat out.txt)"
head -n 1 out.txt | grep -q 'ess.mean' || fail "--format csv: $(head -n 1 out.txt)"
succeed u1 --base prior --witness none --steps 8 --chains 4 --problems 3 --quiet --format json
if command -v python3 >/dev/null; then
  python3 -c 'import json; assert json.load(open("out.txt"))["results"][0]["problems"] == 3' || fail "--format json"
fi
expect 64 "--format" "table, json, csv" -- u1 --format yaml

# --- Regressions, and every bad table.
mkdir -p data/uci
printf '1,3.5,R\n2,0.5,M\n4,1.5,R\n3,-1,M\n0,0,R\n' | tee cases.csv >data/uci/pima-indians-diabetes.csv
succeed logistic-regression:cases.csv,variance=5 --base prior --witness none --steps 20 --chains 8 --problems 3 --quiet --out cases
succeed logistic-regression:file=pima,variance=5 --base prior --witness none --steps 20 --chains 8 --problems 3 --quiet --out pima
same cases/per_problem.csv pima/per_problem.csv
succeed logistic-regression:pima,variance=5 --base prior --witness none --data-dir data --steps 20 --chains 8 --problems 3 --quiet

bad() { # CSV WORDS...
  printf '%b' "$1" >bad.csv
  shift
  expect 65 "bad.csv" "$@" -- logistic-regression:bad.csv
}
bad 'age,bmi,class\n1,2,a\n2,1,b\n' "line 1" "column 1" "'age'"
bad '1,2,a\n2,,b\n' "line 2" "column 2"
bad '1,2,a\n2,?,b\n' "line 2" "'?'"
bad '1,2,a\n2,nan,b\n' "line 2" "missing"
bad '1,2,a\n2,1,\n' "line 2" "class is missing"
bad '1,2,a\n2,1,b\n3,a\n' "line 3" "2 values"
bad '1,2,a\n2,1,a\n' "lines 1 to 2" "only one class"
bad '1,2,a\n2,1,b\n3,3,c\n' "line 3" "third class"
bad '1,2,a\n1,1,b\n' "column 1" "same in every line"
bad 'a\nb\n' "line 1" "one column"
bad '' "no values"
head -c 300 /dev/urandom | tr -d ',\n' >bad.csv
expect 65 "bad.csv" -- logistic-regression:bad.csv
expect 66 "none.csv" "tried" -- logistic-regression:none.csv
expect 66 "sonar" "uci/sonar.all-data.csv" -- logistic-regression:sonar
expect 64 "needs file" -- logistic-regression
expect 64 "variance" -- logistic-regression:cases.csv,variance=-1
expect 64 "unknown parameter prior" -- logistic-regression:cases.csv,prior=1

# --- Bad input: one clear line and its code.
expect 64 "unknown target 'banana'" "u1" "laplace[:DIM]" "logistic-regression:FILE" -- banana
expect 64 "dim" -- normal:0
expect 64 "dim" "whole number" -- normal:2.5
expect 64 "variance or std" -- u11:s=sigma
expect 64 "16, 24, 32 or 48" -- smc-mixture:3
expect 64 "unexpected 'u2'" -- u1 u2
expect 64 "unknown base 'middle'" "prior" "laplace" "pilot" -- u1 --base middle
expect 64 "unknown schedule 'fast'" "linear" -- u1 --schedule fast
expect 64 "unknown kernel 'gibbs'" "mala" "random-walk" -- u1 --kernel gibbs
expect 64 "unknown path" -- u1 --path straight
expect 64 "unknown method" -- u1 --method magic
expect 64 "given twice" -- u1 --method ais --method ais
expect 64 "--problems" -- u1 --problems 0
expect 64 "--step-size" -- u1 --step-size 0
expect 64 "--bogus" -- u1 --bogus
expect 64 "--max-steps" -- u1 --base prior --witness none --schedule constant-rate:0.00001 --max-steps 20 --quiet
expect 69 "CUDA" -- u1 --device cuda:63
touch file
expect 73 "file" -- u1 --out file
"$program" >out.txt 2>err.txt && fail "no target: exit 0"
[ "$(wc -l <err.txt)" = 1 ] || fail "no target: $(cat err.txt)"
finish
