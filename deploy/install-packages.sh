#!/bin/sh
# Installs the packages of packages.txt that are missing; does nothing, and needs
# no root, when all are there.
set -eu
cd "$(dirname "$0")"
missing=
for package in $(sed 's/#.*//' packages.txt); do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "needs root to install:$missing" >&2; exit 1; }
  as_root=sudo
fi
echo "installing:$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086  # one word a package
$as_root env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends $missing >/dev/null
