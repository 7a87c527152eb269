# Replays with changes, in every format, and what is refused.
cat >trace.json <<'END'
[{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":110},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":0,"dur":10},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":2,"dur":5,"args":{"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaDeviceSynchronize","pid":1,"tid":1,"ts":20,"dur":80,"args":{"correlation":2}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":5,"dur":85,"args":{"correlation":1,"device":0,"stream":7}},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":1,"tid":1,"ts":110,"dur":40},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":120,"dur":20}]
END
for format in text json csv markdown; do
	echo "--- $format"
	opstrobe whatif --format $format --scale gemm=0.5 --drop aten::add --scale=relu=2 --remove-syncs trace.json
done
echo --- several traces
cp trace.json rank1.json
opstrobe whatif --workers 4 --no-launch-overhead --overlap allreduce trace.json rank1.json
echo --- refused
for words in "--scale gemm" "--scale" "--drop (" "--workers 0" "--workers many" "--format xml" "--drop-all"; do
	opstrobe whatif $words trace.json
	echo "[$?]"
done
opstrobe whatif
echo "[$?]"
echo '[]' >empty.json
opstrobe whatif empty.json
echo "[$?]"
opstrobe whatif --help
