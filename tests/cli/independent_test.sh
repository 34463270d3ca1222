#!/usr/bin/env bash
# The shipped checkpoint under eval-loglik and under tests/golden/independent_check.py agree per image.
set -uo pipefail
program="${CRAIS_BIN:?}/eval-loglik"
source_root=${CRAIS_SOURCE:?}
model=$source_root/weights/vae50-mnist.safetensors
images=
for folder in "" /raw /MNIST/raw /mnist; do
  for suffix in "" .gz; do
    file=${CRAIS_DATA:-/nowhere}$folder/t10k-images-idx3-ubyte$suffix
    [ -z "$images" ] && [ -f "$file" ] && images=$file
  done
done
[ -n "$images" ] || { echo "skipped: needs MNIST in CRAIS_DATA"; exit 77; }
for python in python3 "$source_root/.venv/bin/python"; do
  "$python" -c 'import torch' 2>/dev/null && found=$python && break
done
[ -n "${found:-}" ] || { echo "skipped: needs Python's torch"; exit 77; }
. "$source_root/tests/cli/support.sh"
succeed "$model" --limit 20 --steps 400 --chains 32 --quiet --out ours
"$found" "$source_root/tests/golden/independent_check.py" "$model" "$images" ours/per_image.csv || fail "they differ"
finish
