#!/usr/bin/env bash
# Models that crais.export wrote, evaluated: exact values, certificates, files that must be refused.
set -uo pipefail
program="${CRAIS_BIN:?}/eval-loglik"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA

# Python with a PyTorch of the LibTorch that crais was built with.
wanted=$("$program" --version | sed 's/.*LibTorch \([0-9]*\.[0-9]*\).*/\1/')
python=
for candidate in "$CRAIS_SOURCE/.venv/bin/python" python3; do
  found=$("$candidate" -W ignore -c 'import torch; print(".".join(torch.__version__.split(".")[:2]))' 2>/dev/null)
  if [ "$found" = "$wanted" ]; then python=$candidate && break; fi
done
if [ -z "$python" ]; then
  echo "skipped: no Python has PyTorch $wanted"
  exit 77
fi
export PYTHONPATH="$CRAIS_SOURCE/python" TORCHINDUCTOR_CACHE_DIR="$work/cache"

cat >model.py <<'PYTHON'
import math

import torch

import crais

torch.manual_seed(0)
decoder = torch.nn.Linear(4, 6)
noise = 0.5
weight, bias = decoder.weight.detach().double(), decoder.bias.detach().double()


def describe():
    return dict(decoder=lambda z: decoder(z).reshape(z.shape[0], 2, 3),
                likelihood=crais.Gaussian(noise), latent=4, image_shape=(2, 3))


def exact(x):
    normal = torch.distributions.MultivariateNormal(
        bias, weight @ weight.T + noise**2 * torch.eye(6, dtype=torch.float64))
    return normal.log_prob(x.double().flatten(1))


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = decoder

    def forward(self, z):
        return self.linear(z).reshape(-1, 2, 3)


# Linear too, by products that are large enough for bfloat16.
wide = torch.nn.Sequential(torch.nn.Linear(4, 256), torch.nn.Linear(256, 512))
with torch.no_grad():
    back = torch.linalg.pinv(wide(torch.eye(4)) - wide(torch.zeros(1, 4)))  # [512, 4]
    start = wide(torch.zeros(1, 4))


def forced():
    return describe() | dict(
        decoder=lambda z: decoder((wide(z) - start) @ back).reshape(z.shape[0], 2, 3),
        force_dtype="bfloat16")


offsets = torch.randn(3, 2, 3)


def conditional():
    return describe() | dict(decoder=lambda z, y: decoder(z).reshape(z.shape[0], 2, 3) + offsets[y],
                             labels=torch.arange(3))


def compiled():
    return describe() | dict(fused=False)
PYTHON

# --- TorchScript runs under every LibTorch, a package under one of 2.6 or later.
"$python" -W ignore -m crais.export model:compiled -o linear.pt >out.txt 2>err.txt ||
  fail "no linear.pt: $(cat err.txt)"
"$python" -W ignore -m crais.export model:describe -o weights.pt2 >out.txt 2>err.txt ||
  fail "no weights.pt2: $(cat err.txt)"
models=(weights.pt2 linear.pt)
if [ "$(printf '2.6\n%s\n' "$wanted" | sort -V | head -n 1)" = 2.6 ]; then
  "$python" -W ignore -m crais.export model:compiled -o linear.pt2 >out.txt 2>err.txt ||
    fail "no linear.pt2: $(cat err.txt)"
  "$python" -W ignore -m crais.export model:forced -o forced.pt2 >out.txt 2>err.txt ||
    fail "no forced.pt2: $(cat err.txt)"
  grep -q "forces in bfloat16 .* us; these differ by" err.txt || fail "forces: $(cat err.txt)"
  models+=(forced.pt2 linear.pt2)
fi
"$python" -W ignore - <<'PYTHON' || fail "no data"
import torch, model
from crais import safetensors
x = torch.randn(20, 2, 3)
y = torch.arange(20) % 3
tensors = {"test": x, "far": 300 * x, "wide": torch.zeros(3, 7), "y": y, "shifted": x + model.offsets[y]}
open("x.safetensors", "wb").write(safetensors.dumps(tensors, {}))
open("exact.txt", "w").write("\n".join(repr(v) for v in model.exact(x).tolist()))
PYTHON

