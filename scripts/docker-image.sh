#!/usr/bin/env bash
# Makes a container image from the PostgreSQL that is installed on this machine, for machines that have a Docker daemon
# and cannot pull images. The image behaves like the official one as far as the tests need it: it honours
# POSTGRES_PASSWORD, and its command is "postgres" and settings.
#
#   scripts/docker-image.sh [NAME]        NAME defaults to outboxgen-postgres:local
#   OUTBOXGEN_TEST_POSTGRES_IMAGE=outboxgen-postgres:local make test
set -euo pipefail

image=${1:-outboxgen-postgres:local}

fail() {
	echo "docker-image.sh: $*" >&2
	exit 1
}

# newest_pg_config prints the pg_config of the newest server on this machine.
newest_pg_config() {
	local candidates
	candidates=$(find /usr/lib/postgresql -path '*/bin/pg_config' 2>/dev/null | sort -t/ -k5 -n -r)
	if [ -z "$candidates" ]; then
		command -v pg_config || true
	else
		head -n 1 <<<"$candidates"
	fi
}

# libraries prints every shared library that the given files load, without duplicates.
libraries() {
	ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// && $1 !~ /:$/ { print $1 }' | sort -u
}

# take copies files and directories to the same paths in the image.
take() {
	tar -C / -c "${@#/}" | tar -C "$root" -x
}

# entrypoint prints the script that the container runs. The only other program in the image is sh.
entrypoint() {
	cat <<-'SCRIPT'
		#!/bin/sh
		set -e
		if [ ! -e "$PGDATA/PG_VERSION" ]; then
			: "${POSTGRES_PASSWORD:?set POSTGRES_PASSWORD}"
			umask 077
			printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
			initdb --username=postgres --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-sync
			echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
		fi
		exec "$@" -c listen_addresses='*'
	SCRIPT
}

command -v docker >/dev/null || fail "no docker on PATH"
docker info >/dev/null 2>&1 || fail "no Docker daemon answers: start it, or set DOCKER_HOST"
pg_config=$(newest_pg_config)
[ -n "$pg_config" ] || fail "no PostgreSQL server here: install it, for example: apt-get install postgresql"

bin=$("$pg_config" --bindir)
lib=$("$pg_config" --pkglibdir)
share=$("$pg_config" --sharedir)
root=$(mktemp -d)
trap 'rm -rf -- "$root"' EXIT

sh=$(readlink -f /bin/sh)
mapfile -t plugins < <(find "$lib" -maxdepth 1 -name '*.so' ! -name 'llvmjit*')
mapfile -t libs < <(libraries "$sh" "$bin/initdb" "$bin/postgres" "${plugins[@]}")
take --dereference "$sh" "$bin/initdb" "$bin/postgres" "${plugins[@]}" "${libs[@]}"
take "$share"
[ ! -d /usr/share/zoneinfo ] || take /usr/share/zoneinfo
mkdir -p "$root/bin" "$root/etc" "$root/var/lib/postgresql/data"
[ -e "$root/bin/sh" ] || ln -s "$sh" "$root/bin/sh"
install -d -m 1777 "$root/tmp" "$root/var/run/postgresql"
echo 'postgres:x:999:999::/var/lib/postgresql:/bin/sh' >"$root/etc/passwd"
echo 'postgres:x:999:' >"$root/etc/group"
entrypoint >"$root/entrypoint.sh"
chmod 0755 "$root" "$root/entrypoint.sh"
chmod 0700 "$root/var/lib/postgresql/data"

# tar sets the owner, so that this works without root.
tar -C "$root" --owner=999 --group=999 -c . | docker import \
	--change 'USER 999:999' \
	--change "ENV PATH=$bin:/bin PGDATA=/var/lib/postgresql/data" \
	--change 'EXPOSE 5432' \
	--change 'ENTRYPOINT ["/entrypoint.sh"]' \
	--change 'CMD ["postgres"]' \
	- "$image" >/dev/null
echo "$image: $("$bin/postgres" --version)"
