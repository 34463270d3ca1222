#!/usr/bin/env bash
# The Python package's own tests, with the extension where this build has it.
set -uo pipefail
cd "${CRAIS_SOURCE:?}" || exit 1
for python in .venv/bin/python python3; do
  if "$python" -W ignore -c 'import torch, pytest; exit(torch.__version__ < "2.6")' 2>/dev/null; then
    if "$python" -c 'import mypy' 2>/dev/null; then
      "$python" -m mypy --no-incremental || exit 1
    fi
    exec "$python" -W ignore -m pytest -q -p no:cacheprovider python/tests
  fi
done
echo "skipped: no Python has PyTorch 2.6 or later and pytest"
exit 77
