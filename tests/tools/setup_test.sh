#!/usr/bin/env bash
# scripts/setup on machines that are made up: which LibTorch it takes, and what it says otherwise.
set -uo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset Torch_DIR CMAKE_PREFIX_PATH
mkdir "$work/project" "$work/bin"
cp -r "$CRAIS_SOURCE/scripts" "$work/project"
cd "$work/project" || exit 1

# Commands that setup may call, of a machine that has every package and no network.
fake() { # NAME BODY
  printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
every_package='shift 2; printf "installed %s\n" "$@"'
fake dpkg-query "$every_package"
fake apt-get 'echo "apt-get $*" >>"'"$work"'/apt-calls"; exit 100'
fake python3 'exit 1'
fake sudo 'exit 1'
fake id 'echo 1000'
export PATH="$work/bin:$PATH"

libtorch() { # FOLDER MAJOR MINOR
  mkdir -p "$1"/{include/{ATen,torch/csrc/api/include/torch},lib,share/cmake/Torch}
  touch "$1/include/ATen/ATen.h" "$1/lib/libtorch_cpu.so" "$1/share/cmake/Torch/TorchConfig.cmake"
  printf '#define TORCH_VERSION_MAJOR %d\n#define TORCH_VERSION_MINOR %d\n' "$2" "$3" \
    >"$1/include/torch/csrc/api/include/torch/version.h"
}
libtorch "$work/new" 2 6
libtorch "$work/other" 2 7
libtorch "$work/old" 2 5
libtorch "$work/old-abi" 2 6
echo 'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")' \
  >"$work/old-abi/share/cmake/Torch/TorchConfig.cmake"

failures=0
expect() { # STATUS WORDS [VARIABLE=VALUE...] ARGUMENTS...
  local status=$1 words=$2 output actual
  shift 2
  output=$(env "$@" 2>&1 </dev/null)
  actual=$?
  if [ $actual -ne "$status" ] || ! grep -qF -- "$words" <<<"$output"; then
    printf 'FAILED: %s\n  expected %d and "%s", got %d and:\n%s\n' "$*" "$status" "$words" \
      $actual "$output" >&2
    failures=$((failures + 1))
  fi
}
chosen() { # FOLDER
  if [ "$(head -n 1 build/libtorch 2>/dev/null)" != "$1" ]; then
    printf 'FAILED: expected the choice %s, got:\n%s\n' "$1" "$(cat build/libtorch)" >&2
    failures=$((failures + 1))
  fi
}

expect 64 "unknown argument '--libtroch'" scripts/setup --libtroch pip
expect 64 "--libtorch needs a value" scripts/setup --libtorch
expect 64 "--for takes run, test, bench or ci, not 'fun'" scripts/setup --for fun
expect 0 "--libtorch auto|pip|PATH" scripts/setup --help

expect 0 "LibTorch 2.6, named by --libtorch: $work/new" scripts/setup --libtorch "$work/new"
chosen "$work/new"
expect 0 "(as chosen before)" scripts/setup
expect 0 "LibTorch 2.7, named by Torch_DIR" Torch_DIR="$work/other/share/cmake/Torch" scripts/setup
chosen "$work/other"
expect 0 "LibTorch 2.6, named by CMAKE_PREFIX_PATH" \
  CMAKE_PREFIX_PATH="/nowhere:$work/new" scripts/setup
chosen "$work/new"

expect 69 "LibTorch 2.5 in $work/old; 2.6 is the oldest" scripts/setup --libtorch "$work/old"
expect 69 "C++ ABI of before 2011" scripts/setup --libtorch "$work/old-abi"
expect 69 "holds no include/ATen/ATen.h" scripts/setup --libtorch "$work"
expect 69 "One of these gives one" scripts/setup --libtorch "$work"
chosen "$work/new"

printf '%s\n' "$work/old" "LibTorch 2.5, chosen by an older scripts/setup" >build/libtorch
fake python3 'echo "'"$work/other"'"' # its torch
expect 0 "LibTorch 2.7, the torch that $work/bin/python3 imports" scripts/setup
chosen "$work/other"
libtorch "$work/python" 1 13
# shellcheck disable=SC2016  # expands when the fake runs
fake python3 'case $1 in -c) echo "'"$work/python"'" ;; *) exit 1 ;; esac'
expect 69 "LibTorch 1.13 in $work/python; 2.6 is the oldest" scripts/setup --libtorch auto
fake python3 'echo "'"$work/other"'"'
expect 0 "LibTorch 2.7, the torch that $work/bin/python3 imports" scripts/setup --libtorch auto
chosen "$work/other"

# Neither root nor sudo, and a package is missing: the command to run, and nothing is touched.
fake dpkg-query 'shift 2; printf "installed %s\n" "$@" | grep -v -x "installed zlib1g-dev"'
expect 69 "apt-get update && apt-get install -y --no-install-recommends zlib1g-dev" scripts/setup
if [ -e "$work/apt-calls" ]; then
  echo "FAILED: apt-get was called without need or without rights: $(cat "$work/apt-calls")" >&2
  failures=$((failures + 1))
fi
fake id 'echo 0'
expect 69 "apt could not install: zlib1g-dev" scripts/setup

# Without pytest the tests of programs are passed over, and nothing else is.
fake dpkg-query 'shift 2; printf "installed %s\n" "$@" | grep -v -x "installed python3-pytest"'
# shellcheck disable=SC2016  # expands when the fake runs
fake python3 'case $2 in *pytest*) exit 1 ;; esac; echo "'"$work/other"'"'
expect 0 "apt could not install: python3-pytest" scripts/setup --for test
expect 0 "passed over: tests of the programs" scripts/setup --for test
fake python3 'echo "'"$work/other"'"'
rm "$work/apt-calls"
expect 0 "LibTorch 2." scripts/setup --for test
if [ -e "$work/apt-calls" ]; then
  echo "FAILED: apt-get was asked for a pytest that is there" >&2
  failures=$((failures + 1))
fi

# What comes by pip has a version and a digest, and torch is the one that setup names.
torch=$(sed -n 's/^readonly kTorchVersion=//p' scripts/setup)
for wanted in "torch-cpu.txt torch==$torch+cpu" "torch-cuda.txt torch==$torch" "tests.txt pytest==" \
  "torch-needs.txt sympy=="; do
  if ! grep -q "^${wanted#* }" "scripts/pip/${wanted% *}"; then
    printf 'FAILED: no %s in scripts/pip/%s\n' "${wanted#* }" "${wanted% *}" >&2
    failures=$((failures + 1))
  fi
done
if ! awk '/^[a-z]/ { if (name && !digests) exit 1; name = $1; digests = 0; if (!/==[0-9]/) exit 1 }
  /^    --hash=sha256:[0-9a-f]+( \\)?$/ { digests++ } END { exit !digests }' scripts/pip/*.txt; then
  echo "FAILED: a requirement without a version or a digest in scripts/pip" >&2
  failures=$((failures + 1))
fi

[ $failures -eq 0 ]
