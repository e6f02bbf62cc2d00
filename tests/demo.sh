#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demonstration: a small hybrid server with a bug that lives only in its captured graphs, recorded with graphs on and off, and
# what slotprobe concludes; then the two controls: the same arm twice, and a run in which nothing was donated.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build}
probe=$build/slotprobe
toy=$build/toyserver/toyserver
runs=$(mktemp -d) || exit 1
trap 'rm -rf "$runs"' EXIT

driver=cuda
if ! "$toy" --check-driver >/dev/null 2>&1; then
	driver=cpu
	LD_LIBRARY_PATH=$build/cpudriver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	export LD_LIBRARY_PATH
fi
echo "driver: $("$toy" --check-driver)"

record() { # run, arm, then what the server is told
	run=$1 arm=$2
	shift 2
	"$probe" record -o "$runs/$run" --arm "$arm" --watch-slot 0 -- "$toy" --arm "$arm" "$@" >"$runs/$run.out" 2>&1 || {
		echo "demo: the toy server failed:" && cat "$runs/$run.out"
		exit 1
	}
}
conclude() { # expected status, then the command
	expected=$1
	shift
	printf '\n$ slotprobe %s\n' "$*" | sed "s|$runs/||g"
	"$probe" "$@" | sed "s|$runs/||g"
	"$probe" "$@" >/dev/null 2>&1
	status=$?
	echo "[exit status $status]"
	[ "$status" -eq "$expected" ] || {
		echo "demo: expected exit status $expected on the $driver driver"
		exit 1
	}
}

record graph-on graph-on --bug stale-index-tail
record graph-off graph-off --bug stale-index-tail
record graph-off-again graph-off --bug stale-index-tail
record no-probe graph-on --bug stale-index-tail --no-donate

conclude 1 diff "$runs/graph-off" "$runs/graph-on"
conclude 0 diff "$runs/graph-off" "$runs/graph-off-again"
conclude 3 diff "$runs/graph-off" "$runs/no-probe"
