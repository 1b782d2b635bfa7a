# SPDX-License-Identifier: BSD-2-Clause
#
# make check, check-long, lint, demo. Parts that bring something to be built for
# the tests (the simulated CUDA, fuzzers) are named in tests-extra.

export BUILD CC CLANG BPFTOOL LLVM_STRIP PYTHON

# Unless one was asked for: the first bpftool that runs (tools/install-deps says why).
ifeq ($(origin BPFTOOL),file)
BPFTOOL := $(or $(shell tools/install-deps --print-bpftool 2>/dev/null),bpftool)
endif

.PHONY: check check-long lint demo tests-extra
check:
	@+tools/run-tests check

check-long:
	@+tools/run-tests long

# Everything that needs no running program, the analyser included.
lint:
	$(Q)PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m pytest -c tests/pytest.ini --rootdir . -q \
		-n $(or $(JOBS),$(shell nproc)) tests/lint

demo:
	$(Q)tools/install-deps build
	$(Q)$(MAKE) all sim
	$(Q)tools/demo

tests-extra: $(if $(wildcard tests/sim/sim.mk),sim) $(if $(wildcard tests/fuzz/fuzz.mk),fuzz) \
	$(if $(wildcard tests/integration/integration.mk),integration)
