#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Called by meson: builds the viewer of folder $1 into folder $2 and writes into $3 what file $4 depends on. With "optional" as
# $5 a viewer that cannot be built, for want of a network, is a page that tells so.
set -euo pipefail
source=$1 out=$2 depfile=$3 target=$4 need=$5
here=$(dirname "$0")

build() {
	# A source distribution brings what was built of it. Whoever changes the viewer there installs its packages.
	if [ -e "$source/prebuilt/index.html" ] && [ ! -e "$source/node_modules" ]; then
		cp "$source"/prebuilt/* "$out"
		return
	fi
	# Several builds may want the packages at once.
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
