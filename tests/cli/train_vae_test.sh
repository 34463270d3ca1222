#!/usr/bin/env bash
# train-vae as a user meets it: files, resuming after every kind of end, and bad input.
set -uo pipefail
program="${CRAIS_BIN:?}/train-vae"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA

small=(--data synthetic:600 --hidden 20 --latent 5 --quiet)

# What a run leaves behind.
"$program" "${small[@]}" --epochs 4 --out straight >out.txt 2>err.txt || fail "a run: $(cat err.txt)"
[ -s err.txt ] && fail "--quiet printed $(cat err.txt)"
grep -q '^validation ELBO -[0-9.]* nats (epoch [1-4] of 4)$' out.txt || fail "stdout: $(cat out.txt)"
listed=$(cd straight && find . -type f | sort | tr '\n' ' ')
expected='./metrics.jsonl ./reconstructions.png ./report.html ./samples.png ./training-state.safetensors ./vae.safetensors '
[ "$listed" = "$expected" ] || fail "files: $listed"
[ "$(wc -l <straight/metrics.jsonl)" = 4 ] || fail "metrics.jsonl has not 4 lines"
if command -v python3 >/dev/null; then
  python3 - straight <<'PYTHON' || fail "the files as Python reads them"
import json, struct, sys
folder = sys.argv[1]
data = open(folder + "/vae.safetensors", "rb").read()
length, = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + length])
metadata = json.loads(header.pop("__metadata__")["crais"])
assert metadata["format_version"] == 1 and metadata["prior"] == "standard-normal"
assert metadata["likelihood"] == "bernoulli" and metadata["binarisation"] == "dynamic"
assert metadata["data"] == "synthetic:600" and len(metadata["data_md5"]) == 32
shapes = {name: tensor["shape"] for name, tensor in header.items()}
assert shapes == {
    "encoder.0.weight": [20, 784], "encoder.0.bias": [20],
    "encoder.2.weight": [10, 20], "encoder.2.bias": [10],
    "decoder.0.weight": [20, 5], "decoder.0.bias": [20],
    "decoder.2.weight": [784, 20], "decoder.2.bias": [784]}, shapes
ends = sorted(tensor["data_offsets"] for tensor in header.values())
assert ends[0][0] == 0 and 8 + length + ends[-1][1] == len(data)
metrics = [json.loads(line) for line in open(folder + "/metrics.jsonl")]
assert [m["epoch"] for m in metrics] == [1, 2, 3, 4]
best = max(metrics, key=lambda m: m["validation"]["bound"])
assert metadata["epochs"] == best["epoch"]
assert metadata["validation_elbo"] == best["validation"]["elbo"]
PYTHON
fi

# The same again; on from the middle; a run that is over already.
"$program" "${small[@]}" --epochs 4 --out again >/dev/null
same straight/vae.safetensors again/vae.safetensors
"$program" "${small[@]}" --epochs 2 --out parts >/dev/null
"$program" "${small[@]}" --epochs 4 --out parts --resume >/dev/null
same straight/vae.safetensors parts/vae.safetensors
same straight/samples.png parts/samples.png
"$program" "${small[@]}" --epochs 4 --out parts --resume >/dev/null || fail "resuming a finished run"
same straight/vae.safetensors parts/vae.safetensors

# Flags from a file.
echo '{"data": "synthetic:600", "hidden": [20], "latent": 5, "quiet": true, "epochs": 4}' >c.json
"$program" --config c.json --out config >/dev/null 2>err.txt || fail "--config: $(cat err.txt)"
same straight/vae.safetensors config/vae.safetensors

# Ctrl-C, then kill -9, each in the middle of an epoch.
long=(--data synthetic:6000 --hidden 100 --epochs 8 --quiet)
"$program" "${long[@]}" --out long >/dev/null
bash -c 'exec "$@"' _ "$program" "${long[@]}" --out stopped >/dev/null 2>err.txt &
process=$!
wait_for stopped/training-state.safetensors $process || fail "no training state appeared"
kill -INT $process
wait $process
status=$?
[ $status = 75 ] || fail "Ctrl-C: exit $status: $(cat err.txt)"
grep -q -- '--resume' err.txt || fail "Ctrl-C does not tell how to go on: $(cat err.txt)"
[ -s stopped/vae.safetensors ] || fail "Ctrl-C left no checkpoint"
rm stopped/metrics.jsonl # rewritten from the training state
"$program" "${long[@]}" --out stopped --resume >/dev/null
same long/vae.safetensors stopped/vae.safetensors
[ "$(wc -l <stopped/metrics.jsonl)" = 8 ] || fail "metrics.jsonl has not 8 lines"

