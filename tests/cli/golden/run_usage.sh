# Wrong use of `opstrobe run` is told before anything is run.
try() {
	opstrobe run "$@"
	echo "[$?]"
}
try
try missing.py
try -m
try --steps 0 missing.py
try --steps 5:5 missing.py
try --steps two missing.py
try --table=none missing.py
try --recordshapes missing.py
try -o /proc/no/directory/trace.json -c pass
opstrobe help run
