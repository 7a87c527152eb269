#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Called by `meson dist`: builds the viewer of the source distribution in its web/prebuilt, with the npm packages of the
# original tree if they are installed.
set -euo pipefail
web=$MESON_DIST_ROOT/web packages=$MESON_SOURCE_ROOT/web/node_modules

[ ! -e "$packages/esbuild" ] || ln -s "$packages" "$web/node_modules"
"$(dirname "$0")/build_viewer.sh" "$web" "$web/prebuilt" /dev/null index.html required
rm -rf "$web/node_modules"
