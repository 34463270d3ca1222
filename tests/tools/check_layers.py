"""check_layers.py ROOT: fails where the sources include something they must not.

The folders are layers: an include may point to the same layer or an earlier one, and files may not include each other
in a circle. A public header ("/// @file" is its first line) includes public headers only; crais.h, which stands above
all layers, is for others to include.
"""

import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

# As in docs/ARCHITECTURE.md. `models` stands beside src/, the others in it.
LAYERS = (
    "util simd core io data models kernels targets divergences paths schedules transitions samplers bases estimates "
    "evaluation evidence report cli programs"
).split()
UMBRELLA = "crais.h"


def read(root: Path) -> dict[str, list[str]]:
    """Lines of each file, by its name in an include: "util/error.h"."""
    bases = {root / "src": root / "src", root / "models": root}
    files = {
        path: base for folder, base in bases.items() for path in folder.rglob("*") if path.suffix in (".h", ".cpp")
    }
    return {str(path.relative_to(base)): path.read_text().splitlines() for path, base in files.items()}


def faults(sources: dict[str, list[str]]) -> Iterator[str]:
    layer = {file: LAYERS.index(first) for file in sources if (first := file.split("/")[0]) in LAYERS}
    public = {file for file, lines in sources.items() if lines[:1] == ["/// @file"]}
    graph: dict[str, list[str]] = {}
    for file, lines in sorted(sources.items()):
        if file not in layer and file != UMBRELLA:
            yield f"{file}: lies in no known layer"
            continue
        found = [
            (i, match[1]) for i, line in enumerate(lines, 1) if (match := re.match(r'\s*#\s*include\s*"(.+?)"', line))
        ]
        graph[file] = [included for _, included in found]
        for line, included in found:
            where = f'{file}:{line}: includes "{included}",'
            if included not in sources:
                yield f'{where} which is not here; name it by its layer, as in "util/error.h"'
            elif layer.get(included, len(LAYERS)) > layer.get(file, len(LAYERS)):
                yield f"{where} of a later layer"
            elif file in public and included not in public:
                yield f'{where} which is not public (its first line is not "/// @file")'
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"include circle: {' -> '.join(reversed(error.args[1]))}"


def main(root: str) -> None:
    sources = read(Path(root))
    found = list(faults(sources))
    print("\n".join([*found, f"check_layers: {len(sources)} files, {len(found)} faults"]))
    sys.exit(bool(found) or not sources)


if __name__ == "__main__":
    main(*sys.argv[1:])
