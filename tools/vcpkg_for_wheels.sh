#!/bin/sh
# cibuildwheel's before-all on Linux and macOS: vcpkg in the folder $1, at the commit that vcpkg.json is pinned to.
# Windows' runners have one. Which libraries are built from it, and how, is up to vcpkg.json and the triplet.
set -eu
if command -v apk; then  # musllinux
  apk add --no-cache curl git linux-headers ninja-build pkgconf tar unzip zip
  ln -sf /usr/lib/ninja-build/bin/ninja /usr/local/bin/ninja
elif command -v apt-get; then  # manylinux on armv7l
  apt-get update
  apt-get install -y --no-install-recommends curl git ninja-build pkg-config tar unzip zip
elif command -v dnf; then  # manylinux
  dnf install -y curl git ninja-build pkgconf-pkg-config tar unzip zip
else
  brew install ninja
fi
[ -d "$1" ] || git clone --quiet https://github.com/microsoft/vcpkg "$1"
git -C "$1" checkout --quiet "$(sed -n 's/.*"builtin-baseline": "\(.*\)".*/\1/p' vcpkg.json)"
"$1/bootstrap-vcpkg.sh" -disableMetrics
