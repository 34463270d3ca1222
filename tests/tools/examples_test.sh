#!/usr/bin/env bash
# An installed crais serves projects of others: every example builds on it and prints what
# expected.txt says, and the programs run from where they were moved.
set -uo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH CMAKE_PREFIX_PATH Torch_DIR
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

from_cache() { sed -n "s/^$1:[A-Z]*=//p" "$CRAIS_BUILD/CMakeCache.txt"; }

cmake --install "$CRAIS_BUILD" --prefix "$work/prefix" >"$work/log" || exit 1
# From here on nothing may depend on where it was installed first.
mv "$work/prefix" "$work/moved"

for program in "$CRAIS_BIN"/*; do
  "$work/moved/bin/$(basename "$program")" --version || fail "$(basename "$program") does not run"
done

# Nothing of ours lies where an include of a user's would find it.
others=$(find "$work/moved/include" -mindepth 1 -maxdepth 1 -not -name crais)
[ -z "$others" ] || fail "installed beside include/crais: $others"
if grep -rn '#include "' "$work/moved/include"; then fail "an installed header includes by layer"; fi

# A user's own folder of the same name comes first, and hurts nobody.
mkdir -p "$work/user/core"
echo '#error "the wrong target.h"' >"$work/user/core/target.h"
cmake -S "$CRAIS_SOURCE/examples" -B "$work/build" -G Ninja \
  -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_BUILD_TYPE="$(from_cache CMAKE_BUILD_TYPE)" \
  -DCMAKE_CXX_COMPILER="$(from_cache CMAKE_CXX_COMPILER)" \
  -DCMAKE_CXX_FLAGS="$(from_cache CMAKE_CXX_FLAGS) -I$work/user" >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
cmake --build "$work/build" || exit 1

for main in "$CRAIS_SOURCE"/examples/*/main.cpp; do  # examples/models are in Python
  folder=$(dirname "$main")
  example=$(basename "$folder")
  lines=$(wc -l <"$main")
  [ "$lines" -lt 60 ] || fail "$example has $lines lines"
  (cd "$work" && "$work/build/$example") >"$work/out.txt" 2>&1 || fail "$example: exit $?"
  diff "$folder/expected.txt" "$work/out.txt" || fail "$example prints something else"
done
exit $((failures > 0))
