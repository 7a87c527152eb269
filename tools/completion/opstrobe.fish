# SPDX-License-Identifier: Apache-2.0
# Completes the words of `opstrobe` in fish: the command prints what may come next, in addition to files.
complete -c opstrobe -a '(opstrobe --complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
