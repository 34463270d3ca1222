#!/usr/bin/env bash
# The Python package's own tests.
set -uo pipefail
cd "${CRAIS_SOURCE:?}" || exit 1
for python in .venv/bin/python python3; do
  if "$python" -W ignore -c 'import torch, pytest; exit(torch.__version__ < "2.6")' 2>/dev/null; then
    exec "$python" -W ignore -m pytest -q -p no:cacheprovider python/tests
  fi
done
echo "skipped: no Python has PyTorch 2.6 or later and pytest"
exit 77
