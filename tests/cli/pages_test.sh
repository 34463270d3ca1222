#!/usr/bin/env bash
# report.html of every program, opened in a real browser at three widths: nothing is asked of the
# network, every picture is drawn and described, and nothing but tables and drawings scrolls sideways.
set -uo pipefail
program="${CRAIS_BIN:?}/eval-loglik"
. "$(dirname "$0")/support.sh"
unset CRAIS_DATA
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  { echo "skipped: there is no chromium" && exit 77; }
command -v gnuplot >/dev/null || { echo "skipped: there is no gnuplot" && exit 77; }

small_vae vae --epochs 3
small=(--simulate 30 --steps 8 --chains 4 --chunk 8 --quiet)
succeed vae/vae.safetensors "${small[@]}" --method ais --method bidirectional --out eval
succeed vae/vae.safetensors "${small[@]}" --per-image --out each
succeed compare eval each --out compare
"$CRAIS_BIN/estimate-logz" u5 --base prior --problems 20 --steps 8 --expect moments --quiet --out logz >out.txt 2>err.txt ||
  fail "estimate-logz: $(cat err.txt)"

# --- A frame of each width holds the page; a script outside of it measures.
cat >measure.html <<'HTML'
<!doctype html><meta charset="utf-8"><body><script>
const page = decodeURIComponent(location.search.slice(1));
const widths = [1280, 800, 360];
const found = [];
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px";
  frame.onload = () => {
    const d = frame.contentDocument, pictures = [...d.images];
    found.push([width, "pictures", pictures.length,
      "undrawn", pictures.filter(i => !i.complete || i.naturalWidth === 0).length,
      "unnamed", pictures.filter(i => !i.alt).length,
      "unheaded", [...d.querySelectorAll("table")].filter(t => !t.caption || !t.querySelector("th[scope=col]")).length,
      "wide", d.documentElement.scrollWidth > width ? 1 : 0,
      "scripts", d.scripts.length].join(" "));
    if (found.length === widths.length) document.body.innerText = found.join("\n");
  };
  frame.src = page;
  document.body.append(frame);
}
</script></body>
HTML
look() { # PAGE: what the browser says of it, in measured.txt; its complaints in console.txt
  timeout 60 "$browser" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
    --user-data-dir="$work/profile" --allow-file-access-from-files --disable-background-networking \
    --enable-logging=stderr --virtual-time-budget=5000 --dump-dom \
    "file://$work/measure.html?$1" >dom.txt 2>log.txt
  grep CONSOLE log.txt >console.txt
  sed 's/<[^>]*>/\n/g' dom.txt | grep '^[0-9]* pictures ' >measured.txt
}
check() { # PAGE LEAST: at least so many pictures, and nothing wrong at any width
  look "$1"
  [ "$(wc -l <measured.txt)" = 3 ] || { fail "$1 was not measured: $(head -c 300 dom.txt)" && return; }
  [ -s console.txt ] && fail "$1: the browser complains: $(cat console.txt)"
  while read -r width _ pictures rest; do
    [ "$pictures" -ge "$2" ] || fail "$1 at $width: $pictures pictures"
    [ "$rest" = "undrawn 0 unnamed 0 unheaded 0 wide 0 scripts 0" ] || fail "$1 at $width: $rest"
  done <measured.txt
}

# --- The measurement itself sees what is wrong.
cat >bad.html <<HTML
<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:">
<img src="http://127.0.0.1:9/x.png"><table><tr><td>1</td></tr></table><pre>$(printf 'wide%.0s' $(seq 900))</pre>
<script>1</script>
HTML
look bad.html
grep -q 'undrawn 1 unnamed 1 unheaded 1 wide 1 scripts 1' measured.txt || {
  # Some browsers may not let one file look at another: then nothing can be measured here.
  [ -s measured.txt ] || { echo "skipped: this browser measures no files" && exit 77; }
  fail "the measurement sees nothing wrong in a bad page: $(cat measured.txt)"
}
[ -s console.txt ] || fail "a forbidden request leaves no complaint"

check eval/report.html 10
check each/report.html 10
check compare/report.html 5
check logz/report.html 7
check vae/report.html 5
finish
