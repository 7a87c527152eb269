# A report for a pull request, of a trace like one that anybody may send.
opstrobe report --format markdown "$GOLDEN/../../fuzz/analyze/training.json" | sed '/^## Advice/q'
echo ---
opstrobe report --format markdown -o report.md "$GOLDEN/../../fuzz/analyze/training.json" && head -n 3 report.md
opstrobe report --format text "$GOLDEN/../../fuzz/analyze/training.json"
opstrobe report --format markdown -o no/report.md "$GOLDEN/../../fuzz/analyze/training.json"
opstrobe report --format markdown none.json
