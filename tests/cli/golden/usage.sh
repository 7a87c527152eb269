# What stands before a command, and words that are no command.
opstrobe --version
opstrobe --help
opstrobe
echo "[$?]"
opstrobe rum
echo "[$?]"
opstrobe doctr
echo "[$?]"
opstrobe summarize
echo "[$?]"
opstrobe --verbose
echo "[$?]"
opstrobe help rnu
echo "[$?]"
opstrobe --version >/dev/full
