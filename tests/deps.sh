#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes sure that what `make demo` or `make check` needs is installed: installs it where it can (root and apt-get), otherwise
# prints the one command to type and fails. Usage: deps.sh demo|check|fuzz|aarch64 [SYSROOT]
#
# For aarch64 the libraries that the unit tests link with are fetched for that machine and unpacked into SYSROOT.
set -u

demo="gcc make libc6-dev liblz4-dev libjansson-dev libunwind8 libcurl4"
check="$demo g++ libcmocka-dev python3 python3-pytest python3-jsonschema clang clang-format clang-tidy cppcheck shellcheck
	pyflakes3 binutils valgrind strace python3-pip python3-html5lib python3-selenium chromium chromium-driver"
fuzz="$check libclang-rt-dev"
aarch64="$check gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
sysroot="liblz4-dev liblz4-1 libjansson-dev libjansson4 libcmocka-dev libcmocka0 libunwind8 liblzma5"

mode=${1:-}
sysroot_folder=${2:-}
case "$mode" in
demo) wanted=$demo ;;
check) wanted=$check ;;
fuzz) wanted=$fuzz ;;
aarch64) wanted=$aarch64 ;;
*)
	echo "usage: deps.sh demo|check|fuzz|aarch64 [SYSROOT]" >&2
	exit 2
	;;
esac

if ! command -v dpkg-query >/dev/null 2>&1; then
	echo "deps.sh: not a Debian system: install the equivalents of: $wanted" >&2
	exit 0
fi
missing=
for package in $wanted; do
	state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)
	[ "$state" = installed ] || missing="$missing $package"
done

# Libraries from PyPI go into a folder of the build: no environment is touched. A list that was changed makes it anew.
pytools() {
	list=$(dirname "$0")/requirements.txt into=$(dirname "$0")/../build/pytools
	cmp -s "$list" "$into/requirements.txt" && return 0
	echo "slotprobe: fetching $(grep -c == "$list") packages from PyPI into build/pytools" >&2
	rm -rf "$into"
	python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --no-deps --target "$into" -r "$list" >&2 ||
		return 1
	cp "$list" "$into/requirements.txt"
}

# Another machine's packages: apt is told of its architecture for this once, with lists of its own, and only unpacks them.
fetch_sysroot() {
	[ -e "$1/complete" ] && return 0
	mkdir -p "$1/apt/lists/partial" "$1/apt/archives/partial" || return 1
	ask="apt-get -q -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 -o Dir::State::lists=$1/apt/lists
		-o Dir::Cache=$1/apt -o APT::Sandbox::User=root"
	# shellcheck disable=SC2046,SC2086 # lists of words
	(
		cd "$1" || exit 1
		$ask update || exit 1
		$ask download $(printf '%s:arm64 ' $sysroot) || exit 1
		for package in *.deb; do
			dpkg-deb -x "$package" . || exit 1
		done
		rm -rf apt ./*.deb
		touch complete
	) >"$1/log" 2>&1 && return 0
	tail -n 5 "$1/log" >&2
	echo "slotprobe: could not fetch for arm64: $sysroot" >&2
	return 1
}

finish() {
	[ "$mode" = demo ] && exit 0
	pytools || {
		echo "slotprobe: could not fetch what tests/requirements.txt lists" >&2
		exit 1
	}
	case "$mode" in
	check) # the release of SGLang whose files its adapter's tests run, with PyTorch: 1 GB, once a machine
		/usr/bin/python3 -B "$(dirname "$0")/sglang/prepare.py" >/dev/null || exit 1
		;;
	aarch64) fetch_sysroot "$(realpath -m "${sysroot_folder:?deps.sh aarch64 needs a folder}")" || exit 1 ;;
	esac
	exit 0
}

[ -z "$missing" ] && finish
if [ "$(id -u)" -ne 0 ]; then
	echo "slotprobe: packages are missing; type: sudo apt-get install -y$missing" >&2
	exit 1
fi
echo "slotprobe: installing$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # a list of package names
if DEBIAN_FRONTEND=noninteractive apt-get install -y -q $missing >"$log" 2>&1 ||
	{ apt-get update -q >>"$log" 2>&1 &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q $missing >>"$log" 2>&1; }; then
	finish
fi
tail -n 5 "$log" >&2
echo "slotprobe: could not install; type: apt-get update && apt-get install -y$missing" >&2
exit 1
