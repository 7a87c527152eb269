# SPDX-License-Identifier: Apache-2.0
# Shared code of the scripts in this folder. Can be sourced from anywhere; changes to the project's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON=$(command -v "${PYTHON:-python3}" || echo "${PYTHON:-python3}") # the Python that .venv is made with
JOBS=${JOBS:-$(nproc)}
export JOBS PYTHON PATH=$PWD/.venv/bin:$PATH
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

if [ -t 2 ]; then
	bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
else
	bold='' red='' green='' plain=''
fi

say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*" >&2; }
die() {
	printf '%serror:%s %s\n' "$red" "$plain" "$*" >&2
	exit 1
}

# Whether the inputs have changed since stamp $1 was set. Inputs are the words $2… and, for names of files or folders, their
# contents.
changed() {
	[ "$(digest "${@:2}")" != "$(cat ".venv/stamps/$1" 2>/dev/null)" ]
}
stamp() {
	mkdir -p .venv/stamps
	digest "${@:2}" >".venv/stamps/$1"
}
digest() {
	{
		printf '%s\n' "$@"
		for input in "$@"; do
			if [ -e "$input" ]; then
				find "$input" -name __pycache__ -prune -o -name '*.so' -o -type f -print0 | sort -z | xargs -0r sha256sum
			fi
		done
	} | sha256sum
}

# system_packages NAME…: installs missing Debian packages, or prints what to install and stops. Checks for the program or
# library itself, so that other distributions and own builds are accepted.
system_packages() {
	local missing=() name
	for name in "$@"; do
		has_package "$name" || missing+=("$name")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	local as_root=()
	if [ "$(id -u)" != 0 ]; then
		as_root=(sudo -n)
	fi
	if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
		die "packages are missing; install them and try again:
    sudo apt-get install -y ${missing[*]}"
	fi
	say "installing ${missing[*]}"
	local log
	log=$(mktemp)
	if ! { "${as_root[@]}" apt-get update -q &&
		"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
			-o DPkg::Lock::Timeout=300 "${missing[@]}"; } >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		die "apt-get could not install ${missing[*]}"
	fi
	rm -f "$log"
}

has_package() {
	case $1 in
	gcc | g++ | clang) command -v "$1" >/dev/null ;;
	nodejs) command -v node >/dev/null ;;
	npm) command -v npm >/dev/null ;;
	chromium) command -v chromium >/dev/null || [ -n "${CHROMIUM:-}" ] ;;
	pkg-config) command -v pkg-config >/dev/null ;;
	zlib1g-dev) pkg-config --exists zlib 2>/dev/null ;;
	libzstd-dev) pkg-config --exists libzstd 2>/dev/null ;;
	libmicrohttpd-dev) pkg-config --exists libmicrohttpd 2>/dev/null ;;
	libdw1) "$PYTHON" -c 'import ctypes; ctypes.CDLL("libdw.so.1")' 2>/dev/null ;;
	libcmocka-dev) pkg-config --exists cmocka 2>/dev/null ;;
	python3-venv) "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ;;
	python3-dev) [ -e "$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] ;;
	libc6-dev) echo '#include <stdlib.h>' | cc -E - >/dev/null 2>&1 ;;
	*) dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' ;;
	esac
}

# node_packages FOLDER: installs the packages in the lockfile of a folder.
node_packages() {
	if changed "node-${1//\//-}" "$1/package-lock.json" || [ ! -e "$1/node_modules" ]; then
		say "installing the npm packages of $1"
		(cd "$1" && npm ci --no-audit --no-fund --loglevel=error)
		stamp "node-${1//\//-}" "$1/package-lock.json"
	fi
}

# python_packages STAMP FILE: installs the packages of a lock (tools/lock.sh). Each file is checked against its hash.
python_packages() {
	if changed "$1" "$2"; then
		say "installing Python packages: $(grep -o '^[a-z][^ ;]*' "${2%.txt}.in" | tr '\n' ' ')"
		.venv/bin/python -m pip install -qq --require-hashes --no-deps -r "$2"
		stamp "$1" "$2"
	fi
}

# torch_packages: installs torch and its dependencies, which are not locked.
torch_packages() {
	local file=tools/requirements-torch.txt
	if changed torch $file; then
		say "installing torch"
		.venv/bin/python -m pip install -qq -r $file
		stamp torch $file
	fi
}
