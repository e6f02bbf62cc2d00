/* SPDX-License-Identifier: Apache-2.0
 *
 * missing.c: the calls that there is no code for: each says so, on stderr and to its caller.
 */
#include "cpudriver.h"

static cu_result missing(enum cpu_call call, const char *symbol)
{
	struct api_scope scope = api_enter(call, NEED_NOTHING);

	cpu_say("%s is not implemented", symbol);
	api_leave(&scope);
	return CU_NOT_SUPPORTED;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define MISSING(symbol, name, version, params)                                                                         \
	cu_result symbol params                                                                                        \
	{                                                                                                              \
		return missing(CALL_##symbol, #symbol);                                                                \
	}
#define MISSING_PAIR(symbol, suffix, name, version, params)                                                            \
	MISSING(symbol, name, version, params) MISSING(symbol##suffix, name, version, params)
CPU_CALLS_MISSING(MISSING, MISSING_PAIR)
