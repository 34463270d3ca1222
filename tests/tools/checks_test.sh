#!/usr/bin/env bash
# scripts/check-scripts and check-tidy in a project that is made up: what they look at, what they find.
set -uo pipefail
command -v git >/dev/null || { echo "SKIPPED: there is no git"; exit 77; }
command -v shellcheck >/dev/null || { echo "SKIPPED: there is no shellcheck"; exit 77; }
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
mkdir "$project"/{scripts,src,fake}
cp "$CRAIS_SOURCE"/scripts/{common.sh,check-scripts,check-tidy} "$project/scripts"
cp "$CRAIS_SOURCE/.shellcheckrc" "$project"
cd "$project" || exit 1
printf '/build\n/fake\n' >.gitignore
git_() { git -c user.name=nobody -c user.email=nobody@localhost "$@"; }

failures=0
expect() { # STATUS WORDS COMMAND...
  local status=$1 words=$2 output actual
  shift 2
  output=$("$@" 2>&1 </dev/null)
  actual=$?
  if [ $actual -ne "$status" ] || ! grep -qF -- "$words" <<<"$output"; then
    printf 'FAILED: %s\n  expected %d and "%s", got %d and:\n%s\n' "$*" "$status" "$words" \
      $actual "$output" >&2
    failures=$((failures + 1))
  fi
}

# --- check-scripts: scripts of any name, sourced ones too, committed or not.
git_ init -q .
expect 0 "3 scripts, no faults" scripts/check-scripts
expect 64 "unknown argument '--fast'" scripts/check-scripts --fast
printf '%s\n' '#!/bin/sh' 'word="two words"' 'echo '\$word >unquoted
expect 1 "SC2086" scripts/check-scripts
printf '# shellcheck shell=bash\nif true; then\n' >unquoted
expect 2 "unquoted: line 3: syntax error" bash -n unquoted
expect 1 "unquoted: line 3: syntax error" scripts/check-scripts
rm unquoted

# --- check-tidy, with a clang-tidy that objects to the word FAULT.
cat >fake/clang-tidy <<'END'
#!/bin/bash
! grep -n FAULT "${@: -1}"
END
chmod +x fake/clang-tidy
export PATH="$project/fake:$PATH"
for file in kept moved edited faulty; do
  seq -f "int $file%g;" 20 >src/$file.cpp
done
sed -i '1i // FAULT' src/kept.cpp
echo '#pragma once' >src/edited.h
git_ add . && git_ commit -qm first
expect 64 "neither a branch of origin nor HEAD~1" scripts/check-tidy
expect 0 "nothing to look at" scripts/check-tidy --base HEAD
git mv src/moved.cpp src/elsewhere.cpp
echo '// changed' >>src/edited.h
echo 'int FAULT;' >>src/faulty.cpp
echo 'int fresh;' >src/fresh.cpp
expect 64 "no commit 'nowhere'" scripts/check-tidy --base nowhere
expect 66 "there is no build/tidy/compile_commands.json" scripts/check-tidy --base HEAD
mkdir -p build/tidy
for file in kept elsewhere edited faulty; do
  printf '  "file": "%s"\n' "$PWD/src/$file.cpp"
done >build/tidy/compile_commands.json
expect 1 "2 files looked at, 1 with findings" scripts/check-tidy --base HEAD
expect 1 "src/faulty.cpp: FAILED" scripts/check-tidy --base HEAD
expect 1 "left out: src/fresh.cpp" scripts/check-tidy --base HEAD
expect 0 "not looked at: " scripts/check-tidy --base HEAD --minutes 0
git_ add . && git_ commit -qm second
expect 1 "2 files looked at, 1 with findings" scripts/check-tidy # since HEAD~1
expect 1 "4 files looked at, 2 with findings" scripts/check-tidy --all
git update-ref refs/remotes/origin/main HEAD~1
sed -i '/FAULT/d' src/faulty.cpp
expect 0 "1 files looked at, 0 with findings" scripts/check-tidy

[ $failures -eq 0 ]
