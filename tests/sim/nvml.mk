# SPDX-License-Identifier: BSD-2-Clause
# The stand-in for NVML: whole, as an old library is, and without what begins its use.

SIM_NVML_DIRS := nvml nvml-bare nvml-broken
SIM_NVML_FLAGS_nvml :=
SIM_NVML_FLAGS_nvml-bare := -DSIMNVML_BARE
SIM_NVML_FLAGS_nvml-broken := -DSIMNVML_NO_INIT -DSIMNVML_BARE
SIM_NVML_LIBS := $(SIM_NVML_DIRS:%=$(BUILD)/sim/%/libnvidia-ml.so.1)

define SIM_NVML_RULE
$(BUILD)/sim/$1/libnvidia-ml.so.1: tests/sim/nvml.c tests/sim/nvml_state.c tests/sim/nvml_abi.h \
		tests/sim/nvml_state.h tests/sim/nvml.mk
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -D_GNU_SOURCE -std=c11 -O2 -fPIC -Wall -Wextra -Werror -Wshadow \
		-Wno-unused-parameter -Wno-missing-field-initializers -fvisibility=hidden \
		$(SIM_NVML_FLAGS_$1) tests/sim/nvml.c tests/sim/nvml_state.c -shared \
		-Wl,-soname,libnvidia-ml.so.1 -Wl,-z,now -lpthread -o $$@
endef
$(foreach d,$(SIM_NVML_DIRS),$(eval $(call SIM_NVML_RULE,$d)))

.PHONY: sim-nvml
sim-nvml: $(SIM_NVML_LIBS)
sim: $(SIM_NVML_LIBS)

$(BUILD)/tests/unit/test_gpu $(BUILD)/tests/unit/test_gpu_sampler: | $(SIM_NVML_LIBS)
