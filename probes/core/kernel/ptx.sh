#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# ptx.sh: makes and checks fingerprint.ptx, which is committed so that nobody needs a toolkit to build slotprobe.
#
#	ptx.sh build	from fingerprint.cu, with nvcc
#	ptx.sh check	is it what this nvcc makes of the source (if it is the release that made it), does it assemble for
#			several GPUs, and does the kernel keep to registers? Where there is no nvcc it says so and ends with 0.
#
# nvcc 13 makes no code older than compute_75, yet uses nothing that sm_70 and PTX ISA 7.0 lack: the header is lowered, so
# that drivers from CUDA 11.0 on take it, and ptxas proves it by holding every instruction against the lowered header.
set -eu

here=$(dirname "$0")
root=$(cd "$here/../../.." && pwd)
ptx=$root/probes/core/kernel/fingerprint.ptx
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
	(cd "$root" && "$NVCC" -ptx -arch=compute_75 -O3 -I. probes/core/kernel/fingerprint.cu -o "$work/raw.ptx")
	{
		echo "// SPDX-License-Identifier: Apache-2.0"
		echo "// made by \`make ptx\` from fingerprint.cu with nvcc release $(release)"
		sed -e '/^[[:space:]]*\/\//d' -e '/^[[:space:]]*$/d' -e 's/^\.version .*/.version 7.0/' \
			-e 's/^\.target .*/.target sm_70/' "$work/raw.ptx"
	} >"$1"
}

assemble() # for each GPU; of the last one the resources are judged
{
	for arch in sm_75 sm_80 sm_90; do
		"$PTXAS" -arch=$arch -v "$ptx" -o "$work/out.cubin" 2>"$work/report" || {
			cat "$work/report"
			echo "ptx-check: fingerprint.ptx does not assemble for $arch" >&2
			exit 1
		}
	done
	sed -n "/entry function 'slotprobe_fingerprint'/,/Used/p" "$work/report" >"$work/main"
	grep -q '0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' "$work/main" || {
		cat "$work/main"
		echo "ptx-check: the kernel uses local memory: look for an array that is indexed in a rolled loop, or raise FP_BLOCKS' registers" >&2
		exit 1
	}
	sed -n 's/^ptxas info *: Used/ptx-check: sm_90:/p' "$work/main"
}

case ${1:-} in
build)
	build "$work/new.ptx"
	cp "$work/new.ptx" "$ptx"
	;;
check)
	if ! command -v "$PTXAS" >/dev/null; then
		echo "ptx-check: skipped, there is no ptxas"
		exit 0
	fi
	if command -v "$NVCC" >/dev/null && grep -qF "nvcc release $(release)" "$ptx"; then
		build "$work/new.ptx"
		cmp "$work/new.ptx" "$ptx" || {
			echo "ptx-check: fingerprint.ptx is not what its source makes: run make ptx" >&2
			exit 1
		}
	else
		echo "ptx-check: made by another nvcc: not compared with the source"
	fi
	assemble
	;;
*)
	echo "usage: ptx.sh build | check" >&2
	exit 2
	;;
esac
