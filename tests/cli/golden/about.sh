# What a trace is, and what is wrong with it.
row() { printf '{"ph":"X","cat":"%s","name":"%s","pid":1,"tid":1,"ts":%s,"dur":%s,"args":{%s}}' "$@"; }
{
	printf '{"schemaVersion":1,"distributedInfo":{"rank":3},"baseTimeNanoseconds":1000,"traceEvents":['
	row user_annotation 'ProfilerStep#4' 1 100 ''
	printf ,
	row user_annotation 'ProfilerStep#5' 101.5 100 ''
	printf ,
	row cpu_op aten::mm 10 20.25 '"External id":1'
	printf ']}'
} >good.json
{
	printf '{"traceEvents":['
	row kernel sgemm 1 2 '"stream":"x","grid":3,"zzz":1'
	printf ',{"ph":"f","id":7,"pid":1,"tid":9,"ts":3,"cat":"ac2g","name":"ac2g"},]}'
} >odd.json
opstrobe info good.json
opstrobe info --format json good.json
cat good.json | opstrobe info --format csv - | head -n 4
opstrobe validate good.json
echo "[$?]"
opstrobe validate --format markdown odd.json
echo "[$?]"
opstrobe validate --format json odd.json
opstrobe info missing.json
echo "[$?]"
opstrobe validate --format xml good.json
echo "[$?]"
opstrobe info
echo "[$?]"
opstrobe info --help
opstrobe validate --help
