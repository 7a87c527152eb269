# Kernels, modules and memory, in every format, and what is refused.
cat >trace.json <<'END'
[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":0,"dur":100},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":10,"dur":5,"args":{"correlation":7}},
{"ph":"X","cat":"kernel","name":"gemm, fast","pid":0,"tid":7,"ts":20,"dur":30,"args":{"correlation":7,"device":0}},
{"ph":"X","cat":"kernel","name":"copy|all","pid":0,"tid":7,"ts":60,"dur":10,"args":{"device":0}},
{"ph":"X","cat":"python_function","name":"train.py(3): step","pid":1,"tid":1,"ts":110,"dur":90,"args":{"Python id":1}},
{"ph":"X","cat":"python_function","name":"nn.Module: Linear_0","pid":1,"tid":1,"ts":120,"dur":50,"args":
 {"Python id":2,"Python parent id":1,"Python module id":0}},
{"ph":"X","cat":"cpu_op","name":"aten::empty","pid":1,"tid":1,"ts":130,"dur":5},
{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":132,"args":
 {"Bytes":64,"Addr":9,"Device Type":0,"Device Id":-1,"Total Allocated":0}}]
END
opstrobe trace.json
for command in kernels modules memory; do
	for format in text json csv markdown; do
		echo "--- $command $format"
		opstrobe $command --format $format trace.json
	done
done
echo ---
opstrobe kernels --top 1 --format csv trace.json trace.json
opstrobe kernels --by-operator --format csv trace.json
opstrobe modules --by-class --format csv trace.json
for words in "kernels --top many" "memory --format xml" "modules --by-operator"; do
	opstrobe $words trace.json
	echo "[$?]"
done
opstrobe kernels --help
opstrobe modules --help
opstrobe memory --help
