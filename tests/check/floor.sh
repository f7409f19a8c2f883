#!/usr/bin/env bash
# The 40 ms floor, made and taken away: `ztape serve --nodelay off --writes split` holds back-to-back calls for the
# delayed-ACK timer, `--nodelay on` does not. Prints p50 and p95 of both; 0: as it should be, 1: not.
#
#   tests/check/floor.sh build/release/ztape
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
exec /usr/bin/python3 "$here/floor.py" "${1:?the program: tests/check/floor.sh build/release/ztape}"
