#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make wheel`: dist/ with a manylinux wheel for this Python and a source distribution. The wheel contains the
# compiled bridge to the torch of .venv; for any other torch, the bridge is compiled on first use from its source in the wheel.
#
# The wheel is made from this tree, the source distribution from the last commit. The oldest system on
# which the wheel runs depends on the C library here; for older systems, build on an older one.
. "$(dirname "$0")/common.sh"

tools/build.sh
python_packages wheel tools/requirements-wheel.txt
work=build/wheel
rm -rf dist "$work/plain"
mkdir -p dist "$work/bridge"

# Libraries built from Debian's sources, as archives and with the required parts only: the installed ones depend on a dozen
# others, or cannot be linked into a library.
microhttpd=$PWD/$work/microhttpd
zstd=$PWD/$work/zstd

# fetch_source FOLDER PACKAGE: downloads the source of a package to FOLDER/source.
fetch_source() {
	rm -rf "$1"
	mkdir -p "$1/lists/partial" "$1/sources" "$1/source"
	cd "$1"
	# Sources come from the same servers as the system's packages.
	for list in /etc/apt/sources.list /etc/apt/sources.list.d/{debian,ubuntu}.sources; do
		[ ! -e "$list" ] || sed 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$list" >"sources/${list##*/}"
	done
	[ ! -e sources/sources.list ] || mv sources/sources.list sources/system.list
	options=(-q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$PWD/sources"
		-o Dir::State::lists="$PWD/lists")
	apt-get "${options[@]}" update
	# Of a version that has just been published, a mirror may have the lists but not the files yet.
	for version in $(apt-cache "${options[@]}" showsrc "$2" | sed -n 's/^Version: //p' | sort -rVu); do
		! apt-get "${options[@]}" source --download-only "$2=$version" || break
	done
	tar -xf ./*.orig.tar.?z -C source --strip-components 1
	cd source
}
if [ ! -e "$microhttpd/lib/libmicrohttpd.a" ]; then
	say "compiling libmicrohttpd"
	(
		fetch_source "$microhttpd" libmicrohttpd
		./configure -q --prefix="$microhttpd" --disable-https --disable-shared --enable-static --with-pic --disable-doc \
			--disable-examples --disable-tools --disable-curl --disable-postprocessor --disable-bauth --disable-dauth
		make -s -C src/microhttpd -j"$JOBS" install
		make -s -C src/include install
		make -s install-pkgconfigDATA
	) >"$work/microhttpd.log" 2>&1 || die "libmicrohttpd could not be compiled: $(tail -n 20 "$work/microhttpd.log")"
fi
if [ ! -e "$zstd/lib/libzstd.a" ]; then
	say "compiling libzstd"
	(
		fetch_source "$zstd" libzstd
		# The system's headers are of the same version, and without another folder in the options ccache finds what the
		# package of .venv was built from.
		make -s -C lib -j"$JOBS" CFLAGS='-O3 -fPIC' ZSTD_LIB_COMPRESSION=0 ZSTD_LIB_DICTBUILDER=0 \
			ZSTD_LIB_DEPRECATED=0 PREFIX="$zstd" INCLUDEDIR=/usr/include install-static install-pc
	) >"$work/zstd.log" 2>&1 || die "libzstd could not be compiled: $(tail -n 20 "$work/zstd.log")"
fi
export PKG_CONFIG_PATH=$microhttpd/lib/pkgconfig:$zstd/lib/pkgconfig

say "compiling the bridge to torch $(.venv/bin/python -c 'import torch; print(torch.__version__)')"
bridge=$(.venv/bin/python -c 'import sys; from opstrobe.recording import bridge; print(bridge.build_into(sys.argv[1]))' "$work/bridge")

say "building the wheel"
.venv/bin/python -m build --wheel --no-isolation --outdir "$work/plain" -Cbuild-dir=build/wheel-package \
	-Csetup-args="-Dbridge=$PWD/$bridge" -Ccompile-args="-j$JOBS" . >"$work/wheel.log" 2>&1 ||
	die "the wheel could not be built: $(tail -n 20 "$work/wheel.log")"
# The torch libraries are loaded before the bridge.
.venv/bin/auditwheel repair --exclude libc10.so --exclude libtorch_cpu.so --wheel-dir dist "$work"/plain/*.whl \
	>"$work/auditwheel.log" 2>&1 || die "the wheel is not portable: $(tail -n 20 "$work/auditwheel.log")"
.venv/bin/python tools/wheel_notices.py dist/*.whl \
	"libmicrohttpd=$microhttpd/source=LGPL-2.1-or-later OR GPL-2.0-or-later WITH eCos-exception-2.0" \
	"libzstd=$zstd/source=BSD-3-Clause OR GPL-2.0-only"

if git rev-parse --verify -q HEAD >/dev/null 2>&1; then
	say "packing the source distribution"
	[ -z "$(git status --porcelain)" ] || say "this tree has changes that are not committed: they are in the wheel alone"
	.venv/bin/python -m build --sdist --no-isolation --outdir dist . >"$work/sdist.log" 2>&1 ||
		die "the source distribution could not be packed: $(tail -n 20 "$work/sdist.log")"
else
	say "no source distribution: it is made from a git commit, and this is not a checkout"
fi
ls dist/*
