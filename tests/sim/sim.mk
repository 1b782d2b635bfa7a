# SPDX-License-Identifier: BSD-2-Clause
# The simulated CUDA: stand-in libraries in several variants, and the job.
# Everything goes to $(BUILD)/sim/; README.md says what each directory is.

SIM := $(BUILD)/sim
SIM_DIR := tests/sim
SIM_VARIANTS := lib lib-endbr lib-sub lib-stripped
SIM_DRIVER := device work memory driver driver_device driver_graph driver_launch driver_mem
SIM_RUNTIME := runtime runtime_api
SIM_LIBS := libcuda.so.1 libcudart.so.13 libnccl.so.2
# which names each exports: tests/data/exports-NAMES.txt
SIM_NAMES_libcuda.so.1 := libcuda-580.159.04
SIM_NAMES_libcudart.so.13 := libcudart-13.0
SIM_NAMES_libnccl.so.2 := libnccl-2.28.9
SIM_JOB := truth truth_line job job_setup job_knobs job_calls job_copies job_patterns job_rates \
	job_waits job_special job_process job_profiler job_gpu

# A frame pointer that nothing postpones makes every function that calls another
# or uses its stack start with push %rbp, and the sources see to it that each
# does; identical functions must not become one address.
SIM_CFLAGS := -D_GNU_SOURCE -std=c11 -O2 -fPIC -fexceptions -Wall -Wextra -Werror -Wshadow \
	-Wno-unused-parameter -fvisibility=hidden -fno-omit-frame-pointer -fno-shrink-wrap \
	-fno-optimize-sibling-calls -fno-ipa-icf -fno-reorder-functions -fno-strict-aliasing -I$(SIM_DIR)
SIM_JOB_CFLAGS := -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Wshadow -Wno-unused-parameter \
	-fexceptions -fno-strict-aliasing -I$(SIM_DIR)
SIM_LDFLAGS := -shared -Wl,-Bsymbolic-functions -Wl,-z,now -ldl -lpthread

.PHONY: sim
sim: $(foreach v,$(SIM_VARIANTS),$(SIM_LIBS:%=$(SIM)/$v/%)) \
	$(SIM)/simjob $(SIM)/simjob-linked $(SIM)/simjob-static $(SIM)/simjob-static-stripped \
	$(foreach v,lib lib-endbr lib-sub,$(SIM_LIBS:%=$(SIM)/gen/$v/%.entries))

# ---- objects: push and endbr flavours ----

$(SIM)/obj/push/%.o: $(SIM_DIR)/%.c $(SIM_DIR)/sim.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SIM_CFLAGS) -fcf-protection=none -MMD -MP -c $< -o $@

$(SIM)/obj/endbr/%.o: $(SIM_DIR)/%.c $(SIM_DIR)/sim.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SIM_CFLAGS) -fcf-protection=branch -MMD -MP -c $< -o $@

$(SIM)/gen/%.stubs.c: tests/data/exports-%.txt $(SIM_DIR)/entries.awk
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)awk -v what=stubs -f $(SIM_DIR)/entries.awk $< > $@

$(SIM)/gen/%.map: tests/data/exports-%.txt $(SIM_DIR)/entries.awk
	$(Q)mkdir -p $(@D)
	$(Q)awk -v what=map -v version=$(if $(findstring cudart,$*),libcudart.so.13,) \
		-f $(SIM_DIR)/entries.awk $< > $@

$(SIM)/gen/%.wrap.s: tests/data/exports-%.txt $(SIM_DIR)/entries.awk
	$(Q)mkdir -p $(@D)
	$(Q)awk -v what=wrap -f $(SIM_DIR)/entries.awk $< > $@

$(SIM)/gen/%.rename: tests/data/exports-%.txt $(SIM_DIR)/entries.awk
	$(Q)mkdir -p $(@D)
	$(Q)awk -v what=rename -f $(SIM_DIR)/entries.awk $< > $@

define SIM_STUB_RULES
$(SIM)/obj/$1/$2.stubs.o: $(SIM)/gen/$2.stubs.c $(SIM_DIR)/sim.mk
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(SIM_CFLAGS) -O1 $3 -c $$< -o $$@
endef
$(foreach l,$(SIM_LIBS),$(eval $(call SIM_STUB_RULES,push,$(SIM_NAMES_$l),-fcf-protection=none)))
$(foreach l,$(SIM_LIBS),$(eval $(call SIM_STUB_RULES,endbr,$(SIM_NAMES_$l),-fcf-protection=branch)))

# ---- libraries ----

SIM_OBJS_libcuda.so.1 := $(SIM_DRIVER) $(SIM_NAMES_libcuda.so.1).stubs
SIM_OBJS_libcudart.so.13 := $(SIM_RUNTIME) $(SIM_NAMES_libcudart.so.13).stubs
SIM_OBJS_libnccl.so.2 := nccl $(SIM_NAMES_libnccl.so.2).stubs

# 1 directory, 2 flavour, 3 library, 4 its list of names
define SIM_LIB_RULE
$(SIM)/$1/$3: $(SIM_OBJS_$3:%=$(SIM)/obj/$2/%.o) $(SIM)/gen/$4.map
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(filter %.o,$$^) $$(SIM_LDFLAGS) -Wl,-soname,$3 \
		-Wl,--version-script=$(SIM)/gen/$4.map -o $$@
