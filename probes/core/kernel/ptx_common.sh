# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
#
# ptx_common.sh: what the scripts that make and check committed PTX share; sourced, with these set:
#	name		of the check, for messages
#	goal		the make goal that builds
#	source, ptx	what it is made from, and the committed text
#	compile FILE	a function: nvcc's raw PTX to FILE
#	judge		a function: what else must hold of the committed text; says so and ends with 1 if it does not
#
# nvcc 13 makes no code older than compute_75, yet uses nothing that sm_70 and PTX ISA 7.0 lack: the header is lowered, so
# that drivers from CUDA 11.0 on take it, and ptxas proves it by holding every instruction against the lowered header.

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
	compile "$work/raw.ptx"
	{
		echo "// SPDX-License-Identifier: Apache-2.0"
		echo "// made by \`make $goal\` from $(basename "$source") with nvcc release $(release)"
		sed -e '/^[[:space:]]*\/\//d' -e '/^[[:space:]]*$/d' -e 's/^\.version .*/.version 7.0/' \
			-e 's/^\.target .*/.target sm_70/' "$work/raw.ptx"
	} >"$1"
}

assemble() # for each GPU; ptxas' report on the last one stays in $work/report
{
	for arch in sm_75 sm_80 sm_90; do
		"$PTXAS" -arch=$arch -v "$ptx" -o "$work/out.cubin" 2>"$work/report" || {
			cat "$work/report"
			echo "$name: $(basename "$ptx") does not assemble for $arch" >&2
			exit 1
		}
	done
}

check()
{
	if ! command -v "$PTXAS" >/dev/null; then
		echo "$name: skipped, there is no ptxas"
		exit 0
	fi
	if command -v "$NVCC" >/dev/null && grep -qF "nvcc release $(release)" "$ptx"; then
		build "$work/new.ptx"
		cmp "$work/new.ptx" "$ptx" || {
			echo "$name: $(basename "$ptx") is not what its source makes: run make $goal" >&2
			exit 1
		}
	else
		echo "$name: made by another nvcc: not compared with the source"
	fi
	assemble
	judge
}

case ${1:-} in
build)
	build "$work/new.ptx"
	cp "$work/new.ptx" "$ptx"
	;;
check)
	check
	;;
*)
	echo "usage: ptx.sh build | check" >&2
	exit 2
	;;
esac
