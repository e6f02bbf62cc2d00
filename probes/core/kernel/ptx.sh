#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# ptx.sh: makes and checks fingerprint.ptx, which is committed so that nobody needs a toolkit to build slotprobe.
#
#	ptx.sh build	from fingerprint.cu, with nvcc
#	ptx.sh check	is it what this nvcc makes of the source (if it is the release that made it), does it assemble for
#			several GPUs, and does the kernel keep to registers? Where there is no ptxas it says so and ends with 0.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
# shellcheck disable=SC2034 # for ptx_common.sh
name=ptx-check goal=ptx source=$here/fingerprint.cu ptx=$here/fingerprint.ptx

compile()
{
	(cd "$root" && "$NVCC" -ptx -arch=compute_75 -O3 -I. probes/core/kernel/fingerprint.cu -o "$1")
}

# shellcheck disable=SC2154 # work is made by ptx_common.sh
judge()
{
	sed -n "/entry function 'slotprobe_fingerprint'/,/Used/p" "$work/report" >"$work/main"
	grep -q '0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' "$work/main" || {
		cat "$work/main"
		echo "ptx-check: the kernel uses local memory: look for an array that is indexed in a rolled loop, or raise FP_BLOCKS' registers" >&2
		exit 1
	}
	sed -n 's/^ptxas info *: Used/ptx-check: sm_90:/p' "$work/main"
}

# shellcheck source=probes/core/kernel/ptx_common.sh disable=SC1091
. "$here/ptx_common.sh"
