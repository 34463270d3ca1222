#!/usr/bin/env bash
# Every relative link of a Markdown page leads to a file that is there, and to a heading of it.
set -uo pipefail
command -v git >/dev/null || { echo "SKIPPED: there is no git"; exit 77; }
command -v python3 >/dev/null || { echo "SKIPPED: there is no python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/broken_links.py" <<'END'
"""Prints PAGE: LINK for links of the Markdown files named on stdin that lead nowhere; counts all."""
import re
import sys
from pathlib import Path


def text_of(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them: of a heading's words, the second of a name with -1."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ +(.*)$", text_of(page), flags=re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {name + (f"-{i}" if i else "") for name, last in found.items() for i in range(last + 1)}


links = 0
for page in map(Path, sys.stdin.read().split()):
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        links += 1
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if not target.exists():
            print(f"{page}: {link}: no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            print(f"{page}: {link}: no such heading")
print(f"{links} links")
END

# --- A page with one link of each kind: what leads nowhere is found, and nothing else.
cd "$work" || exit 1
cat >page.md <<'END'
# Two words
[a](#two-words) [b](page.md#two-words) [c](https://nowhere.invalid/)
END
cat >bad.md <<'END'
# Same
# Same
[d](#same-1) [e](#same-2) [f](page.md#three) [g](gone.md)
```
[h](no)
```
END
found=$(echo page.md bad.md | python3 broken_links.py)
wanted='bad.md: #same-2: no such heading
bad.md: page.md#three: no such heading
bad.md: gone.md: no such file
6 links'
[ "$found" = "$wanted" ] || { printf 'FAILED: found\n%s\n' "$found"; exit 1; }

# --- The project's own.
cd "$CRAIS_SOURCE" || exit 1
pages=$(git ls-files -- '*.md' 2>/dev/null)
[ -n "$pages" ] || { echo "SKIPPED: no checkout of git"; exit 77; }
found=$(python3 "$work/broken_links.py" <<<"$pages")
printf '%s\n' "$found"
[[ $found =~ ^[0-9]+\ links$ ]] && [ "${found% links}" -gt 100 ]
