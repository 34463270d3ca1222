#!/usr/bin/env bash
# A short form of scripts/chaos: some programs ended at random moments, and all that can go wrong
# with a disk or a folder.
set -uo pipefail
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || {
  echo "skipped: no Python 3.10"
  exit 77
}
exec python3 "${CRAIS_SOURCE:?}/tests/chaos/chaos.py" "${CRAIS_BIN:?}" train-vae ais estimate-logz