exact() { # FOLDER: every estimate is within 5 of its standard errors of the truth
  "$python" -W ignore - "$1" <<'PYTHON'
import csv, sys
exact = [float(line) for line in open("exact.txt")]
rows = list(csv.DictReader(open(sys.argv[1] + "/per_image.csv")))
assert len(rows) == len(exact) == 20
for row, truth in zip(rows, exact):
    apart = abs(float(row["log_likelihood"]) - truth)
    assert apart < 5 * float(row["std_error"]) + 1e-4, (row, truth)
PYTHON
}

# --- The exact log p(x), from every base and with every bound.
for model in "${models[@]}"; do
  for base in laplace prior; do
    succeed "$model" --data x.safetensors:test --base $base --steps 64 --out "out-$base-$model" --quiet
    exact "out-$base-$model" || fail "$model from $base is not exact"
  done
  succeed "$model" --simulate 30 --method bidirectional --base laplace --quiet --format json
  "$python" -W ignore -c '
import json
(result,) = json.load(open("out.txt"))["results"]
assert abs(result["log_likelihood"] + 6.6) < 3, result
' || fail "$model simulates otherwise: $(cat out.txt)"
  succeed "$model" --data x.safetensors:test --dry-run
  expect 65 "images are 7" "2 x 3" -- "$model" --data x.safetensors:wide
  expect 64 '"far", "shifted", "test", "wide", "y"' -- "$model" --data x.safetensors
  expect 64 "not conditional" -- "$model" --data x.safetensors:test --labels x.safetensors:y
done

# --- TorchScript of another program: exact too, once it is said what its outputs mean.
"$python" -W ignore -c '
import torch, model
torch.jit.script(model.Decoder()).save("plain.pt")
' || fail "no plain.pt"
plain=(plain.pt --likelihood gaussian:0.5)
succeed "${plain[@]}" --data x.safetensors:test --base laplace --steps 64 --out out-plain
grep -q "^decoder     4 latents to \[2, 3\]" err.txt || fail "plain.pt: $(cat err.txt)"
exact out-plain || fail "plain.pt is not exact"
succeed "${plain[@]}" --latent 4 --simulate 30 --method bidirectional --base laplace --quiet
expect 64 "plain.pt: TorchScript that does not say what it is" "--likelihood" -- plain.pt --data x.safetensors:test
expect 65 "'forward' fails" -- "${plain[@]}" --latent 5 --data x.safetensors:test

# --- What a file says itself, no flag says otherwise.
expect 64 "${models[0]}" "--likelihood does nothing" -- "${models[0]}" --likelihood bernoulli --data x.safetensors:test --steps 4

# --- p(x | y): images that are moved by what their labels say have the same log-likelihoods.
conditionals=(conditional.pt)
[ "${models[-1]}" = linear.pt2 ] && conditionals+=(conditional.pt2)
for model in "${conditionals[@]}"; do
  "$python" -W ignore -m crais.export model:conditional -o "$model" >out.txt 2>err.txt ||
    fail "no $model: $(cat err.txt)"
  succeed "$model" --data x.safetensors:shifted --labels x.safetensors:y --base laplace --quiet \
    --out "out-$model"
  exact "out-$model" || fail "$model is not exact"
  succeed "$model" --simulate 30 --method bidirectional --base laplace --quiet
  expect 64 "--labels FILE" "conditional" -- "$model" --data x.safetensors:test
  expect 65 "the model's are one number" -- "$model" --data x.safetensors:test --labels x.safetensors:far
  expect 65 "3 labels for 20 images" -- "$model" --data x.safetensors:test --labels x.safetensors:wide
done

