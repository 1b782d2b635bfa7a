# SPDX-License-Identifier: BSD-2-Clause
# libgbpf-cupti.so, which goes into targets, and gbpf's copy of it.

SIDECAR_DIR := user/sidecar/lib
SIDECAR_SRCS := $(wildcard $(SIDECAR_DIR)/*.c)
SIDECAR_OBJS := $(SIDECAR_SRCS:%.c=$(BUILD)/sidecar/%.o)
SIDECAR_LIB := $(BUILD)/libgbpf-cupti.so

# Never sanitized: it runs in programs that are not. No stack protector, whose failure would
# end the job.
SIDECAR_CFLAGS := -std=c11 -O2 -g1 -fPIC -fvisibility=hidden -ftls-model=global-dynamic \
	-fno-strict-aliasing -fno-plt -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wno-unused-parameter -Wformat=2 -include $(SIDECAR_DIR)/compat.h
# Old glibc has dlopen() and threads in libraries of their own.
SIDECAR_LDFLAGS := -shared -Wl,-soname,libgbpf-cupti.so -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro \
	-Wl,-z,defs -Wl,-z,nopack-relative-relocs -Wl,--hash-style=both -Wl,--build-id -Wl,--no-as-needed -l:libdl.so.2 \
	-l:libpthread.so.0 -static-libgcc

$(BUILD)/sidecar/%.o: %.c $(SIDECAR_DIR)/compat.h
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(SIDECAR_CFLAGS) -MMD -MP -c $< -o $@

$(SIDECAR_LIB): $(SIDECAR_OBJS)
	$(call say,LINK,$@)
	$(Q)$(CC) $^ $(SIDECAR_LDFLAGS) -o $@.debug
	$(Q)strip --strip-unneeded -o $@ $@.debug

.PHONY: sidecar
sidecar: $(SIDECAR_LIB)

$(BUILD)/obj/user/sidecar/library.o $(BUILD)/san/obj/user/sidecar/library.o: $(SIDECAR_LIB)
$(BUILD)/obj/user/sidecar/library.o $(BUILD)/san/obj/user/sidecar/library.o: \
	CPPFLAGS += -DSIDECAR_LIBRARY='"$(SIDECAR_LIB)"'

FUZZ_RUNS_cupti ?= 3000

# Unit tests and the fuzzer of it have it inside; built as the rest of user/ is.
SIDECAR_UNIT := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_cupti_*.c))
SIDECAR_INSIDE := $(SIDECAR_SRCS:%.c=$(BUILD)/obj/%.o)
SIDECAR_INSIDE_SAN := $(SIDECAR_SRCS:%.c=$(BUILD)/san/obj/%.o)
$(SIDECAR_UNIT:%=$(BUILD)/tests/unit/%): $(SIDECAR_INSIDE)
$(SIDECAR_UNIT:%=$(BUILD)/san/tests/unit/%) $(BUILD)/fuzz/fuzz_cupti: $(SIDECAR_INSIDE_SAN)

-include $(SIDECAR_OBJS:.o=.d) $(SIDECAR_INSIDE:.o=.d) $(SIDECAR_INSIDE_SAN:.o=.d)
