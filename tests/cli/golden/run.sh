# What `opstrobe run` prints, and that the program's own output and arguments are its own.
cat >program.py <<'EOF'
import sys
import torch

print("arguments:", sys.argv[1:])
torch.ones(2) + torch.ones(2)
EOF
opstrobe run -o trace.json program.py --table -o x
opstrobe run -o trace.json.gz --table=3 --record-shapes -c 'import torch; torch.ones(4, 4) @ torch.ones(4, 4)'
ls
gzip -t trace.json.gz
opstrobe run -c 'print("no torch here")'
