#!/usr/bin/env bash
# An installed crais serves a project of its own, and its programs run from where they were put.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH CMAKE_PREFIX_PATH Torch_DIR

from_cache() { sed -n "s/^$1:[A-Z]*=//p" "$CRAIS_BUILD/CMakeCache.txt"; }

cmake --install "$CRAIS_BUILD" --prefix "$work/prefix" >"$work/log"
# From here on nothing may depend on where it was installed first.
mv "$work/prefix" "$work/moved"

for program in "$CRAIS_BIN"/*; do
  "$work/moved/bin/$(basename "$program")" --version
done

cmake -S "$CRAIS_SOURCE/examples/downstream" -B "$work/build" -G Ninja \
  -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_BUILD_TYPE="$(from_cache CMAKE_BUILD_TYPE)" \
  -DCMAKE_CXX_FLAGS="$(from_cache CMAKE_CXX_FLAGS)"
cmake --build "$work/build"
"$work/build/banana"
