#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# ptx.sh: makes and checks kernels.ptx, which is committed so that nobody needs a toolkit to build the toy server.
#
#	ptx.sh build	from kernels.cu, with nvcc
#	ptx.sh check	is it what this nvcc makes of the source (if it is the release that made it), and does it assemble?
#			Where there is no ptxas it says so and ends with 0.
#
# The header is lowered so that older drivers take it; ptxas holds every instruction against the lowered header.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
ptx=$here/kernels.ptx
PATH=$PATH:/usr/local/cuda/bin
NVCC=${NVCC:-nvcc}
PTXAS=${PTXAS:-ptxas}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

release() # of this nvcc: "13.0, V13.0.88"
{
	"$NVCC" --version | sed -n 's/^Cuda compilation tools, release //p'
}

build() # $1: where to
{
	"$NVCC" -ptx -arch=compute_75 -fmad=false "$here/kernels.cu" -o "$work/raw.ptx"
	{
		echo "// SPDX-License-Identifier: Apache-2.0"
		echo "// made by \`make toy-ptx\` from kernels.cu with nvcc release $(release)"
		sed -e '/^[[:space:]]*\/\//d' -e '/^[[:space:]]*$/d' -e 's/^\.version .*/.version 7.0/' \
			-e 's/^\.target .*/.target sm_70/' "$work/raw.ptx"
	} >"$1"
}

case ${1:-} in
build)
	build "$work/new.ptx"
	cp "$work/new.ptx" "$ptx"
	;;
check)
	if ! command -v "$PTXAS" >/dev/null; then
		echo "toy-ptx-check: skipped, there is no ptxas"
		exit 0
	fi
	if command -v "$NVCC" >/dev/null && grep -qF "nvcc release $(release)" "$ptx"; then
		build "$work/new.ptx"
		cmp "$work/new.ptx" "$ptx" || {
			echo "toy-ptx-check: kernels.ptx is not what its source makes: run make toy-ptx" >&2
			exit 1
		}
	else
		echo "toy-ptx-check: made by another nvcc: not compared with the source"
	fi
	! grep -q 'fma\.' "$ptx" || {
		echo "toy-ptx-check: kernels.ptx fuses multiply and add: the host would round otherwise" >&2
		exit 1
	}
	for arch in sm_75 sm_80 sm_90; do
		"$PTXAS" -arch=$arch "$ptx" -o "$work/out.cubin"
	done
	;;
*)
	echo "usage: ptx.sh build | check" >&2
	exit 2
	;;
esac
