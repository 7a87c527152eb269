#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make docs`: builds the manual as a site into build/docs. Fails on broken links.
. "$(dirname "$0")/common.sh"

[ -e .venv ] || tools/build.sh
python_packages docs tools/requirements-docs.txt
NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict
say "the manual is in build/docs; 'python3 -m http.server -d build/docs' shows it"
