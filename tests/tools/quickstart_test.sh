#!/usr/bin/env bash
# scripts/quickstart says on its first run what it will do, and only then; its flags reach setup and
# eval-loglik. The project is made up: nothing is installed or built.
set -uo pipefail
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
mkdir -p "$project"/{scripts,build,fake}
cp "$CRAIS_SOURCE"/scripts/{common.sh,quickstart} "$project/scripts"
cd "$project" || exit 1
echo /libtorch >build/libtorch
cat >scripts/setup <<'END'
#!/bin/bash
echo "setup $*"
END
cat >fake/cmake <<'END'
#!/bin/bash
mkdir -p build/release/bin
touch build/release/build.ninja
cp fake/eval-loglik build/release/bin
END
cat >fake/eval-loglik <<'END'
#!/bin/bash
echo "eval-loglik $*"
END
chmod +x scripts/setup fake/*
export PATH="$project/fake:$PATH"

failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
scripts/quickstart --libtorch pip --limit 5 >out.txt 2>err.txt || fail "exit $?: $(cat err.txt)"
grep -qx 'setup --for run --libtorch pip' out.txt || fail "$(cat out.txt)"
grep -qx 'eval-loglik .*mnist.safetensors --limit 5 --out results/quickstart --overwrite' out.txt ||
  fail "$(cat out.txt)"
for word in 'the first run' packages LibTorch build evaluation; do
  grep -q "$word" err.txt || fail "a first run does not say '$word': $(cat err.txt)"
done
scripts/quickstart >out.txt 2>err.txt || fail "exit $?: $(cat err.txt)"
grep -qx 'setup --for run' out.txt || fail "$(cat out.txt)"
grep -q 'the first run' err.txt && fail "a second run says: $(cat err.txt)"
scripts/quickstart --libtorch >out.txt 2>err.txt
[ $? = 64 ] || fail "--libtorch without a value: $(cat err.txt)"
(cd / && "$project/scripts/quickstart" --help) | grep -q 'A second run only evaluates' || fail "--help"
exit $((failures > 0))
