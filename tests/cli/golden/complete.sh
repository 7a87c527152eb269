# What may come next on a command line, as the shells ask for it; and the manual page.
opstrobe --complete '' | grep -x -e run -e kernels -e doctor
opstrobe --complete mem
opstrobe --complete kernels --
opstrobe --complete kernels --format ''
opstrobe --complete diff --format j
opstrobe --complete run --st
opstrobe --complete nothing --
echo "[$?]"
. "$GOLDEN/../../../tools/completion/opstrobe.bash"
COMP_WORDS=(opstrobe cut --fr) COMP_CWORD=2
_opstrobe
echo "${COMPREPLY[@]}"
touch a.json
COMP_WORDS=(opstrobe views a) COMP_CWORD=2
_opstrobe
echo "${COMPREPLY[@]}"
opstrobe --man | grep -x -e '.SS kernels'
opstrobe --man | head -n 4
