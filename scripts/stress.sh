#!/usr/bin/env bash
# Runs the tests of every module several times while each processor is busy with something else: a test that depends
# on the speed of the machine fails here sooner or later. It stops at the first round that fails, and prints which tests
# failed.
#
#   scripts/stress.sh                          five rounds
#   scripts/stress.sh 20                       twenty
#   scripts/stress.sh 3 MODULES=./examples     further arguments are passed to make
set -euo pipefail
set -m # each job has a process group of its own, which can be killed as a whole

rounds=${1:-5}
shift || true
if ! [[ $rounds =~ ^[1-9][0-9]*$ ]]; then
	echo "stress.sh: the number of rounds is \"$rounds\", want 1 or more" >&2
	exit 2
fi
cd "$(dirname "$0")/.."
log=$(mktemp)
jobs=()

# finish ends the jobs that this script has started, and nothing else.
finish() {
	local job
	for job in ${jobs[@]+"${jobs[@]}"}; do
		kill -TERM -- "-$job" 2>/dev/null || true
	done
	jobs=()
	wait 2>/dev/null
}
trap 'finish; rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# busy keeps one processor busy while this script runs, for three hours at most.
busy() {
	local end=$((SECONDS + 3 * 3600))
	while ((SECONDS < end)) && kill -0 $$ 2>/dev/null; do :; done
}

tests() {
	CI=true make --no-print-directory test-modules TESTFLAGS=-count=1 TIMEOUT=1h "$@" 2>&1 | tee "$log"
}

for ((round = 1; round <= rounds; round++)); do
	echo "stress.sh: round $round of $rounds"
	for ((n = $(getconf _NPROCESSORS_ONLN); n > 0; n--)); do
		busy &
		jobs+=($!)
	done
	tests "$@" &
	jobs+=($!)
	if ! wait $!; then
		finish
		echo "stress.sh: round $round of $rounds failed:" >&2
		grep -E '^ *--- FAIL: |^FAIL|^panic: |^WARNING: DATA RACE' "$log" >&2 || tail -n 20 "$log" >&2
		exit 1
	fi
	finish
done
echo "stress.sh: passed, $rounds of $rounds"
