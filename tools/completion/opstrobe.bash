# SPDX-License-Identifier: Apache-2.0
# Completes the words of `opstrobe` in bash: the command itself says what may come next.
_opstrobe() {
	local IFS=$'\n'
	compopt -o filenames 2>/dev/null
	# shellcheck disable=SC2207
	COMPREPLY=($(opstrobe --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
	if [ ${#COMPREPLY[@]} -eq 0 ]; then
		# shellcheck disable=SC2207
		COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
	fi
}
complete -F _opstrobe opstrobe
