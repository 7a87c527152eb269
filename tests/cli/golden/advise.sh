# Advice on a trace whose time no finding explains: lines of the program, then operators without Python calls.
event() { printf '{"ph":"X","cat":"%s","name":"%s","pid":1,"tid":1,"ts":%s,"dur":%s,"args":{%s}}' "$@"; }
trace() {
	printf '{"traceEvents":['
	for step in 1 2 3 4; do
		event user_annotation "ProfilerStep#$step" "${step}000" 1000 ''
		printf ,
		event cpu_op aten::bmm "${step}020" 600 '"Input Dims":[[64,512,64],[64,64,512]],"Input type":["float","float"]'
		printf ,
		event cpu_op aten::lerp "${step}700" 200 ''
		if [ "$1" = lines ]; then
			printf ,
			event python_function "train.py(10): attend" "${step}010" 650 "\"Python id\":1$step,\"Python parent id\":0"
			printf ,
			event python_function "train.py(30): update" "${step}690" 250 "\"Python id\":2$step,\"Python parent id\":0"
		fi
		[ $step = 4 ] || printf ,
	done
	printf ']}'
}
trace lines >lines.json
trace >operators.json
opstrobe advise lines.json
opstrobe advise --format markdown lines.json
opstrobe advise operators.json
