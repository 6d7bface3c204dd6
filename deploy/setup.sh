#!/usr/bin/env bash
# Installs what claimd needs on Debian 12: `deploy/setup.sh run` for building and trying it,
# `deploy/setup.sh test` for that and everything the tests use. Does nothing if all of it is there.
# Needs root or sudo only if a package is missing.
set -euo pipefail
# shellcheck source=deploy/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

GRPCURL_VERSION=v1.9.1 # The newest that builds with Debian 12's Go 1.19.
BUF_VERSION=1.75.0

RUN_PACKAGES=(
  ca-certificates cmake g++ git grpc-proto libabsl-dev libgoogle-glog-dev libgrpc++-dev libgrpc-dev
  libprotobuf-dev librocksdb-dev libssl-dev ninja-build pkg-config protobuf-compiler
  protobuf-compiler-grpc
)
TEST_PACKAGES=(
  ccache clang clang-format clang-tidy libclang-rt-14-dev libgmock-dev libgtest-dev python3
  python3-grpcio python3-protobuf shellcheck strace
)

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# A mirror can fail once: three tries, each with apt's own retries.
apt_get() {
  local try
  for try in 1 2 3; do
    if as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 \
      -o DPkg::Lock::Timeout=300 "$@"; then
      return 0
    fi
    say "apt-get $1 failed (try $try of 3)"
    sleep $((try * 3))
  done
  return 1
}

install_packages() {
  local package missing=()
  for package in "$@"; do
    installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null ||
    die "this script installs Debian packages and finds no apt-get here" \
      "On another system install by hand what these are called there: ${missing[*]}"
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    die "packages are missing, and this is neither root nor is sudo installed" \
      "As root run: apt-get update && apt-get install ${missing[*]}"
  fi
  say "Installing packages: ${missing[*]}"
  [ "$(id -u)" -eq 0 ] || sudo true
  run_logged apt-update apt_get update ||
    die "apt-get update failed" "Check the network and /etc/apt, then run this again."
  run_logged apt-install apt_get install --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install all packages" \
      "On Debian 12 (bookworm) run by hand: apt-get install ${missing[*]}"
}

# grpcurl is no Debian package: it is built from its Go module, at a fixed version.
install_grpcurl() {
  local wanted="$CLAIMD_TOOLS_DIR/grpcurl-$GRPCURL_VERSION/grpcurl"
  if [ ! -x "$wanted" ]; then
    command -v go >/dev/null || install_packages golang-go
    say "Building grpcurl $GRPCURL_VERSION with $(go version | cut -d' ' -f3)"
    run_logged grpcurl env GOBIN="$(dirname "$wanted")" GOTOOLCHAIN=local GOFLAGS=-modcacherw \
      go install "github.com/fullstorydev/grpcurl/cmd/grpcurl@$GRPCURL_VERSION" ||
      die "grpcurl could not be built" "It comes from the Go module proxy: check the network."
  fi
  ln -sf "$wanted" "$CLAIMD_TOOLS_DIR/bin/grpcurl"
}

# buf is no Debian package either: it comes from npm, at a fixed version.
install_buf() {
  local prefix="$CLAIMD_TOOLS_DIR/buf-$BUF_VERSION"
  if [ ! -x "$prefix/node_modules/.bin/buf" ]; then
    command -v npm >/dev/null || install_packages npm
    say "Installing buf $BUF_VERSION"
    mkdir -p "$prefix"
    run_logged buf npm install --prefix "$prefix" --no-fund --no-audit --loglevel=error \
      "@bufbuild/buf@$BUF_VERSION" ||
      die "buf could not be installed" "It comes from the npm registry: check the network."
  fi
  ln -sf "$prefix/node_modules/.bin/buf" "$CLAIMD_TOOLS_DIR/bin/buf"
}

case "${1:-}" in
  run) install_packages "${RUN_PACKAGES[@]}" ;;
  test) install_packages "${RUN_PACKAGES[@]}" "${TEST_PACKAGES[@]}" ;;
  *) die "usage: deploy/setup.sh run|test" ;;
esac
install_grpcurl
[ "$1" = run ] || install_buf
