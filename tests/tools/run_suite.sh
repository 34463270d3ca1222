#!/usr/bin/env bash
# run_suite.sh PROGRAM SUITE: runs one GoogleTest suite. Exits 77 (ctest: skipped) if each of its
# cases was skipped, and fails if there was none at all.
set -uo pipefail
output=$("$1" --gtest_filter="$2.*" --gtest_color=no)
status=$?
printf '%s\n' "$output"
[ $status -eq 0 ] || exit $status
grep -q '^\[       OK \]' <<<"$output" && exit 0
grep -q '^\[  SKIPPED \]' <<<"$output" && exit 77
echo "run_suite.sh: suite $2 of $1 ran no case" >&2
exit 1