endef

# The functions' own entries are renamed and the assembler's take their names.
define SIM_SUB_RULE
$(SIM)/lib-sub/$1: $(SIM_OBJS_$1:%=$(SIM)/obj/push/%.o) $(SIM)/gen/$2.map $(SIM)/gen/$2.wrap.s \
		$(SIM)/gen/$2.rename
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -r -nostdlib $$(filter %.o,$$^) -o $(SIM)/gen/$2.whole.o
	$$(Q)objcopy --redefine-syms=$(SIM)/gen/$2.rename $(SIM)/gen/$2.whole.o $(SIM)/gen/$2.sub.o
	$$(Q)$$(CC) $(SIM)/gen/$2.sub.o $(SIM)/gen/$2.wrap.s $$(SIM_LDFLAGS) -Wl,-soname,$1 \
		-Wl,--version-script=$(SIM)/gen/$2.map -o $$@
endef

$(foreach l,$(SIM_LIBS),$(eval $(call SIM_LIB_RULE,lib,push,$l,$(SIM_NAMES_$l))))
$(foreach l,$(SIM_LIBS),$(eval $(call SIM_LIB_RULE,lib-endbr,endbr,$l,$(SIM_NAMES_$l))))
$(foreach l,$(SIM_LIBS),$(eval $(call SIM_SUB_RULE,$l,$(SIM_NAMES_$l))))

# ---- the build's own check that functions start as their directory says ----

# 1 directory, 2 first instruction, 3 library, 4 its list of names
define SIM_ENTRIES_RULE
$(SIM)/gen/$1/$3.entries: $(SIM)/$1/$3 tests/data/exports-$4.txt $(SIM_DIR)/entries_check.awk
	$$(call say,CHECK,$$<)
	$$(Q)mkdir -p $$(@D)
	$$(Q)objdump -d --no-show-raw-insn $$< | \
		awk -v want=$2 -f $(SIM_DIR)/entries_check.awk tests/data/exports-$4.txt - > $$@
endef
$(foreach l,$(SIM_LIBS),$(eval $(call SIM_ENTRIES_RULE,lib,push,$l,$(SIM_NAMES_$l))))
$(foreach l,$(SIM_LIBS),$(eval $(call SIM_ENTRIES_RULE,lib-endbr,endbr,$l,$(SIM_NAMES_$l))))
$(foreach l,$(SIM_LIBS),$(eval $(call SIM_ENTRIES_RULE,lib-sub,sub,$l,$(SIM_NAMES_$l))))

$(SIM)/lib-stripped/%: $(SIM)/lib/%
	$(call say,STRIP,$@)
	$(Q)mkdir -p $(@D)
	$(Q)strip --strip-all -o $@ $<

# ---- the job: loading its runtime, or carrying it inside as nvcc's programs do ----

$(SIM)/obj/job/%.o: $(SIM_DIR)/%.c $(SIM_DIR)/sim.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(SIM_JOB_CFLAGS) -MMD -MP -c $< -o $@

$(SIM)/obj/static/%.o: $(SIM_DIR)/%.c $(SIM_DIR)/sim.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(SIM_JOB_CFLAGS) -DSIM_STATIC_RUNTIME -MMD -MP -c $< -o $@

$(SIM)/obj/job/%.o: $(SIM_DIR)/%.cc $(SIM_DIR)/sim.mk
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 $(SIM_JOB_CFLAGS) -c $< -o $@

$(SIM)/simjob: $(SIM_JOB:%=$(SIM)/obj/job/%.o) $(SIM)/obj/job/job_throw.o
	$(call say,LINK,$@)
	$(Q)$(CXX) $^ -static-libgcc -ldl -lpthread -o $@

# Its libraries are mapped before main() and found by the loader.
$(SIM)/simjob-linked: $(SIM_JOB:%=$(SIM)/obj/job/%.o) $(SIM)/obj/job/job_throw.o \
		$(SIM)/lib/libcuda.so.1 $(SIM)/lib/libcudart.so.13
	$(call say,LINK,$@)
	$(Q)$(CXX) $(filter %.o,$^) -static-libgcc -Wl,--no-as-needed -L$(SIM)/lib -l:libcuda.so.1 \
		-l:libcudart.so.13 -Wl,-rpath,'$$ORIGIN/lib' -ldl -lpthread -o $@

# Only one source is another one there.
SIM_STATIC_JOB := $(SIM_JOB:%=$(SIM)/obj/job/%.o)
SIM_STATIC_JOB := $(SIM_STATIC_JOB:%/job/job_setup.o=%/static/job_setup.o)

$(SIM)/simjob-static: $(SIM_STATIC_JOB) $(SIM)/obj/job/job_throw.o \
		$(SIM_RUNTIME:%=$(SIM)/obj/push/%.o)
	$(call say,LINK,$@)
	$(Q)$(CXX) $^ -static-libgcc -ldl -lpthread -o $@

$(SIM)/simjob-static-stripped: $(SIM)/simjob-static
	$(call say,STRIP,$@)
	$(Q)strip --strip-all -o $@ $<

-include $(wildcard $(SIM)/obj/*/*.d)
