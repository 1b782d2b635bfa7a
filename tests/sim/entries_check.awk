# SPDX-License-Identifier: BSD-2-Clause
# Reads a list of names, then the disassembly of a library: fails unless
# every function of the list starts as want says (push, endbr or sub).
# __cudaLaunchKernel and its twin are jumps on purpose.
FNR == NR {
	if (/^(cu|nccl|pnccl|__cuda)/ && !/^__cudaLaunchKernel/ && !/^cudbg/)
		missing[$1] = 1
	next
}
/^[0-9a-f]+ <.*>:$/ {
	name = substr($2, 2, length($2) - 3)
	sub(/@.*/, "", name)
	line = 0
	next
}
name in missing && NF {
	line++
	first = $2 " " $3
	if (line == 1 && want == "endbr") {
		if ($2 == "endbr64")
			next
	} else if (want == "sub" ? first == "sub $0x18,%rsp" : first == "push %rbp") {
		if (want != "endbr" || line == 2)
			delete missing[name]
	}
	name = ""
}
END {
	for (name in missing) {
		print "sim: " name " does not start with " want > "/dev/stderr"
		bad = 1
	}
	exit bad
}
