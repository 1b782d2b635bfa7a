# SPDX-License-Identifier: BSD-2-Clause
# A list of exported names (tests/data) → what the stand-in's build needs:
#   what=stubs   weak functions for names without a behaviour, and the variables;
#                volatile, so that they have a stack frame and start with push
#   what=map     a version script
#   what=wrap    assembler entries that start with sub $n,%rsp and jump on
#   what=rename  the new name of each function behind such an entry
function variable(name) {
	return name ~ /^cudbg/ && name !~ /^cudbg(Api(Attach|Detach|Init)|GetAPI(Version)?|Main)$/ &&
		name !~ /^cudbgReportDriver(ApiError|InternalError)$/
}
/^#/ { next }
{ order[++n] = $1 }
END {
	if (what == "map") {
		print version " {\nglobal:\n\tsimTruthAttach;\n\tsimWorkAttach;\n\tsimHooks;"
		print "\tsimRuntimeEnter;\n\tsimRuntimeLeave;"
		for (i = 1; i <= n; i++)
			print "\t" order[i] ";"
		print "local:\n\t*;\n};"
	}
	if (what == "stubs")
		print "#pragma GCC visibility push(default)"
	for (i = 1; i <= n; i++) {
		name = order[i]
		if (what == "stubs" && variable(name))
			print "int " name ";"
		else if (what == "stubs")
			print "__attribute__((weak)) int " name "(void)\n{\n" \
				"\tvolatile int not_supported = 801;\n\treturn not_supported;\n}"
		else if (what == "rename" && !variable(name))
			print name " sim_" name
		else if (what == "wrap" && !variable(name)) {
			print "\t.globl " name "\n\t.type " name ", @function\n\t.p2align 4"
			print name ":\n\tsub $24, %rsp\n\tadd $24, %rsp\n\tjmp sim_" name
			print "\t.size " name ", . - " name
		}
	}
	if (what == "wrap")
		print "\t.section .note.GNU-stack,\"\",@progbits"
}
