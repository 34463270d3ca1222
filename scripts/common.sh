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

# build PRESET TESTS TARGET...: configures build/PRESET if there is need, and builds. TESTS is ON or
# OFF; a folder that was configured with tests keeps them.
build() {
  local preset=$1 tests=$2 folder=build/$1 libtorch
  shift 2
  read -r libtorch <build/libtorch
  if ! [ -f "$folder/build.ninja" ] || ! grep -qx "$libtorch" "$folder/libtorch" 2>/dev/null ||
    { [ "$tests" = ON ] && ! grep -q '^BUILD_TESTING:.*=ON' "$folder/CMakeCache.txt"; }; then
    say "configuring $folder"
    if ! cmake --preset "$preset" -DBUILD_TESTING="$tests" -DCMAKE_PREFIX_PATH="$libtorch" \
      -UTorch_DIR >build/configure.log 2>&1; then
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
  reasons+=$(grep '^SKIPPED: ' "$1" | sort | uniq -c | sed 's/^ */\n  /; s/ SKIPPED:/ x/' || true)
  [ -z "$reasons" ] || say "skipped cases, and why:"$'\n'"$reasons"
}
