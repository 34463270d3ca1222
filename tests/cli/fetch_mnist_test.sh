#!/usr/bin/env bash
# scripts/fetch-mnist against a mirror on this machine: success, resumption, and everything that can
# go wrong. Exit code 77: skipped.
set -uo pipefail
fetch=${CRAIS_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}/scripts/fetch-mnist
command -v python3 >/dev/null || { echo "skipped: needs python3 for its mirror"; exit 77; }

scratch=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server"; rm -rf "$scratch"' EXIT

failures=0
case_name=
check() {  # WHAT COMMAND...
  local what=$1
  shift
  "$@" && return
  echo "FAILED: $case_name: $what"
  sed 's/^/    | /' "$scratch/out"
  failures=$((failures + 1))
}
says() { grep -qF -- "$1" "$scratch/out"; }
run() { "$@" >"$scratch/out" 2>&1; code=$?; }
exits() { [[ $code == "$1" ]]; }
requests() { wc -l <"$scratch/requests"; }

# Four files of a mirror: the first is big enough to be cut.
names=(train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz
       t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz)
mkdir "$scratch/files"
for name in "${names[@]}"; do
  head -c 30000 /dev/urandom >"$scratch/files/$name"
done
CRAIS_MD5S=$(cd "$scratch/files" && md5sum "${names[@]}" | cut -c 1-32 | tr '\n' ' ')
export CRAIS_MD5S no_proxy=127.0.0.1 NO_PROXY=127.0.0.1

# The first part of the path says how the mirror behaves.
cat >"$scratch/mirror.py" <<'EOF'
import http.server, pathlib, re, sys

root = pathlib.Path(sys.argv[1])

