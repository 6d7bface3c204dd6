#!/usr/bin/env bash
# Installs what is missing, builds and runs every check: formatters, buf, the tests under gcc and
# under the sanitizers, run.sh. A failing step does not hide the later ones. The last
# line is "N passed, N failed" over all tests and checks; the exit code is 0 only if none failed.
#
# usage: deploy/test.sh [--fast|--tidy]
#   --fast: formatters, buf and the gcc build only
#   --tidy: clang-tidy, too, which takes the better part of an hour on two cores the first time
set -uo pipefail
# In braces, so that bash reads all of it now: the file may change while it runs.
{
# shellcheck source=deploy/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fast=no
tidy=no
case "${1:-}" in
  '') ;;
  --fast) fast=yes ;;
  --tidy) tidy=yes ;;
  *) die "unknown option: $1" "usage: deploy/test.sh [--fast|--tidy]" ;;
esac

passed=0
failed=0
skipped=0
problems=()

phase() { printf '\n== [%s] %s\n' "$(elapsed)" "$1"; }

finish() {
  local problem
  printf '\n== [%s] Result\n' "$(elapsed)"
  for problem in ${problems[@]+"${problems[@]}"}; do say "$problem"; done
  [ "$failed" -eq 0 ] || say "Logs: build/logs"
  if [ "$skipped" -gt 0 ]; then
    say "$passed passed, $failed failed, $skipped skipped"
  else
    say "$passed passed, $failed failed"
  fi
  [ "$failed" -eq 0 ]
  exit
}

# check NAME COMMAND…: one check, passed if the command ends with 0.
check() {
  local name=$1
  shift
  if run_logged "$name" "$@"; then
    passed=$((passed + 1))
    say "  ok [$(elapsed)] $name"
  else
    failed=$((failed + 1))
    problems+=("FAILED: $name")
    return 1
  fi
}

# run_tests PRESET [CTEST OPTION…]: every test of a build counts by itself.
run_tests() {
  local preset=$1 junit rc=0 counts
  shift
  junit=$CLAIMD_LOG_DIR/$preset.junit.xml
  rm -f "$junit"
  CLAIMD_LOG_TAIL=5 run_logged "ctest-$preset" ctest --preset "$preset" -j "$(nproc)" \
    --output-junit "$junit" "$@" || rc=$?
  if ! counts=$(/usr/bin/python3 deploy/junit_counts.py "$junit" "$rc" 2>&1 >"$junit.txt"); then
    say "  ctest left no usable result: $counts"
    failed=$((failed + 1))
    problems+=("FAILED: ctest-$preset ended with exit code $rc and no result")
    return
  fi
  cat "$junit.txt"
  read -r tests_passed tests_failed tests_skipped <<<"$counts"
  passed=$((passed + tests_passed))
  failed=$((failed + tests_failed))
  skipped=$((skipped + tests_skipped))
  while read -r line; do problems+=("$preset $line"); done < <(grep -E '^(FAILED|SKIPPED): ' "$junit.txt")
  say "  $preset [$(elapsed)]: $tests_passed passed, $tests_failed failed, $tests_skipped skipped"
}

# build PRESET [TARGET]
build() {
  check "configure-$1" cmake --preset "$1" &&
    check "build-$1" cmake --build --preset "$1" ${2:+--target "$2"} -- -k 0
}

sources() {
  find client server tests proto -name data -prune -o \
    '(' -name '*.cc' -o -name '*.h' -o -name '*.proto' ')' -print
}

check_format() {
  sources | xargs clang-format --dry-run -Werror
}

# Compares with the commit before the last one that touched the protos.
check_breaking() {
  local last
  last=$(git log -1 --format=%H -- proto) || return
  if ! git rev-parse -q --verify "$last^:proto/claimd/v1" >/dev/null; then
    say "nothing to compare with: the protos have no earlier commit"
    return 0
  fi
  rm -rf build/breaking && mkdir -p build/breaking &&
    git archive "$last^" proto buf.yaml | tar -x -C build/breaking &&
    buf breaking --against build/breaking
}

cd "$CLAIMD_ROOT" || exit 1
phase "Packages and tools"
if ! deploy/setup.sh test; then
  failed=1
  problems+=("FAILED: setup, so nothing else could run")
  finish
fi
use_ccache

phase "Formatters and linters"
check clang-format check_format
check shellcheck shellcheck -x -e SC2317 deploy/lib.sh deploy/run.sh deploy/setup.sh deploy/test.sh .ci/run
check buf-lint buf lint
check buf-breaking check_breaking

phase "gcc, all tests"
build dev
run_tests dev
[ "$fast" = no ] || finish

phase "run.sh, as a user runs it"
check run-sh /usr/bin/python3 deploy/run_sh_test.py

# Under sanitizers run the tests of rules, arbiter, services, stores and client library; those that
# start the server, and what is the same under every compiler, run under gcc only.
phase "clang, address and undefined-behaviour sanitizers"
build asan sanitized_tests
run_tests asan -L '^(unit|conformance|client)$'

phase "clang, thread sanitizer"
build tsan sanitized_tests
run_tests tsan -L '^(unit|conformance|client)$'

if [ "$tidy" = yes ]; then
  phase "clang-tidy"
  check clang-tidy /usr/bin/python3 deploy/clang_tidy.py build/asan
fi

finish
}
