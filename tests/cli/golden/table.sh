# Torch's table of a file.
row() { printf '{"ph":"X","cat":"cpu_op","name":"%s","pid":1,"tid":1,"ts":%s,"dur":%s,"args":{"External id":%s,%s}}' "$@"; }
{
	printf '{"traceEvents":['
	row aten::linear 10 100 1 '"Input Dims":[[2,3]],"Input type":["float"]'
	printf ,
	row aten::mm 20 50.5 2 '"Input Dims":[[2,3],[3,4]],"Input type":["float","float"]'
	printf ,
	row aten::mm 200 10 3 '"Input Dims":[[5,3],[3,4]],"Input type":["float","float"]'
	printf ']}'
} >trace.json
opstrobe table trace.json
opstrobe table --format csv --sort-by cpu_time_total --group-by-input-shape trace.json
opstrobe table --format json --sort-by none --row-limit 1 trace.json
cat trace.json | opstrobe table --format markdown --with-flops --sort-by count -
opstrobe table --sort-by height trace.json
echo "[$?]"
opstrobe table --sort-by '"' trace.json
echo "[$?]"
opstrobe table --row-limit many trace.json
echo "[$?]"
opstrobe table
echo "[$?]"
opstrobe table --help
