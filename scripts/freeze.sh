#!/usr/bin/env bash
# Keeps the code that today's outboxgen generates, so that later runtimes are tested with it: it copies the catalogues
# of examples/conformance and the code generated from them to internal/skew/NAME, with tests. The tests may be changed
# later; the generated code may not.
#
#   scripts/freeze.sh generated2
set -euo pipefail
cd "$(dirname "$0")/.."

name=${1:-}
if ! [[ $name =~ ^[a-z][a-z0-9]*$ ]]; then
	echo "freeze.sh: give the name of a package, such as generated2, not \"$name\"" >&2
	exit 2
fi
to=internal/skew/$name
if [ -e "$to/SHA256SUMS" ]; then
	echo "freeze.sh: $to exists, and is frozen" >&2
	exit 1
fi

mkdir -p "$to"
cp -R examples/conformance/plain examples/conformance/prefixed "$to"
find "$to" -name '*.go' -exec sed -i "s#outboxgen/examples/conformance/#outboxgen/internal/skew/$name/#" {} +
if [ ! -e "$to/conformance_test.go" ]; then
	from=$(find internal/skew -mindepth 2 -maxdepth 2 -name conformance_test.go | sort | tail -n 1)
	sed "s#internal/skew/$(basename "$(dirname "$from")")/#internal/skew/$name/#; s#^package .*#package ${name}_test#" \
		"$from" >"$to/conformance_test.go"
fi
(cd "$to" && find . -type f ! -name '*_test.go' ! -name SHA256SUMS -print0 |
	LC_ALL=C sort -z | xargs -0 sha256sum >SHA256SUMS)
echo "freeze.sh: wrote $to"