# --- Forces in bfloat16: other chains, the same log p(x); none in a file that was exported without.
if [ "${models[-1]}" = linear.pt2 ]; then
  data=(--data x.safetensors:test --base prior --steps 64 --quiet)
  for dtype in float32 bfloat16; do
    succeed forced.pt2 "${data[@]}" --force-dtype $dtype --out "forces-$dtype"
    exact "forces-$dtype" || fail "forces in $dtype are not exact"
  done
  cmp -s forces-float32/per_image.csv forces-bfloat16/per_image.csv &&
    fail "forces in bfloat16 are those in float32"
  succeed linear.pt "${data[@]}" --force-dtype bfloat16 --out forces-script
  exact forces-script || fail "autocast forces of TorchScript are not exact"
  expect 64 "--force-dtype bfloat16" "export the model again" -- linear.pt2 "${data[@]}" --force-dtype bfloat16
  succeed linear.pt2 "${data[@]}" --force-dtype auto
fi

# --- The file decides, and the same run gives the same bytes.
model=${models[-1]}
for name in first second; do
  succeed "$model" --data x.safetensors:test --limit 10 --chunk 4 --quiet --threads 2 --out $name
done
same first/per_image.csv second/per_image.csv
for part in 1 2; do
  succeed "$model" --data x.safetensors:test --limit 10 --chunk 4 --quiet --shard $part/2 --out part$part
done
succeed merge part1 part2 --out whole
same first/per_image.csv whole/per_image.csv

# --- Packages that must not run.
if [ "$model" = linear.pt2 ]; then
  cat >spoil.py <<'PYTHON'
import json, sys, zipfile

sys.path.insert(0, "")


def spoil(name, description=lambda d: d, arrays=lambda b: b, keep=lambda entry: True):
    """A copy of the package with another description."""
    with zipfile.ZipFile("linear.pt2") as whole, zipfile.ZipFile(name, "w") as copy:
        for entry in whole.namelist():
            content = whole.read(entry)
            if entry.endswith("crais.safetensors"):
                length = int.from_bytes(content[:8], "little")
                header = json.loads(content[8 : 8 + length])
                described = description(json.loads(header["__metadata__"]["crais"]))
                header["__metadata__"]["crais"] = json.dumps(described)
                text = json.dumps(header).encode()
                content = len(text).to_bytes(8, "little") + text + arrays(content[8 + length :])
            if keep(entry):
                copy.writestr(entry, content)


