# Traces cut, merged and converted; a trace alone; patterns, and standard input.
row() { printf '{"ph":"X","cat":"%s","name":"%s","pid":1,"tid":%s,"ts":%s,"dur":%s}' "$@"; }
trace() {
	printf '{"traceEvents":['
	for step in 1 2 3; do
		row user_annotation "ProfilerStep#$step" 1 "${step}000" 1000
		printf ,
		row cpu_op aten::mm 1 "${step}010" 400
		printf ,
	done
	row cpu_op aten::relu 2 1900 10
	printf ']}'
}
trace >rank0.json
trace >rank1.json
opstrobe rank0.json
opstrobe rank0.json --format json | head -c 60
echo
cat rank0.json | opstrobe - | head -n 1
opstrobe '*.json' | grep -e ---
opstrobe cut --steps 2:3 rank0.json cut.json
opstrobe cut --from 1ms --to 1.5ms rank0.json cut.json
opstrobe cut --threads 2 rank0.json cut.json
opstrobe cut --steps 7 rank0.json none.json
echo "[$?]"
opstrobe cut --from noon rank0.json none.json
echo "[$?]"
opstrobe merge --output merged.json.gz rank?.json
opstrobe merged.json.gz | head -n 1
opstrobe merge rank0.json
echo "[$?]"
opstrobe convert rank0.json stacks.folded
cat stacks.folded
opstrobe convert rank0.json trace.pftrace
opstrobe convert rank0.json trace.docx
echo "[$?]"
opstrobe convert 'rank?.json' trace.pftrace
echo "[$?]"
printf '{"traceEvents":[' >short.json
row cpu_op aten::mm 1 0 400 >>short.json
opstrobe short.json | head -n 2
opstrobe cut --help
opstrobe merge --help
opstrobe convert --help
ls
