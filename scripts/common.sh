# shellcheck shell=bash
# Sourced by the other scripts, from the root of the project.
# shellcheck disable=SC2034  # the exit codes are for those who source this
readonly kUsage=64 kUnavailable=69 # sysexits.h

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

fail() { # CODE MESSAGE...
  local code=$1
  shift
  say "$@"
  exit "$code"
}

# The comment at the head of the script, as its help.
usage() {
  sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "scripts/$(basename "$0")"
  exit 0
}

# For a script without arguments: only --help is one.
no_arguments() {
  case ${1:-} in
    '') ;;
    -h | --help) usage ;;
    *) fail $kUsage "unknown argument '$1'; see scripts/$(basename "$0") --help" ;;
  esac
}

torch_of_python() { # the folder of the torch that the interpreter $1 imports
  "$1" -c 'import importlib.util, os
spec = importlib.util.find_spec("torch")
print(os.path.dirname(spec.origin))' 2>/dev/null
}

# The Python whose torch is the LibTorch $1; nothing where there is none.
python_of_libtorch() {
  local python folder
  for python in "$PWD/.venv/bin/python" "$(command -v python3)"; do
    if folder=$(torch_of_python "$python") && [ "$(cd "$folder" && pwd -P)" = "$1" ]; then
      echo "$python"
      return
    fi
  done
}

# build PRESET TESTS TARGET...: configures build/PRESET if there is need, and builds. TESTS is ON or
# OFF; a folder that was configured with tests keeps them. With tests comes the extension of the
# Python package, where the LibTorch is a Python's.
build() {
  local preset=$1 tests=$2 folder=build/$1 libtorch extension=() found
  shift 2
  read -r libtorch <build/libtorch
  if [ "$tests" = ON ] && [ "$preset" = release ]; then
    found=$(python_of_libtorch "$libtorch")
    [ -z "$found" ] || extension=(-DCRAIS_PYTHON=ON -DPython_EXECUTABLE="$found")
  fi
  if ! [ -f "$folder/build.ninja" ] || ! grep -qx "$libtorch" "$folder/libtorch" 2>/dev/null ||
    { [ "$tests" = ON ] && ! grep -q '^BUILD_TESTING:.*=ON' "$folder/CMakeCache.txt"; } ||
    { [ ${#extension[@]} -gt 0 ] && ! grep -q '^CRAIS_PYTHON:.*=ON' "$folder/CMakeCache.txt"; }; then
    say "configuring $folder"
    if ! cmake --preset "$preset" -DBUILD_TESTING="$tests" -DCMAKE_PREFIX_PATH="$libtorch" \
      -UTorch_DIR "${extension[@]}" >build/configure.log 2>&1; then
      cat build/configure.log >&2
      fail 70 "cmake failed (build/configure.log)"
    fi
    echo "$libtorch" >"$folder/libtorch"
  fi
  say "building $folder"
  cmake --build "$folder" --target "$@"
}

# Which tests were skipped, and why, from the log of a ctest run.
list_skipped() {
  local reasons
  reasons=$(grep -A 1 ': Skipped$' "$1" | grep -v -e ': Skipped$' -e '^--$' | sort | uniq -c |
    sed 's/^ */  /; s/ / x /3' || true)
  reasons+=$(grep -E '^SKIPPED(:| \[)' "$1" | sort | uniq -c | sed -E 's/^ */\n  /; s/ SKIPPED:?/ x/' || true)
  [ -z "$reasons" ] || say "skipped cases, and why:"$'\n'"$reasons"
}
