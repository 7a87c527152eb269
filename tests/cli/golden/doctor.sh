# What is well, and what to do without a compiler and without a cache to write to.
opstrobe doctor
echo "[$?]"
export XDG_CACHE_HOME=$PWD/cache CXX=/no/such/compiler
opstrobe doctor | grep -v '^ok'
echo "[${PIPESTATUS[0]}]"
opstrobe doctor --format json | python3 -c 'import json, sys; print([f["subject"] for f in json.load(sys.stdin) if f["status"] == "problem"])'
opstrobe doctor more
