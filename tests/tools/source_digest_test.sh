#!/usr/bin/env bash
# The digest of sources is the same in a copy without git, and changes with what decides estimates only.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$CRAIS_SOURCE/src" "$CRAIS_SOURCE/models" "$work"

digest() {
  cmake -DROOT="$1" -DOUT="$work/digest.cpp" -P "$CRAIS_SOURCE/cmake/source_digest.cmake"
  grep -o '"[0-9a-f]\{16\}"' "$work/digest.cpp"
}

fail() {
  echo "FAILED: $*"
  exit 1
}

here=$(digest "$CRAIS_SOURCE")
[ "$(digest "$work")" = "$here" ] || fail "a copy has another digest"
echo '// a comment' >>"$work/src/report/table.cpp"
echo '// a comment' >>"$work/src/programs/eval_loglik/report.cpp"
[ "$(digest "$work")" = "$here" ] || fail "a report changes the digest"
for file in src/samplers/anneal.cpp src/core/rng.h src/kernels/simd.h models/vae.cpp src/evaluation/parts.cpp; do
  cp "$work/$file" "$work/kept"
  echo '// a comment' >>"$work/$file"
  [ "$(digest "$work")" != "$here" ] || fail "$file does not change the digest"
  mv "$work/kept" "$work/$file"
done
touch "$work/src/schedules/another.cpp"
[ "$(digest "$work")" != "$here" ] || fail "a new file does not change the digest"
