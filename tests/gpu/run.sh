#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Traces real CUDA jobs on this machine's GPU and compares what gbpf says with
# what the jobs know of themselves. Needs root, a built gbpf, python3 with torch
# and triton, and nvcc; nothing is installed or downloaded.
#
#   tests/gpu/run.sh [--gbpf FILE] [--out DIR] [--minutes N] [--only NAME,…] [--skip NAME,…]
#   tests/gpu/run.sh --list         names the checks
#   tests/gpu/run.sh --self-test    tries this harness without a GPU, on the simulated CUDA
#
# DIR (gpu-results, or $OUT) gets log.txt, results.json, report.md, and the
# recordings of up to four checks that failed. Ends on "N passed, N failed,
# N skipped"; the exit status is 0 if nothing failed and something passed.

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gbpf=$here/../../build/gbpf
out=${OUT:-gpu-results}
minutes=9
self_test=
rest=()
command="tests/gpu/run.sh $*"

while [ $# -gt 0 ]; do
	case $1 in
	--gbpf) gbpf=${2:?--gbpf needs a file}; shift ;;
	--out) out=${2:?--out needs a directory}; shift ;;
	--minutes) minutes=${2:?--minutes needs a number}; shift ;;
	--only | --skip) rest+=("$1" "${2:?$1 needs names}"); shift ;;
	--list) rest+=("$1") ;;
	--self-test) self_test=1 ;;
	-h | --help) sed -n '4,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
	*) echo "run.sh: unknown option '$1'; try --help" >&2; exit 2 ;;
	esac
	shift
done

case $minutes in
'' | *[!0-9]* | 0*) echo "run.sh: --minutes takes a whole number" >&2; exit 2 ;;
esac

export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
if [ -n "$self_test" ]; then
	exec python3 "$here/driver/selftest.py" --gbpf "$gbpf"
fi
if [ ${#rest[@]} -gt 0 ] && [ "${rest[0]}" = --list ]; then
	exec python3 "$here/driver/main.py" --gbpf "$gbpf" --list
fi
if [ ! -x "$gbpf" ]; then
	echo "run.sh: no $gbpf; build it with make, or name it with --gbpf" >&2
	exit 2
fi
if [ "$(id -u)" != 0 ]; then
	echo "run.sh: must run as root, as gbpf must" >&2
	exit 2
fi
mkdir -p "$out" || exit 2
# The driver keeps to the time itself; this is for when it cannot.
timeout -k 15 $((minutes * 60 + 30)) python3 "$here/driver/main.py" --gbpf "$gbpf" \
	--out "$out" --minutes "$minutes" --command "$command" ${rest[@]+"${rest[@]}"} 2>&1 |
	tee "$out/log.txt"
exit "${PIPESTATUS[0]}"
