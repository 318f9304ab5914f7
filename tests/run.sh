#!/bin/sh
# Installs what is missing, builds, and runs every test: release, then everything
# under ASan and UBSan, then what has threads in lib/ under TSan. `sh tests/run.sh release` (or asan,
# tsan) runs one of them.
set -eu
cd "$(dirname "$0")/.."
sh deploy/install-packages.sh

for preset in ${1:-asan tsan release}; do
  echo "== $preset"
  cmake --preset "$preset" -DPOSENC_PRECOMPILE=ON >/dev/null
  cmake --build --preset "$preset"
  ctest --preset "$preset" -j "$(nproc)"
done
