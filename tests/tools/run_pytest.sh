#!/usr/bin/env bash
# run_pytest.sh FILE [MODULE]: runs pytest on a file of tests, by the first Python that has it and the
# module. Exits 77 (ctest: skipped) if none has.
set -uo pipefail
cd "${CRAIS_SOURCE:?}" || exit 1
for python in .venv/bin/python python3 /usr/bin/python3; do
  # Found, not imported: torch alone would take seconds.
  if "$python" -c 'import sys; from importlib.util import find_spec
sys.exit(sys.version_info < (3, 10) or not all(map(find_spec, sys.argv[1:])))' pytest ${2:+"$2"} 2>/dev/null; then
    exec "$python" -W ignore -m pytest -q -rs -p no:cacheprovider \
      -o tmp_path_retention_policy=failed "$1"
  fi
done
echo "SKIPPED: no Python from 3.10 has pytest${2:+ and $2}"
exit 77
