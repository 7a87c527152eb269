# The front door. Everything lands in .venv/ and build/; a second run does only what is new.
.PHONY: build demo test bench soak docs lint wheel test-matrix clean

build:
	@tools/build.sh
demo: build
	@.venv/bin/python examples/resnet18.py
test bench soak docs lint wheel test-matrix:
	@tools/$@.sh
clean:
	rm -rf .venv build dist demo-output python/opstrobe/*.so
