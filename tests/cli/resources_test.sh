#!/usr/bin/env bash
# What eval-loglik says of evaluator and memory, how it keeps a limit, and its check of the BLAS.
set -uo pipefail
program="${CRAIS_BIN:?}/eval-loglik"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA CRAIS_EVALUATOR
export XDG_CACHE_HOME=$PWD/cache

"$CRAIS_BIN/train-vae" --data synthetic:300 --hidden 20 --latent 5 --epochs 1 --quiet --out vae >out.txt 2>err.txt ||
  fail "no checkpoint: $(cat err.txt)"
[ -e cache ] && fail "--quiet checked the BLAS"
small=(vae/vae.safetensors --simulate 40 --steps 4 --chains 3 --chunk 8 --base laplace)

# --- The evaluator.
succeed "${small[@]}" --quiet --out fused
grep -qE ' Evaluator fused-[a-z0-9]* on cpu(, cheap forces)?\.$' out.txt || fail "no evaluator: $(cat out.txt)"
grep -q '"evaluator": "fused-' fused/summary.json || fail "no evaluator in summary.json"
grep -q '"evaluator": "fused-' fused/run.json || fail "run.json does not say what computes it"
CRAIS_EVALUATOR=aten expect 64 "another build" "evaluator" "--accept-other-version" -- "${small[@]}" --quiet --out fused --resume
CRAIS_EVALUATOR=aten succeed "${small[@]}" --quiet --out fused --resume --accept-other-version
CRAIS_EVALUATOR=aten succeed "${small[@]}" --quiet --dry-run
grep -q 'with evaluator aten' out.txt || fail "--dry-run: $(cat out.txt)"
CRAIS_EVALUATOR=fused-abacus expect 64 "fused-abacus" "aten" -- "${small[@]}" --quiet

succeed "${small[@]}" --quiet --shard 1/2 --out part1
CRAIS_EVALUATOR=aten succeed "${small[@]}" --quiet --shard 2/2 --out part2
expect 65 "part2" "another run" "--accept-other-version" -- merge part1 part2 --out merged
succeed merge part1 part2 --out merged --accept-other-version
[ "$(wc -l <merged/per_image.csv)" = 41 ] || fail "merged: $(wc -l <merged/per_image.csv) lines"

for spoiled in 's/"chunk": 8/"chunk": 0/' 's/"chunk": 8/"chunk": -1/' 's/"count": 40/"count": 0/'; do
  cp -r part1 spoiled
  sed -i "$spoiled" spoiled/run.json
  expect 65 "spoiled/run.json" "images in chunks of" -- merge spoiled --out never
  rm -r spoiled
done

# --- Forces.
succeed "${small[@]}" --quiet --force-dtype float32
grep -q ' on cpu\.$' out.txt || fail "float32: $(cat out.txt)"
succeed "${small[@]}" --quiet --force-dtype bfloat16 --out cheap
grep -q ' on cpu, cheap forces\.$' out.txt || fail "bfloat16: $(cat out.txt)"
grep -q '"forces": "bfloat16"' cheap/summary.json || fail "summary.json does not say in what forces are"
grep -q '"forces": *"bfloat16"' cheap/plan.json || fail "plan.json does not say in what forces are"
succeed "${small[@]}" --quiet --force-dtype bfloat16 --out cheap --resume
expect 64 "force" "float32" "bfloat16" -- "${small[@]}" --quiet --force-dtype float32 --out cheap --resume
expect 64 "--force-dtype" "auto" -- "${small[@]}" --force-dtype float16
CRAIS_EVALUATOR=aten succeed "${small[@]}" --quiet --force-dtype bfloat16
grep -q 'Evaluator aten on cpu, cheap forces' out.txt || fail "aten: $(cat out.txt)"
program="$CRAIS_BIN/estimate-logz" expect 64 "--force-dtype bfloat16" "leave" -- normal:2 --quiet --force-dtype bfloat16

# --- The BLAS is looked at where it is used, and only once if it is fast.
succeed "${small[@]}"
[ -e cache ] && fail "the BLAS was checked for a run that does without"
CRAIS_EVALUATOR=aten succeed "${small[@]}"
slow=$(grep -c 'GFLOP/s' err.txt)
figures=$(find cache/crais -type f 2>/dev/null | wc -l)
[ "$((slow + figures))" = 1 ] || fail "neither a warning nor a figure, or both: $(cat err.txt; ls cache)"
chmod 500 cache/crais 2>/dev/null
CRAIS_EVALUATOR=aten XDG_CACHE_HOME=/proc/none succeed "${small[@]}"

# --- Memory: a limit changes threads, never results.
peak=$(grep -o '"peak_memory_bytes": [0-9]*' fused/summary.json | grep -o '[0-9]*$')
[ "${peak:-0}" -gt 10000000 ] || fail "peak memory: '$peak' bytes"
succeed "${small[@]}" --quiet --threads 8 --memory-limit 100G --out free
grep -q '"threads": 8' free/summary.json || fail "a generous limit took threads away"
present=$(grep -o '"peak_memory_bytes": [0-9]*' free/summary.json | grep -o '[0-9]*$')
many=(vae/vae.safetensors --simulate 40 --steps 4 --chains 20000 --chunk 8 --base laplace --pilot-chains 8
  --quiet --threads 8)
succeed "${many[@]}" --memory-limit $((present + 120000000)) --out tight
succeed "${many[@]}" --out loose
grep -q '"threads": [1-7],\?$' tight/summary.json || fail "a tight limit: $(grep threads tight/summary.json)"
same tight/per_image.csv loose/per_image.csv
tight=$(grep -o '"peak_memory_bytes": [0-9]*' tight/summary.json | grep -o '[0-9]*$')
[ "$tight" -le $((present + 120000000)) ] || fail "$tight bytes, beyond the limit"
expect 64 "--memory-limit 1 MiB" "MiB more" "--chunk" -- "${small[@]}" --quiet --memory-limit 1M
expect 64 "--memory-limit" "'lots'" -- "${small[@]}" --quiet --memory-limit lots

finish
