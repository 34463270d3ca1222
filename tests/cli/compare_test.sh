#!/usr/bin/env bash
# eval-loglik compare: folders and models, what it finds, what it refuses.
set -uo pipefail
program="${CRAIS_BIN:?}/eval-loglik"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA

small_vae early --epochs 2
cp -r early late
small_vae late --epochs 12 --resume
python3 - <<'PYTHON' || { echo "skipped: there is no python3 with numpy" && exit 77; }
import numpy
rng = numpy.random.default_rng(1)
numpy.save("images.npy", rng.integers(0, 256, (40, 28, 28)).astype("uint8"))
numpy.save("others.npy", rng.integers(0, 256, (40, 28, 28)).astype("uint8"))
PYTHON
settings=(--binarisation static:0 --steps 8 --chunk 16 --quiet)
small=(--data images.npy "${settings[@]}" --chains 4)
succeed early/vae.safetensors "${small[@]}" --out a
succeed late/vae.safetensors "${small[@]}" --out b
[ -s a/thumbnails.npy ] || fail "a run of images has no thumbnails"

# --- Two folders: what is printed agrees with what their own summaries say.
succeed compare a b --out compared
grep -q '^A - B ' out.txt || fail "no difference in: $(cat out.txt)"
grep -q 'Paired by image the error is' out.txt || fail "the error of the pairing is missing"
for file in comparison.json per_image.csv report.html; do
  [ -s compared/$file ] || fail "no compared/$file"
done
python3 - <<'PYTHON' || fail "comparison.json as Python reads it"
import csv, json, math, statistics
c = json.load(open("compared/comparison.json"))
means = [json.load(open(f"{f}/summary.json"))["results"][0]["log_likelihood"] for f in "ab"]
r = c["results"][0]
assert abs(r["difference"] - (means[0] - means[1])) < 1e-9
rows = [{k: float(v) for k, v in row.items() if k != "method"} for row in csv.DictReader(open("compared/per_image.csv"))]
d = [row["A"] - row["B"] for row in rows]
assert len(rows) == 40 and max(abs(x - row["A - B"]) for x, row in zip(d, rows)) < 1e-9
assert abs(r["data_std_error"] - statistics.stdev(d) / math.sqrt(40)) < 1e-9
unpaired = math.hypot(*(statistics.stdev(row[k] for row in rows) / math.sqrt(40) for k in "AB"))
assert abs(r["unpaired_std_error"] - unpaired) < 1e-9
assert r["interval_low"] < r["difference"] < r["interval_high"]
assert abs(r["share_better"] - sum(x > 0 for x in d) / 40) < 1e-12
PYTHON
succeed compare a b --format json
python3 -c 'import json, sys; json.load(sys.stdin)' <out.txt || fail "--format json is no JSON"
succeed compare a b --format csv
[ "$(wc -l <out.txt)" = 2 ] || fail "--format csv: $(cat out.txt)"

# --- Models are evaluated first, alike: the same numbers as from their folders; three make a matrix.
succeed compare early/vae.safetensors late/vae.safetensors b "${small[@]}" --out three
same a/per_image.csv three/A/per_image.csv
same b/per_image.csv three/B/per_image.csv
grep -q 'Row less column' out.txt || fail "no matrix of three models"
grep -q '^B - C .* 0.000 ' out.txt || fail "a model is better than itself: $(cat out.txt)"
succeed compare early/vae.safetensors late/vae.safetensors "${small[@]}"
grep -q '^A - B ' out.txt || fail "models without --out are not compared"

# --- Another number of chains is said.
succeed late/vae.safetensors --data images.npy "${settings[@]}" --chains 8 --out c
succeed compare a c
tr '\n' ' ' <out.txt | grep -q 'were not evaluated alike (chains 4 and 8)' || fail "other settings go unsaid: $(cat out.txt)"

# --- One image has no interval; the same images of another file are the same images.
cp images.npy copy.npy
for model in early late; do
  succeed $model/vae.safetensors --data copy.npy "${settings[@]}" --chains 4 --limit 1 --out one-$model
