# Views and diffs of small traces, and what is refused.
row() { printf '{"ph":"X","cat":"%s","name":"%s","pid":1,"tid":1,"ts":%s,"dur":%s}' "$@"; }
trace() {
	printf '{"traceEvents":['
	for step in 1 2 3; do
		row user_annotation "ProfilerStep#$step" "${step}000" "$1"
		printf ,
		row cpu_op aten::mm "${step}010" "$2"
		printf ,
	done
	row cpu_op aten::relu 1900 10
	printf ']}'
}
trace 950 400 >base.json
trace 990 450 >new.json
opstrobe views base.json
opstrobe views --format=json base.json | head -c 60
echo
opstrobe diff base.json new.json
opstrobe diff --format markdown --gate 1% --exit-on-regression base.json new.json
echo "[$?]"
opstrobe diff --gate 10% --exit-on-regression base.json new.json >/dev/null
echo "[$?]"
opstrobe views --help
opstrobe diff --help
opstrobe views
echo "[$?]"
opstrobe views --format xml base.json
echo "[$?]"
opstrobe views --colour base.json
echo "[$?]"
opstrobe views missing.json
echo "[$?]"
mkdir empty
opstrobe views empty
echo "[$?]"
opstrobe diff --gate much base.json new.json
echo "[$?]"
opstrobe diff base.json
echo "[$?]"
opstrobe views "$GOLDEN/../../../web/tests/traces/train.pt.trace.json.gz" | sed -n '/^advice/,$p'
