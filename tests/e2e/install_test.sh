#!/bin/sh
# Installs posenc into an empty folder, moves it, and builds programs against it
# with CMake and with pkg-config: public headers and targets need no source tree.
#   install_test.sh BUILD_FOLDER SOURCE_FOLDER CXX FLAGS
set -eu
build=$1 here=$2/tests/e2e cxx=$3 flags=$4
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/posenc"

cmake -S "$here/consumer" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_PREFIX_PATH="$work/posenc" -DCMAKE_CXX_FLAGS="$flags" -DEXAMPLE="$here/readme_example.cc" \
  >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }

PKG_CONFIG_PATH=$(dirname "$(find "$work/posenc" -name posenc-client.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046,SC2086
"$cxx" $flags "$here/readme_example.cc" -o "$work/by_pkg_config" \
  $(pkg-config --cflags --libs posenc-client)

slope=$("$work/build/embedded")
[ "$slope" = 0.5 ] || { echo "embedded: the first of 8 slopes is 0.5, got $slope"; exit 1; }
if ldd "$work/build/embedded" | grep -q libgrpc; then
  echo "posenc::embedded must not link gRPC"; exit 1
fi

"$work/posenc/bin/posenc-server" --listen "unix:$work/socket" >"$work/listening" &
server=$!
for _ in $(seq 300); do
  "$work/posenc/bin/posenc" health --server "unix:$work/socket" 2>/dev/null && break
  sleep 0.1
done
"$work/build/over_grpc" "unix:$work/socket" | tee "$work/by_cmake.txt"
"$work/by_pkg_config" "unix:$work/socket" | cmp - "$work/by_cmake.txt"
grep -q 'position 1, first pair: cos 0.540302277 sin 0.841470957' "$work/by_cmake.txt"