done
succeed compare one-early one-late --out one
grep -q 'No difference .* is seen' out.txt || fail "one image decides: $(cat out.txt)"
succeed late/vae.safetensors --data copy.npy "${settings[@]}" --chains 4 --out copied
succeed compare a copied
grep -q 'not evaluated alike' out.txt && fail "another file's name is said to matter: $(cat out.txt)"

# --- What cannot be compared.
succeed late/vae.safetensors "${small[@]}" --limit 20 --out fewer
expect 64 "other images" "count: 40 and 20" -- compare a fewer
succeed late/vae.safetensors --data images.npy "${settings[@]:2}" --chains 4 --binarisation threshold:1 --out threshold
expect 64 "other images" "binarisation" -- compare a threshold
succeed late/vae.safetensors --data others.npy "${settings[@]}" --chains 4 --out others
expect 64 "other images" "file_md5" -- compare a others
succeed late/vae.safetensors "${small[@]}" --shard 1/2 --out half
expect 65 "half" "--resume" -- compare a half
succeed late/vae.safetensors "${small[@]}" --method iwae:10 --out iwae
expect 64 "--method" -- compare a iwae
expect 64 "2 to 26" -- compare a
expect 64 "--steps" "as they are" -- compare a b --steps 4
expect 64 "--dry-run" -- compare a early/vae.safetensors "${small[@]}" --dry-run
expect 66 "nowhere" -- compare a nowhere "${small[@]}"
expect 64 "--overwrite" -- compare a b --out compared
succeed compare a b --out compared --overwrite
mkdir empty
expect 66 "run.json" -- compare a empty

# --- Damaged folders: one line, whatever is broken.
damaged() { # WORD COMMAND: a copy of b in `bad`, spoiled by the command
  rm -rf bad && cp -r b bad && (cd bad && eval "$2") && expect 65 "$1" -- compare a bad
}
damaged chunk 'echo "{}" >chunks/000001.json'
damaged chunk 'truncate -s 100 chunks/000001.json'
damaged thumbnails 'truncate -s 200 thumbnails.npy'
damaged thumbnails 'cp ../images.npy thumbnails.npy && truncate -s 1000 thumbnails.npy'
damaged run.json 'sed -i "s/\"count\": 40/\"count\": -1/" run.json'
rm -rf bad && cp -r b bad && rm bad/thumbnails.npy
succeed compare bad bad --out pictureless

# --- diagnose: in words, with a remedy that helps.
succeed early/vae.safetensors --data images.npy --binarisation static:0 --steps 2 --chains 4 --chunk 16 --base prior --quiet --out poor
"$program" diagnose poor >out.txt 2>err.txt
[ $? = 1 ] || fail "diagnose of a poor run: $(cat out.txt err.txt)"
tr '\n' ' ' <out.txt | grep -q 'few chains carry the estimate.*Remedy: .*--steps 8' || fail "diagnose: $(cat out.txt)"
"$program" diagnose poor --format json >out.txt 2>err.txt
python3 - <<'PYTHON' || fail "diagnose --format json: $(cat out.txt)"
import csv, json
found = json.load(open("out.txt"))["results"]
flagged = [int(r["image"]) for r in csv.DictReader(open("poor/per_image.csv")) if "ess" in r["flags"]]
assert flagged and any(f["images"] == flagged and f["evaluations_per_image"] == 4 * 12 for f in found)
PYTHON
grep -q 'Remedy' poor/report.html || fail "the page knows no remedy"
succeed early/vae.safetensors --simulate 12 --steps 64 --chains 16 --quiet --out good
succeed diagnose good
grep -q 'Nothing is wrong' out.txt || fail "diagnose of a good run: $(cat out.txt)"
expect 65 "half" "--resume" -- diagnose half
expect 64 "one result folder" -- diagnose poor good
expect 64 "--steps" -- diagnose poor --steps 4
rm -rf bad && cp -r poor bad && sed -i 's/"steps": 2,/"steps": -2,/' bad/run.json
expect 65 "other settings" -- diagnose bad
finish
