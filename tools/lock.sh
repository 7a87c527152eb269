#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `tools/lock.sh [OPTION…]`: writes tools/requirements-*.txt, the exact versions and hashes of the packages in requirements-*.in and of
# their dependencies, for Linux and each Python from 3.10 on. Locked versions are kept unless an OPTION of `uv pip compile` changes
# them: --upgrade, --upgrade-package NAME.
#
# torch is not locked: the builds for different devices have the same version and come from different indexes. Its
# dependencies, such as CUDA's libraries, come with it (requirements-torch.txt).
. "$(dirname "$0")/common.sh"

work=build/lock
if [ ! -x $work/bin/uv ]; then
	"$PYTHON" -m venv $work
	$work/bin/python -m pip install -qq uv==0.13.9
fi
echo "torch ; sys_platform == 'none'" >$work/overrides.txt
compile() {
	$work/bin/uv --no-config pip compile -q --universal --python-version 3.10 --override $work/overrides.txt \
		--no-emit-package torch --no-emit-package sympy --no-emit-package mpmath "$@"
}

# All together first, so that the files agree about packages that several of them contain.
grep -ho '^[a-z].*==[^\\]*' tools/requirements-*.txt | sort -u >$work/all.txt || true
compile --no-header "${@}" tools/requirements-*.in -o $work/all.txt
for input in tools/requirements-*.in; do
	compile --generate-hashes --no-annotate --custom-compile-command tools/lock.sh -c $work/all.txt "$input" -o "${input%.in}.txt"
done
