#!/bin/sh
# From nothing to a table: installs the packages, builds a release, starts a
# server on a free loopback port, asks it for the RoPE cache of Llama-3.1-8B
# (131072 positions, bf16), and stops it.
set -eu
cd "$(dirname "$0")/.."
sh deploy/install-packages.sh

cmake --preset release >/dev/null
cmake --build --preset release --target posenc posenc-server
build=build/release
config=deploy/examples/llama-3.1-8b.config.json
output=llama-3.1-8b-rope.safetensors

log=$(mktemp)
"$build/server/posenc-server" --listen 127.0.0.1:0 >"$log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null && wait "$server" || true; rm -f "$log"' EXIT
address=
for _ in $(seq 100); do
  address=$(sed -n 's/^listening on //p' "$log" | head -n 1)
  [ -n "$address" ] && break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
[ -n "$address" ] || { echo "the server did not start:" >&2; cat "$log" >&2; exit 1; }

echo "posenc-server listens on $address"
"$build/client/posenc" table --server "$address" --config "$config" --positions 0:131072 \
  --dtype bf16 --layout cos_sin --show-rows 3 -o "$output"
