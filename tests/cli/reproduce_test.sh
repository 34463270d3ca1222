#!/usr/bin/env bash
# reproduce as a user meets it: names, files, nothing computed twice, no gnuplot, bad input.
set -uo pipefail
program="${CRAIS_BIN:?}/reproduce"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA

succeed list
for experiment in accuracy figure-2d figure-logreg figure-logreg-schedules figure-objective figure-particles \
  figure-schedules robustness table-appendix table-highdim table-smc table-vae; do
  grep -q "^$experiment " out.txt || fail "list does not name $experiment"
done
expect 64 "unknown experiment 'table-9'" "figure-2d" "table-smc" -- table-9
expect 64 "unknown experiment 'table-9'" -- figure-2d table-9 --out checked
[ -e checked ] && fail "an unknown name was found only after the work had begun"
expect 64 "--quick" "--full" -- figure-2d --quick --full
expect 64 "--seeds" -- figure-2d --seeds 1
expect 64 "--fault ring" "widths" "tuning-particles" -- figure-2d --fault ring --out checked
expect 64 "--fault ring" "none in accuracy" -- accuracy --fault ring --out checked
expect 64 "table-highdim:64" -- table-highdim:64 --out checked
expect 64 "table-appendix:300" "128 and 512" -- table-appendix:300 --out checked
expect 66 "pima" -- figure-logreg --out nodata --data-dir "$work"

# --- Twice: the same files, and nothing computed the second time.
small=(figure-2d --seeds 2 --quiet)
succeed "${small[@]}" --out first
cp out.txt first.txt
for file in index.html figure-2d.csv figure-2d.json; do
  [ -s first/figure-2d/$file ] || fail "no $file: $(ls first/figure-2d)"
done
cp -r first copy
succeed "${small[@]}" --out first
same first.txt out.txt
diff -r first copy >diff.txt || fail "the second time differs: $(head -n 3 diff.txt)"
[ -z "$(find first -name '*.json' -path '*cells*' -newer first.txt)" ] || fail "cells were computed again"

# --- One lost cell is made again, to the byte.
cell=$(find first -path '*cells*' -name '*.json' | sort | head -n 1)
rm "$cell"
succeed "${small[@]}" --out first --threads 1
same "$cell" "copy/cells/$(basename "$cell")"

# --- One that is damaged is named, and no fault of the program.
for damage in 's/.*/[]/' 's/"result":.*/"result":{}}/' 's/"result":.*/"result":[]}/'; do
  sed -i "$damage" "$cell"
  expect 65 "first/cells" -- "${small[@]}" --out first
  cp "copy/cells/$(basename "$cell")" "$cell"
done

# --- Without gnuplot the numbers are there, the pictures are not, and one line says so.
mkdir empty
PATH="$work/empty" "$program" "${small[@]}" --out first >out.txt 2>err.txt || fail "without gnuplot: exit $?"
[ "$(grep -c gnuplot err.txt)" = 1 ] || fail "without gnuplot: $(cat err.txt)"
same first.txt out.txt
same first/figure-2d/figure-2d.csv copy/figure-2d/figure-2d.csv
finish
