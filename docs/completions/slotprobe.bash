# SPDX-License-Identifier: Apache-2.0
# Written by docs/man/generate.py from the command's tables.
# shellcheck shell=bash disable=SC2207
_slotprobe() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} options="" values=""
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "record status ctl report check diff verify selftest export doctor help --help --version" -- "$cur"))
		return
	fi
	case $verb in
	record)
		options="--output --arm --probe --level --paused --label --watch-slot --min-free --max-size --keep-keys --audit --color --help --version -o -h"
		case $prev in
		--level) values="donations launches" ;;
		--color) values="auto always never" ;;
		*) ;;
		esac
		;;
	status)
		options="--watch --format --json --color --help --version -h"
		case $prev in
		--format) values="text json" ;;
		--color) values="auto always never" ;;
		*) ;;
		esac
		;;
	ctl)
		options="--format --json --color --help --version -h"
		case $prev in
		--format) values="text json" ;;
		--color) values="auto always never" ;;
		*) ;;
		esac
		;;
	report)
		options="--format --json --output --color --help --version -o -h"
		case $prev in
		--format) values="text json html" ;;
		--color) values="auto always never" ;;
		*) ;;
		esac
		;;
	check)
		options="--expect --format --json --output --color --help --version -o -h"
		case $prev in
		--format) values="text json html" ;;
		--color) values="auto always never" ;;
		*) ;;
		esac
		;;
	diff)
		options="--expect --align --allow-missing --rtol --noise --third --format --json --output --color --help --version -o -h"
		case $prev in
		--align) values="auto slot key order" ;;
		--format) values="text json html" ;;
		--color) values="auto always never" ;;
		*) ;;
		esac
		;;
	verify)
		options="--expect --format --json --output --color --help --version -o -h"
		case $prev in
		--format) values="text json" ;;
		--color) values="auto always never" ;;
		*) ;;
		esac
		;;
	selftest)
		options="--driver --format --json --color --help --version -h"
		case $prev in
		--driver) values="auto cuda cpu" ;;
		--format) values="text json" ;;
		--color) values="auto always never" ;;
		*) ;;
		esac
		;;
	export)
		options="--format --output --color --help --version -o -h"
		case $prev in
		--format) values="jsonl csv perfetto" ;;
		--color) values="auto always never" ;;
		*) ;;
		esac
		;;
	doctor)
		options="--url --run --concurrency --tokens --format --json --color --help --version -h"
		case $prev in
		--format) values="text json" ;;
		--color) values="auto always never" ;;
		*) ;;
		esac
		;;
	help)
		values="record status ctl report check diff verify selftest export doctor"
		;;
	*) ;;
	esac
	if [[ -n $values ]]; then
		COMPREPLY=($(compgen -W "$values" -- "$cur"))
	elif [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$options" -- "$cur"))
	else
		COMPREPLY=($(compgen -f -- "$cur"))
	fi
}
complete -o filenames -F _slotprobe slotprobe