spoil("torch.pt2", lambda d: d | {"torch": "2.1.0"})
spoil("machine.pt2", lambda d: d | {"machine": "ppc64le"})
spoil("cpu.pt2", lambda d: d | {"cpu_flags": ["avx9000"]})
spoil("latent.pt2", lambda d: d | {"latent": 5})
spoil("huge.pt2", lambda d: d | {"data_shape": [1 << 30, 1 << 30]})
spoil("escape.pt2", lambda d: d | {"name": "\x1b[2J"})
spoil("batch.pt2", lambda d: d | {"batch": 0})
spoil("forces.pt2", lambda d: d | {"forces": {"dtype": "bfloat16", "pays": True}})
spoil("half.pt2", lambda d: d | {"forces": {"dtype": "float16", "pays": True}})
spoil("pays.pt2", lambda d: d | {"forces": {"dtype": "bfloat16", "pays": 1}})
spoil("words.pt2", lambda d: d | {"forces": "bfloat16"})
both = {"functions": ["joint", "joint_bfloat16"]}
spoil("silent.pt2", lambda d: d | both)
spoil("unchecked.pt2", lambda d: d | both | {"forces": {"dtype": "bfloat16", "pays": True}})
spoil("missing.pt2", keep=lambda entry: not entry.endswith("crais.safetensors"))
spoil("values.pt2", arrays=lambda b: bytes(len(b)))
spoil("code.pt2", keep=lambda entry: not entry.endswith(".so"))
with open("linear.pt2", "rb") as whole, open("cut.pt2", "wb") as part:
    content = whole.read()
    part.write(content[: len(content) // 2])
PYTHON
  "$python" -W ignore spoil.py || fail "cannot spoil packages"
  data=(--data x.safetensors:test)
  expect 65 "PyTorch" "2.1.0" "export the model again" -- torch.pt2 "${data[@]}"
  expect 65 "ppc64le" "export the model again" -- machine.pt2 "${data[@]}"
  expect 65 "avx9000" "export the model again" -- cpu.pt2 "${data[@]}"
  expect 65 "check.z" -- latent.pt2 "${data[@]}"
  expect 65 "data_shape" -- huge.pt2 "${data[@]}"
  expect 65 "control characters" -- escape.pt2 "${data[@]}"
  expect 65 "batch" -- batch.pt2 "${data[@]}"
  expect 65 '"forces"' "joint_bfloat16" -- forces.pt2 "${data[@]}"
  expect 65 '"forces"' '"dtype" is not bfloat16' -- half.pt2 "${data[@]}"
  expect 65 '"pays" is not true or false' -- pays.pt2 "${data[@]}"
  expect 65 '"forces"' "described" -- words.pt2 "${data[@]}"
  expect 65 '"forces"' "joint_bfloat16" -- silent.pt2 "${data[@]}"
  expect 65 "check.grad_bfloat16" -- unchecked.pt2 "${data[@]}"
  expect 65 "crais.safetensors" -- missing.pt2 "${data[@]}"
  expect 65 "does not compute here" -- values.pt2 "${data[@]}"
  expect 65 "cannot be loaded" -- code.pt2 "${data[@]}"
  expect 65 "cut.pt2" -- cut.pt2 "${data[@]}"
  expect 64 "float32" -- linear.pt2 "${data[@]}" --dtype float64
fi

# --- The zoo's script that needs no data and no training: its mean is exact.
"$python" -W ignore "$CRAIS_SOURCE/examples/models/linear_gaussian.py" zoo.pt2 >zoo.txt 2>err.txt ||
  fail "linear_gaussian.py: $(cat err.txt)"
succeed zoo.pt2 --data zoo.npy --base laplace --quiet --format json
"$python" -W ignore -c '
import json
(result,) = json.load(open("out.txt"))["results"]
exact = float(open("zoo.txt").read().split("=")[-1])
assert abs(result["log_likelihood"] - exact) < 1e-3, (result, exact)
' || fail "linear_gaussian.py is not exact"
for script in "$CRAIS_SOURCE"/examples/models/*.py; do
  "$python" -W error -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$script" ||
    fail "$script does not compile"
done

# --- What crais.export refuses, and why.
cat >refused.py <<'PYTHON'
import torch

import crais

decoder = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 4))
ready = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Linear(8, 4)).eval()
plain = dict(likelihood=crais.Bernoulli(), latent=3, image_shape=(4,), quiet=True)


def branches(z):
    return ready(z) if z.abs().max() < 100 else -ready(z)


def mixes(z):
    return ready(z) - ready(z).mean(0)


def noisy(z):
    return ready(z) + 0.1 * torch.randn(4)


for words, described in [
    ("training mode", plain | dict(decoder=decoder)),
    ("depends on the other rows", plain | dict(decoder=mixes)),
    ("differs from call to call", plain | dict(decoder=noisy)),
    ("not finite", plain | dict(decoder=lambda z: ready(z) / 0.0)),
    ("image_shape", plain | dict(decoder=ready, image_shape=(0,))),
    ("fails for z", plain | dict(decoder=ready, latent=2)),
    ("one entry a row", dict(log_joint=lambda z, x: z, latent=3, image_shape=(4,))),
    ("a decoder with its likelihood", dict(decoder=ready, latent=3, image_shape=(4,))),
    ("the encoder must return", plain | dict(decoder=ready, encoder=ready[1:0])),
    ("float64", dict(log_joint=lambda z, x: z.double().sum(1), latent=3, image_shape=(4,))),
]:
    try:
        crais.export("refused.pt", **described)
    except crais.ExportError as error:
        assert words in str(error), (words, str(error))
    else:
        raise AssertionError("not refused: " + words)
try:
    crais.export("refused.pt2", decoder=branches, **plain)
except crais.ExportError as error:
    assert "cannot be traced" in str(error) and "depends on data" in str(error), str(error)
else:
    raise AssertionError("control flow was not refused")
PYTHON
"$python" -W ignore refused.py >out.txt 2>&1 || fail "crais.export: $(tail -n 3 out.txt)"
[ -e refused.pt ] && fail "a refused model left a file"
finish
