# Operators and kernels against the roof, in every format, with another roof, and what is refused. 2 * 512^3 FLOPs and 3 MiB in 1 ms
# on the CPU; 2 * 1024^3 FLOPs and 6 MiB in 10 us on a GPU; a copy from the host, of which no roof tells.
cat >cpu.json <<'END'
{"roof": {"name": "Some CPU", "flops": {"float32": 5e11}, "bandwidth": [[1e5, 1e11], [1e8, 2e10]], "call_us": 1},
"traceEvents": [
{"ph":"X","cat":"cpu_op","name":"aten::matmul","pid":1,"tid":1,"ts":0,"dur":1010,"args":
 {"Input Dims":[[512,512],[512,512]],"Input Strides":[[512,1],[512,1]],"Input type":["float","float"]}},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":5,"dur":1000,"args":
 {"Input Dims":[[512,512],[512,512]],"Input Strides":[[512,1],[512,1]],"Input type":["float","float"]}},
{"ph":"X","cat":"cpu_op","name":"aten::add_","pid":1,"tid":1,"ts":2000,"dur":2,"args":
 {"Input Dims":[[10],[10],[]],"Input Strides":[[1],[1],[]],"Input type":["float","float","Scalar"],"Concrete Inputs":["","","1"]}},
{"ph":"X","cat":"cpu_op","name":"mine::unknown","pid":1,"tid":1,"ts":3000,"dur":500,"args":
 {"Input Dims":[[10]],"Input Strides":[[1]],"Input type":["float"]}}]}
END
cat >gpu.json <<'END'
{"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
"traceEvents": [
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":0,"dur":20,"args":
 {"Input Dims":[[1024,1024],[1024,1024]],"Input Strides":[[1024,1],[1024,1]],"Input type":["c10::BFloat16","c10::BFloat16"]}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":10,"dur":5,"args":{"correlation":7}},
{"ph":"X","cat":"kernel","name":"sm90_xmma_gemm","pid":0,"tid":7,"ts":30,"dur":10,"args":{"correlation":7,"device":0}},
{"ph":"X","cat":"cpu_op","name":"aten::copy_","pid":1,"tid":1,"ts":50,"dur":20,"args":
 {"Input Dims":[[1000],[1000]],"Input Strides":[[1],[1]],"Input type":["float","float"]}},
{"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":1,"tid":1,"ts":55,"dur":5,"args":{"correlation":8}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":7,"ts":60,"dur":10,"args":
 {"correlation":8,"device":0}}]}
END
for format in text json csv markdown; do
	echo "--- $format"
	opstrobe roofline --format $format cpu.json
done
echo ---
opstrobe roofline --by shape --format csv --limit 1 cpu.json
opstrobe roofline --roof 1T,100G cpu.json
echo '{"name": "Given", "flops": {"float32": 268435456e3}}' >roof.json
opstrobe roofline --roof roof.json cpu.json
echo ---
opstrobe roofline gpu.json
opstrobe roofline --by kernel --format csv gpu.json
opstrobe roofline --by kernel cpu.json
echo '[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":0,"dur":100}]' | opstrobe roofline -
for words in "--roof fast" "--roof 1T,fast" "--by file" "--limit many"; do
	opstrobe roofline $words cpu.json
	echo "[$?]"
done
opstrobe roofline --help