class Mirror(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        _, behaviour, name = self.path.split("/")
        asked = self.headers.get("Range")
        with open(root / "requests", "a") as log:
            print(behaviour, name, asked, file=log)
        if behaviour == "absent":
            return self.send_error(404)
        content = (root / "files" / name).read_bytes()
        if behaviour == "wrong":
            content = content[::-1]
        start = int(re.match(r"bytes=(\d+)-", asked)[1]) if asked and behaviour != "norange" else 0
        if start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", len(content) - start)
        self.end_headers()
        self.wfile.write(content[start : 20000 if behaviour == "cut" else None])

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
(root / "port.tmp").write_text(str(server.server_address[1]))
(root / "port.tmp").rename(root / "port")
server.serve_forever()
EOF
python3 "$scratch/mirror.py" "$scratch" &
server=$!
for _ in {1..100}; do
  [[ -s $scratch/port ]] && break
  sleep 0.1
done
[[ -s $scratch/port ]] || { echo "skipped: no mirror can listen on 127.0.0.1"; exit 77; }
url=http://127.0.0.1:$(<"$scratch/port")

begin() {  # NAME: a fresh folder and an empty log
  case_name="$client: $1"
  rm -rf "$scratch/to"
  mkdir "$scratch/to"
  : >"$scratch/requests"
  to=$scratch/to
  big=$to/${names[0]}
}
complete() {
  local name
  for name in "${names[@]}"; do
    cmp -s "$scratch/files/$name" "$to/$name" || return
  done
  ! compgen -G "$to/*.part" >/dev/null
}

test_client() {
  begin "a whole download"
  CRAIS_MIRRORS=$url/good run "$fetch" "$to/new/folder"
  to=$to/new/folder
  check "exit code" exits 0
  check "files" complete
  check "says so" says "mnist is complete in $to"
  CRAIS_MIRRORS=$url/good run "$fetch" "$to"
  check "exit code of a second run" exits 0
  check "a second run finds them" says "${names[3]}: already here"
  check "a second run asks for nothing" test "$(requests)" = 4
  echo damaged >"$to/${names[1]}"
  CRAIS_MIRRORS=$url/good run "$fetch" "$to"
  check "a damaged file is replaced" complete
  check "and nothing else" test "$(requests)" = 5

  begin "--fashion"
  CRAIS_MIRRORS=$url/good run "$fetch" --fashion "$to"
  check "exit code" exits 0
  check "says so" says "fashion-mnist is complete"

  begin "the second mirror"
  CRAIS_MIRRORS="$url/absent $url/wrong $url/good/" run "$fetch" "$to"
  check "exit code" exits 0
  check "files" complete

  begin "wrong content everywhere"
  CRAIS_MIRRORS="$url/absent $url/wrong" run "$fetch" "$to"
  check "exit code" exits 65
  check "says what" says "$url/wrong/${names[0]}: wrong md5"
  check "lists every mirror" says "$url/absent/${names[0]}"
  check "leaves nothing" test -z "$(ls "$to")"

  begin "resumption"
  head -c 12345 "$scratch/files/${names[0]}" >"$big.part"
  CRAIS_MIRRORS=$url/good run "$fetch" "$to"
  check "exit code" exits 0
  check "files" complete
  check "asks for the rest alone" grep -q "${names[0]} bytes=12345-" "$scratch/requests"

  begin "a broken connection"
  CRAIS_MIRRORS=$url/cut run "$fetch" "$to"
  check "exit code" test "$code" != 0
  check "no file" test ! -e "$big"
  check "keeps what came" test -s "$big.part"
  CRAIS_MIRRORS=$url/good run "$fetch" "$to"
  check "the next run completes it" complete
  check "from there" grep -q "${names[0]} bytes=20000-" "$scratch/requests"

  begin "a server that cannot resume"
  head -c 12345 "$scratch/files/${names[0]}" >"$big.part"
  CRAIS_MIRRORS=$url/norange run "$fetch" "$to"
  check "exit code" exits 0
  check "files" complete

  begin "a part of something else"
  head -c 12345 /dev/urandom >"$big.part"
  head -c 40000 /dev/urandom >"$to/${names[1]}.part"
  CRAIS_MIRRORS=$url/good run "$fetch" "$to"
  check "exit code" exits 0
  check "files" complete

  begin "a part that is whole"
  cp "$scratch/files/${names[0]}" "$big.part"
  CRAIS_MIRRORS=$url/good run "$fetch" "$to"
  check "files" complete
  check "is not asked for" test "$(requests)" = 3

  begin "offline"
  head -c 12345 "$scratch/files/${names[0]}" >"$big.part"
  CRAIS_MIRRORS="http://127.0.0.1:1/one http://127.0.0.1:1/two" run "$fetch" "$to"
  check "exit code" exits 69
  check "lists the first" says "http://127.0.0.1:1/one/${names[0]}"
  check "lists the second" says "http://127.0.0.1:1/two/${names[0]}"
  check "asks whether" says "offline"
  check "says what is kept" says "kept"
  check "keeps it" cmp -s -n 12345 "$big.part" "$scratch/files/${names[0]}"

  begin "offline with nothing yet"
  CRAIS_MIRRORS=http://127.0.0.1:1/one run "$fetch" "$to"
  check "exit code" exits 69
  check "leaves nothing" test -z "$(ls "$to")"

  if [[ -c /dev/full ]]; then
    begin "a full disk"
    ln -s /dev/full "$big.part"
    CRAIS_MIRRORS=$url/good run "$fetch" "$to"
    check "exit code" exits 74
    check "no file" test ! -e "$big"
  fi
}

# Both clients, each as if it were the only one.
tools=(bash cat cut ls md5sum mkdir mv rm stat env)
for client in curl wget none; do
  mkdir "$scratch/$client"
  for tool in "${tools[@]}"; do
    ln -s "$(command -v "$tool")" "$scratch/$client/$tool"
  done
done
ran=0
for client in curl wget; do
  command -v "$client" >/dev/null || continue
  ran=$((ran + 1))
  ln -s "$(command -v "$client")" "$scratch/$client/$client"
  run() { PATH=$scratch/$client "$@" >"$scratch/out" 2>&1; code=$?; }
  test_client
done

client=none
begin "no client"
run "$fetch" "$to"
check "exit code" exits 69
check "says so" says "needs curl or wget"

begin "usage"
run "$fetch" --help
check "--help" exits 0
check "--help says how" says "usage: scripts/fetch-mnist"
run "$fetch" --fast
check "unknown flag" exits 64
check "names it" says "--fast"
run "$fetch" one two
check "two folders" exits 64
CRAIS_MD5S="a b" run "$fetch" "$to"
check "too few md5s" exits 64
client=curl
((ran == 0)) || {
  echo text >"$to/file"
  run "$fetch" "$to/file/folder"
  check "no folder can be made" exits 73
  check "names it" says "$to/file/folder"
}

((failures == 0)) || { echo "$failures checks failed"; exit 1; }
echo "all checks passed with $ran client(s)"
