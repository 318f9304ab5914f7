#!/bin/sh
# Measures posenc against the machine's memory and sockets, numpy and torch, in
# one interleaved run; prints a table of ratios. `sh tests/bench/run.sh 30` for 30
# rounds, `sh tests/bench/run.sh 15 wire calls` for parts of it (kernels, peers, wire,
# calls, handover). Quote the ratios, on a quiet machine; never a time.
set -eu
cd "$(dirname "$0")/../.."
sh deploy/install-packages.sh
cmake --preset release >/dev/null
cmake --build --preset release --target posenc_bench posenc-server >/dev/null
rounds=${1:-15}
[ $# -eq 0 ] || shift
exec build/release/tests/bench/posenc_bench "$rounds" build/release/bench.json "$@"
