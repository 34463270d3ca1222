# shellcheck shell=bash
# What the tests of programs share. Sourced after `program` is set; works in a folder of its own.
program=${program:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}

# expect CODE WORDS... -- ARGUMENTS: exit code, one line on stderr, each of the words in it.
expect() {
  local code=$1 words=() status
  shift
  while [ "$1" != -- ]; do words+=("$1") && shift; done
  shift
  "$program" "$@" >out.txt 2>err.txt
  status=$?
  [ $status = "$code" ] || fail "$*: exit $status, not $code: $(cat err.txt)"
  [ "$(wc -l <err.txt)" = 1 ] || fail "$*: not one line: $(cat err.txt)"
  for word in "${words[@]}"; do
    grep -qF -- "$word" err.txt || fail "$*: no '$word' in: $(cat err.txt)"
  done
}

# small_vae FOLDER ARGUMENTS: a checkpoint in seconds.
small_vae() {
  "${CRAIS_BIN:?}/train-vae" --data synthetic:600 --hidden 20 --latent 5 --quiet --out "$@" >out.txt 2>err.txt ||
    fail "no checkpoint: $(cat err.txt)"
}

# succeed ARGUMENTS: exit code 0.
succeed() {
  "$program" "$@" >out.txt 2>err.txt || fail "$*: exit $?: $(cat err.txt)"
}

same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
differ() { cmp -s "$1" "$2" && fail "$1 and $2 are the same"; }

wait_for() { # FILE, while process $2 lives
  for _ in $(seq 1200); do
    [ -e "$1" ] && return 0
    kill -0 "$2" 2>/dev/null || return 1
    sleep 0.05
  done
  return 1
}

finish() {
  [ $failures = 0 ] && echo "all passed"
  exit $((failures > 0))
}
