#!/usr/bin/env bash
# Doxygen reads the public headers without a warning, and every public class has a page.
set -uo pipefail
command -v doxygen >/dev/null || { echo "SKIPPED: there is no doxygen"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CRAIS_HEADERS=$CRAIS_BUILD/include CRAIS_DOXYGEN_OUT=$work
doxygen "$CRAIS_SOURCE/docs/Doxyfile" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
[ -s "$work/log" ] && { cat "$work/log"; exit 1; }
failures=0
for name in Target FunctionTarget DecoderTarget Path ScheduleRule Transition Method Estimator \
  TunedEstimator RunObserver AffineMap Problem; do
  [ -e "$work/html/classcrais_1_1$name.html" ] || { echo "FAILED: no page for $name"; failures=1; }
done
exit $failures
