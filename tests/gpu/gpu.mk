# SPDX-License-Identifier: BSD-2-Clause
# tests/gpu/run.sh needs a GPU; this tries its harness without one (root).

.PHONY: gpu-self-test
gpu-self-test: all sim
	$(Q)tests/gpu/run.sh --self-test --gbpf $(BUILD)/gbpf
