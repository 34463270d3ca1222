#!/usr/bin/env bash
# The project's own includes are in order, and check_layers finds each kind of fault in a broken tree.
set -euo pipefail
check=$CRAIS_BUILD/tests/check_layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

"$check" "$CRAIS_SOURCE"

fresh_tree() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/src/{core,paths,cli} "$tree/models"
  echo '#pragma once' >"$tree/src/core/a.h"
  echo '#include "core/a.h"' >"$tree/models/m.h"
  printf '#include <vector>\n#include "core/a.h"\n#include "models/m.h"\n' >"$tree/src/paths/p.cpp"
}

# expect_fault WORDS: check_layers fails, and says so.
expect_fault() {
  local output
  if output=$("$check" "$tree" 2>&1); then
    echo "FAILED: accepted a tree that should give: $1" >&2
    exit 1
  fi
  if ! grep -qF "$1" <<<"$output"; then
    printf 'FAILED: expected "%s", got:\n%s\n' "$1" "$output" >&2
    exit 1
  fi
}

fresh_tree
"$check" "$tree"

echo '#  include "paths/p.h"' >>"$tree/src/core/a.h"
touch "$tree/src/paths/p.h"
expect_fault 'core/a.h:2: includes "paths/p.h", of a later layer'

fresh_tree
echo '#include "models/m.h"' >"$tree/src/core/b.cpp"
expect_fault 'core/b.cpp:1: includes "models/m.h", of a later layer'

fresh_tree
echo '#include "b.h"' >"$tree/src/core/a.h"
touch "$tree/src/core/b.h"
expect_fault 'core/a.h:1: includes "b.h", which is not here'

fresh_tree
mkdir "$tree/src/misc"
touch "$tree/src/misc/x.cpp"
expect_fault 'misc/x.cpp: lies in no known layer'

fresh_tree
printf '/// @file\n#include "core/a.h"\n' >"$tree/src/core/p.h"
expect_fault 'core/p.h:2: includes "core/a.h", which is not public'
sed -i '1i /// @file' "$tree/src/core/a.h"
"$check" "$tree"

fresh_tree
echo '#include "core/b.h"' >>"$tree/src/core/a.h"
echo '#include "core/a.h"' >"$tree/src/core/b.h"
expect_fault 'include circle: core/a.h -> core/b.h -> core/a.h'

rm -rf "${tree:?}"/*
expect_fault 'usage: check_layers ROOT'
