/* SPDX-License-Identifier: Apache-2.0
 *
 * entry.c: makes the functions of each row of the entry table, and the exported symbols.
 */
#include "hook.h"

#define UNPACK(...) __VA_ARGS__

/* The exported name stands in the program's symbol scope and so goes on to the next definition there, which may be
 * another preload's. The substitute stands for one address of libcuda and goes to that. They are static: what we hand
 * out must be ours even where somebody in front of us exports the same name. The first call of each, which has to look
 * for its target, is a function of its own, so that the others carry nothing of it. */
#define DEFINE(symbol, wrapper, args, ...)                                                                             \
	__attribute__((noinline, cold)) static cu_result first_substitute_##symbol(__VA_ARGS__)                        \
	{                                                                                                              \
		cu_result (*real)(__VA_ARGS__) = shim_find_real(SHIM_ENTRY_##symbol);                                  \
		return real ? wrapper(real, UNPACK args) : shim_absent();                                              \
	}                                                                                                              \
	__attribute__((noinline, cold)) static cu_result first_exported_##symbol(__VA_ARGS__)                          \
	{                                                                                                              \
		cu_result (*real)(__VA_ARGS__) = shim_find_next(SHIM_ENTRY_##symbol);                                  \
		return real ? wrapper(real, UNPACK args) : shim_absent();                                              \
	}                                                                                                              \
	__attribute__((used)) static cu_result substitute_##symbol(__VA_ARGS__)                                        \
	{                                                                                                              \
		cu_result (*real)(__VA_ARGS__) =                                                                       \
			__atomic_load_n(&shim_target[SHIM_ENTRY_##symbol].real, __ATOMIC_RELAXED);                     \
		return shim_unlikely(!real) ? first_substitute_##symbol args : wrapper(real, UNPACK args);             \
	}                                                                                                              \
	__attribute__((used)) static cu_result exported_##symbol(__VA_ARGS__)                                          \
	{                                                                                                              \
		cu_result (*real)(__VA_ARGS__) =                                                                       \
			__atomic_load_n(&shim_target[SHIM_ENTRY_##symbol].next, __ATOMIC_RELAXED);                     \
		return shim_unlikely(!real) ? first_exported_##symbol args : wrapper(real, UNPACK args);               \
	}                                                                                                              \
	SHIM_EXPORT cu_result symbol(__VA_ARGS__) __attribute__((alias("exported_" #symbol)));
SHIM_ENTRIES(DEFINE)

const struct shim_entry shim_entry[SHIM_ENTRY_COUNT] = {
#define ROW(name, wrap, args, ...)                                                                                     \
	[SHIM_ENTRY_##name] = { .symbol = #name,                                                                       \
				.substitute = (void *)substitute_##name,                                               \
				.exported = (void *)exported_##name,                                                   \
				.wrapper = (void *)wrap },
	SHIM_ENTRIES(ROW)
};
