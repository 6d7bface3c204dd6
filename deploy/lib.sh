# Shared by the scripts of this folder; to be sourced, not run.
# shellcheck shell=bash

CLAIMD_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CLAIMD_LOG_DIR=$CLAIMD_ROOT/build/logs
CLAIMD_TOOLS_DIR=$CLAIMD_ROOT/build/tools
mkdir -p "$CLAIMD_LOG_DIR" "$CLAIMD_TOOLS_DIR/bin"
export PATH=$CLAIMD_TOOLS_DIR/bin:$PATH

# Objects compiled before are taken from ccache where it is installed, also from another clone.
use_ccache() {
  command -v ccache >/dev/null || return 0
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$CLAIMD_ROOT CCACHE_NOHASHDIR=1
  export CCACHE_SLOPPINESS=time_macros,include_file_mtime,include_file_ctime
}

say() { printf '%s\n' "$*"; }

# die SENTENCE [WHAT TO DO]
die() {
  printf 'error: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf '  %s\n' "$2" >&2
  exit 1
}

elapsed() { printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

# A line that says that something is still running: on a terminal it is rewritten every second, in a
# log it is added once a minute.
heartbeat() {
  local pid=$1 log=$2 started=$SECONDS last
  while kill -0 "$pid" 2>/dev/null; do
    sleep 1
    if [ -t 1 ]; then
      last=$(tail -c 400 "$log" 2>/dev/null | tr '\r' '\n' | tail -n 1 | cut -c 1-70)
      printf '\r\033[K  %4d s  %s' $((SECONDS - started)) "$last"
    elif [ $(((SECONDS - started) % 60)) -eq 59 ]; then
      last=$(tail -c 400 "$log" 2>/dev/null | tail -n 1 | cut -c 1-90)
      printf '  … %d s: %s\n' $((SECONDS - started)) "$last"
    fi
  done
  [ ! -t 1 ] || printf '\r\033[K'
}

# run_logged NAME COMMAND…: runs a command with its output in a log file and a sign of life on the
# screen. A failure shows the end of the log. Answers the command's exit code.
run_logged() {
  local name=$1 log pid rc=0
  shift
  log=$CLAIMD_LOG_DIR/$name.log
  # In a process group of its own, so that an interrupt can end all of it: bash lets commands in the
  # background ignore SIGINT.
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  set +m
  trap 'kill -TERM -- "-$pid" 2>/dev/null; exit 130' INT TERM
  heartbeat "$pid" "$log"
  wait "$pid" || rc=$?
  trap - INT TERM
  if [ "$rc" -ne 0 ]; then
    say "  failed with exit code $rc: $*"
    say "  the end of ${log#"$CLAIMD_ROOT"/}:"
    tail -n "${CLAIMD_LOG_TAIL:-40}" "$log" | cut -c 1-400 | sed 's/^/  | /'
  fi
  return "$rc"
}
