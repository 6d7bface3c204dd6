#!/usr/bin/env bash
# Installs what is missing, builds claimd, starts it on a data directory, shows one granted and one
# refused claim, and keeps serving until Ctrl-C. A second run reuses build and data.
set -euo pipefail
# In braces, so that bash reads all of it now: the file may change while it runs.
{
# shellcheck source=deploy/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

started_in=$PWD

usage() {
  cat <<USAGE
usage: deploy/run.sh [--listen=ADDRESS] [--data=DIR] [--demo-only]

  --listen=ADDRESS  where to serve: HOST:PORT, or unix:/PATH (default 127.0.0.1:7420)
  --data=DIR        where to keep the data (default \$CLAIMD_DATA_DIR, else build/run/data)
  --demo-only       stop after the two claims instead of serving until Ctrl-C
USAGE
}

listen=127.0.0.1:7420
data=${CLAIMD_DATA_DIR:-$CLAIMD_ROOT/build/run/data}
demo_only=no
while [ $# -gt 0 ]; do
  case "$1" in
    --listen=*) listen=${1#*=} ;;
    --data=*) data=${1#*=} ;;
    --listen | --data) die "$1 wants a value" "Write $1=VALUE." ;;
    --demo-only) demo_only=yes ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && die "unknown option: $1" ;;
  esac
  shift
done
if [ -z "$listen" ] || [ -z "$data" ]; then die "--listen and --data must not be empty"; fi

say "[1/4] Packages and tools"
"$CLAIMD_ROOT/deploy/setup.sh" run

say "[2/4] Build (the first one takes some minutes; log in build/logs)"
cd "$CLAIMD_ROOT"
use_ccache
run_logged configure-release cmake --preset release ||
  die "CMake could not configure the build" "Read build/logs/configure-release.log."
run_logged build-release cmake --build --preset release ||
  die "the build failed" "Read build/logs/build-release.log; then run this again."
claimd=$CLAIMD_ROOT/build/release/bin/claimd

say "[3/4] Start"
mkdir -p "$data"
data=$(cd "$data" && pwd)
scratch=$(mktemp -d)
server=
stopping=no
signalled=no

# Each signal is passed on: the first one drains claimd, a second one ends it at once.
pass_on() {
  stopping=yes
  signalled=yes
  [ -z "$server" ] || kill -TERM "$server" 2>/dev/null || true
}
trap pass_on INT TERM

# Waits for claimd to end, however many signals come meanwhile, and answers its exit code.
wait_for_end() {
  local rc=0
  while :; do
    signalled=no
    rc=0
    wait "$server" || rc=$?
    [ "$signalled" = yes ] || break
  done
  server=
  return "$rc"
}

# Runs once at the end, whatever ends the script.
clean_up() {
  if [ -n "$server" ]; then
    [ "$stopping" = yes ] || pass_on
    wait_for_end || true
  fi
  rm -rf "$scratch"
}
trap clean_up EXIT

# In a process group of its own, so that Ctrl-C reaches claimd once, through pass_on.
set -m
"$claimd" --listen="$listen" --store="rocksdb:$data" --ready-file="$scratch/ready" &
server=$!
set +m

while [ ! -s "$scratch/ready" ]; do
  if ! kill -0 "$server" 2>/dev/null; then
    rc=0
    wait_for_end || rc=$?
    [ "$stopping" = no ] || exit "$rc"
    die "claimd did not start (exit code $rc); its own words are above" \
      "If the address is taken: deploy/run.sh --listen=127.0.0.1:PORT. If the data directory is in use: stop the claimd that uses it, or give another one with --data=DIR."
  fi
  sleep 0.1 || true
done
address=$(head -n 1 "$scratch/ready")
case "$address" in
  unix:*) target=(-plaintext -unix "${address#unix:}") ;;
  *) target=(-plaintext "$address") ;;
esac

say "[4/4] Two claims at $address, data in $data"

grpcurl_shown=$CLAIMD_TOOLS_DIR/bin/grpcurl
[ "$started_in" != "$CLAIMD_ROOT" ] || grpcurl_shown=${grpcurl_shown#"$CLAIMD_ROOT"/}

# show WANTED_EXIT_CODE WANTED_TEXT REQUEST: prints a grpcurl command as one can type it, runs it,
# and checks that it went as announced.
show() {
  local wanted_rc=$1 wanted_text=$2 request=$3 rc=0 output
  [ "$stopping" = no ] || return 0
  printf "\n$ %s -d '%s' \\\\\n    %s claimd.v1.ShardArbiter/ClaimEpoch\n" \
    "$grpcurl_shown" "$request" "${target[*]}"
  output=$(grpcurl -max-time 20 -d "$request" "${target[@]}" claimd.v1.ShardArbiter/ClaimEpoch \
    2>&1) || rc=$?
  printf '%s\n' "$output"
  [ "$stopping" = no ] || return 0
  if [ "$rc" -ne "$wanted_rc" ] || [[ $output != *"$wanted_text"* ]]; then
    die "this should have ended with exit code $wanted_rc and said '$wanted_text'; it ended with $rc" \
      "claimd's own words are above. If the data are from other experiments, take fresh ones: --data=DIR."
  fi
}

shard='"table": "demo", "shard_id": "6f1c1c3e-58a5-4a0e-9f6c-2f0a6c1d7e42"'
printf '\nA writer claims a shard and gets an epoch. Each run of this gets a larger one:\n'
show 0 '"writer_epoch"' "{$shard, \"shard_spec_id\": 1, \"claimant\": \"writer-a\"}"
printf '\nA writer that works under another sharding spec is refused, and nothing moves:\n'
# grpcurl ends with 64 + the code of the status; INVALID_ARGUMENT is 3.
show 67 SHARD_SPEC_MISMATCH "{$shard, \"shard_spec_id\": 2, \"claimant\": \"writer-b\"}"

if [ "$demo_only" = yes ]; then
  pass_on
else
  printf '\nServing at %s until Ctrl-C. README.md says what else to ask it.\n' "$address"
fi
rc=0
wait_for_end || rc=$?
[ "$rc" -eq 0 ] || die "claimd ended with exit code $rc; its own words are above"
say "claimd has stopped; the data stay in $data"
exit 0
}
