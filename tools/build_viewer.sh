#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Called by meson: builds the viewer of folder $1 in folder $2 and writes the dependencies of file $4 to $3. If $5 is "optional"
# and the viewer cannot be built because there is no network, it is a page that says so.
set -euo pipefail
source=$1 out=$2 depfile=$3 target=$4 need=$5
here=$(dirname "$0")

build() {
	# A source distribution contains the built viewer. To change the viewer there, install its packages.
	if [ -e "$source/prebuilt/index.html" ] && [ ! -e "$source/node_modules" ]; then
		cp "$source"/prebuilt/* "$out"
		return
	fi
	# Several builds may install the packages at the same time.
	exec 9<"$source/package-lock.json"
	flock 9
	[ -e "$source/node_modules/esbuild" ] || (cd "$source" && npm ci --no-audit --no-fund --loglevel=error)
	node "$source/build.mjs" "$out"
}

printf '%s:' "$target" >"$depfile"
find "$source/src" "$source/build.mjs" "$source/package-lock.json" -type f -printf ' \\\n %p' >>"$depfile"
echo >>"$depfile"
if ! (build) >&2; then
	[ "$need" = optional ] || exit 1
	echo "the viewer could not be built: the server goes without it" >&2
	cp "$here/../src/serve/no_viewer.html" "$out/index.html"
	: >"$out/app.js"
	: >"$out/app.css"
	: >"$out/report.html"
fi
