# A Python that is not there, and one without Opstrobe.
export OPSTROBE_PYTHON=/no/such/python
opstrobe doctor
echo "[$?]"
"$(command -v python)" -m venv --without-pip empty
export OPSTROBE_PYTHON=$PWD/empty/bin/python
opstrobe run -c pass
