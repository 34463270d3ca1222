#!/usr/bin/env bash
# The loader finds the system's C++ library before LibTorch's pieces of one, and LibTorch finds no
# std::call_once of ours: its wheels for CUDA would call it with a state that ours does not know.
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
  case $file in "$CRAIS_BUILD"/tests/*) continue ;; esac
  if readelf --dyn-syms --wide "$file" | grep 'once_flag.*_Prepare_execution' | grep -qv UND; then
    echo "FAILED: $file exports std::call_once: it uses std::future, std::promise or std::async"
    failures=$((failures + 1))
  fi
done
[ "$checked" -ge 1 ] || { echo "FAILED: nothing needs LibTorch"; failures=1; }
exit $((failures > 0))
