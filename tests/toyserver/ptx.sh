#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# ptx.sh: makes and checks kernels.ptx, which is committed so that nobody needs a toolkit to build the toy server.
#
#	ptx.sh build	from kernels.cu, with nvcc
#	ptx.sh check	is it what this nvcc makes of the source (if it is the release that made it), and does it assemble?
#			Where there is no ptxas it says so and ends with 0.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/local/cuda/bin
# shellcheck disable=SC2034 # for ptx_common.sh
name=toy-ptx-check goal=toy-ptx source=$here/kernels.cu ptx=$here/kernels.ptx

compile()
{
	"$NVCC" -ptx -arch=compute_75 -fmad=false "$source" -o "$1"
}

judge()
{
	! grep -q 'fma\.' "$ptx" || {
		echo "toy-ptx-check: kernels.ptx fuses multiply and add: the host would round otherwise" >&2
		exit 1
	}
}

# shellcheck source=probes/core/kernel/ptx_common.sh disable=SC1091
. "$here/../../probes/core/kernel/ptx_common.sh"
