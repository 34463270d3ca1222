#!/usr/bin/env bash
# The loader finds the system's C++ library before LibTorch's pieces of one.
set -u
command -v readelf >/dev/null || { echo "SKIPPED: there is no readelf"; exit 77; }
failures=0
checked=0
for file in "$CRAIS_BUILD"/lib/libcrais.so "$CRAIS_BIN"/* "$CRAIS_BUILD"/tests/*_tests; do
  needed=$(readelf -d "$file" | grep -o 'NEEDED.*\[.*\]')
  own=$(grep -n 'libstdc++' <<<"$needed" | head -1 | cut -d: -f1)
  torch=$(grep -n 'libtorch\|libc10' <<<"$needed" | head -1 | cut -d: -f1)
  [ -n "$torch" ] || continue
  checked=$((checked + 1))
  if [ -z "$own" ] || [ "$own" -gt "$torch" ]; then
    echo "FAILED: $file finds LibTorch before libstdc++:"
    echo "$needed"
    failures=$((failures + 1))
  fi
done
[ "$checked" -ge 1 ] || { echo "FAILED: nothing needs LibTorch"; failures=1; }
exit $((failures > 0))