for delay in 0.02 0.3; do
  rm -rf killed
  "$program" "${long[@]}" --out killed >/dev/null 2>&1 &
  process=$!
  wait_for killed/training-state.safetensors $process || fail "no training state appeared"
  sleep $delay
  kill -9 $process
  wait $process 2>/dev/null
  "$program" "${long[@]}" --out killed --resume >/dev/null 2>err.txt || fail "resume: $(cat err.txt)"
  same long/vae.safetensors killed/vae.safetensors
done

# Killed before its first checkpoint.
mkdir early
expect 0 "starting from the beginning" -- "${small[@]}" --epochs 4 --out early --resume
same straight/vae.safetensors early/vae.safetensors

# Results are not lost by mistake.
cp straight/vae.safetensors kept
expect 64 "straight" "--resume" "--overwrite" -- "${small[@]}" --epochs 1 --out straight
expect 64 "lr 0.001" "0.01" -- "${small[@]}" --lr 0.01 --out straight --resume
expect 64 "seed 1" -- "${small[@]}" --seed 2 --out straight --resume
expect 64 "exclude" -- "${small[@]}" --out straight --resume --overwrite
same straight/vae.safetensors kept
"$program" "${small[@]}" --seed 2 --epochs 1 --out straight --overwrite >/dev/null || fail "--overwrite"
cmp -s straight/vae.safetensors kept && fail "--overwrite kept the old checkpoint"

# A damaged training state.
head -c 1000 parts/training-state.safetensors >short && cp short parts/training-state.safetensors
expect 65 "training-state.safetensors" "truncated" -- "${small[@]}" --epochs 4 --out parts --resume

# Places that cannot be written; a full disk (a limit on file sizes stands in for it).
touch file
expect 73 "file" -- "${small[@]}" --out file
expect 73 "file/sub" -- "${small[@]}" --out file/sub
(
  trap '' XFSZ
  ulimit -f 64
  "$program" "${small[@]}" --hidden 200 --epochs 1 --out full >/dev/null 2>full.txt
)
status=$?
[ $status = 74 ] || fail "a full disk: exit $status: $(cat full.txt)"
[ "$(wc -l <full.txt)" = 1 ] || fail "a full disk: not one line: $(cat full.txt)"
find full -name '.*.tmp' | grep -q . && fail "a full disk: temporary files are left"

# Bad input, named.
expect 64 "--bogus" -- --bogus 1
expect 64 "synthetic" "mnist" -- --data cifar
expect 64 "synthetic:0" -- --data synthetic:0
expect 64 "--latent" -- --latent 0
expect 64 "--hidden" -- --hidden 200,x
expect 64 "sine" "tanh" -- --act sine
expect 64 "poisson" "bernoulli" -- --likelihood poisson
expect 64 "vimco" "iwae:K" -- --objective vimco
expect 64 "--lr" -- --lr 0
expect 64 "--betas" -- --betas 0.9
expect 64 "linear" "cosine" -- --decay linear
expect 64 "--batch" -- --batch 0
expect 64 "--epochs" -- --epochs 0
expect 64 "otsu" "threshold" -- --binarisation otsu
expect 64 "amat" -- --binarisation amat
expect 64 "--device" -- --device tpu
expect 64 "diverged" "learning rate" -- "${small[@]}" --lr 1e30 --out diverged
expect 66 "train-images" -- --data-dir "$work/none" --out none
expect 66 "none.json" -- --config none.json
expect 64 "--resme" "--resume" -- --resme
mkdir broken && echo nonsense >broken/train-images-idx3-ubyte
expect 65 "broken/train-images-idx3-ubyte" -- --data-dir broken --out none
[ -e none ] && fail "a run without data left a folder"

"$program" --version | grep -q '^train-vae (crais [0-9.]*, LibTorch [0-9.]*' || fail "--version"
"$program" --help | tail -1 | grep -q 'train-vae ' || fail "--help does not end in examples"

finish
