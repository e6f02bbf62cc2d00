/* SPDX-License-Identifier: Apache-2.0
 *
 * batch.c: operations on words of memory, on a stream or as a node: writes, and waits for a value.
 */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "cpudriver.h"

#define MAX_OPERATIONS 256

enum { WAIT_GEQ, WAIT_EQ, WAIT_AND, WAIT_NOR };

static bool is_wait(const union cux_mem_op *op)
{
	return op->type == CUX_OP_WAIT_32 || op->type == CUX_OP_WAIT_64;
}

static size_t word(const union cux_mem_op *op)
{
	return op->type == CUX_OP_WAIT_64 || op->type == CUX_OP_WRITE_64 ? 8 : 4;
}

static cu_result check(const union cux_mem_op *op)
{
	switch (op->type) {
	case CUX_OP_WAIT_32:
	case CUX_OP_WAIT_64:
	case CUX_OP_WRITE_32:
	case CUX_OP_WRITE_64:
		if (op->value.flags > (is_wait(op) ? WAIT_NOR : 1u) || op->value.address % word(op) ||
		    !memory_has(op->value.address, word(op)))
			return CU_INVALID_VALUE;
		return CU_SUCCESS;
	case CUX_OP_BARRIER: /* everything is ordered anyway */
		return CU_SUCCESS;
	case 3:
		return cpu_lacks("flushes of remote writes");
	default:
		return CU_INVALID_VALUE;
	}
}

cu_result batch_work(cu_context ctx, const struct cux_batch_params *params, struct work **work)
{
	if (params->n > MAX_OPERATIONS || (params->n && !params->op) || params->flags)
		return CU_INVALID_VALUE;
	for (unsigned i = 0; i < params->n; i++) {
		cu_result result = check(&params->op[i]);

		if (result)
			return result;
	}
	*work = work_new(WORK_BATCH, ctx, params->n * sizeof(*params->op));
	(*work)->batch.n = params->n;
	(*work)->batch.op = (union cux_mem_op *)(void *)(*work)->data;
	if (params->n)
		memcpy((*work)->data, params->op, params->n * sizeof(*params->op));
	return CU_SUCCESS;
}

/* ---- executing ---- */

static bool satisfied(const union cux_mem_op *op)
{
	bool wide = word(op) == 8;
	uint64_t wanted = wide ? op->value.value : (uint32_t)op->value.value;
	uint64_t here = wide ? __atomic_load_n((uint64_t *)(uintptr_t)op->value.address, __ATOMIC_ACQUIRE)
			     : __atomic_load_n((uint32_t *)(uintptr_t)op->value.address, __ATOMIC_ACQUIRE);

	switch (op->value.flags) {
	case WAIT_GEQ: /* cyclic: the sign of the difference */
		return wide ? (int64_t)(here - wanted) >= 0 : (int32_t)(here - wanted) >= 0;
	case WAIT_EQ:
		return here == wanted;
	case WAIT_AND:
		return here & wanted;
	default:
		return ~(here | wanted) & (wide ? ~UINT64_C(0) : UINT32_MAX);
	}
}

static void write_word(const union cux_mem_op *op)
{
	if (word(op) == 8)
		__atomic_store_n((uint64_t *)(uintptr_t)op->value.address, op->value.value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)(uintptr_t)op->value.address, (uint32_t)op->value.value, __ATOMIC_RELEASE);
}

void batch_execute(const struct work *work)
{
	for (unsigned i = 0; i < work->batch.n; i++) {
		const union cux_mem_op *op = &work->batch.op[i];

		if (op->type == CUX_OP_BARRIER)
			continue;
		if (!is_wait(op))
			write_word(op);
		while (is_wait(op) && !satisfied(op) && !atomic_load(&cpu_stopping))
			usleep(50);
	}
}

/* ---- on a stream ---- */

static cu_result on_stream(cu_stream handle, bool per_thread, unsigned n, union cux_mem_op *op, unsigned flags)
{
	struct cux_batch_params params = { NULL, n, op, flags };
	struct work *work;
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (!result)
		result = batch_work(stream->ctx, &params, &work);
	return result ? result : submit(stream, work, NULL);
}

static cu_result one(cu_stream stream, bool per_thread, int type, cu_deviceptr address, uint64_t value, unsigned flags)
{
	union cux_mem_op op = { .value = { .type = type, .address = address, .value = value, .flags = flags } };

	return on_stream(stream, per_thread, 1, &op, 0);
}

cu_result cuStreamBatchMemOp_v2(cu_stream stream, unsigned n, union cux_mem_op *op, unsigned flags)
{
	API(cuStreamBatchMemOp_v2, NEED_CONTEXT);
	return on_stream(stream, false, n, op, flags);
}

cu_result cuStreamBatchMemOp_v2_ptsz(cu_stream stream, unsigned n, union cux_mem_op *op, unsigned flags)
{
	API(cuStreamBatchMemOp_v2_ptsz, NEED_CONTEXT);
	return on_stream(stream, true, n, op, flags);
}

#define ONE(symbol, type, value_type)                                                                                  \
	cu_result symbol(cu_stream stream, cu_deviceptr address, value_type value, unsigned flags)                     \
	{                                                                                                              \
		API(symbol, NEED_CONTEXT);                                                                             \
		return one(stream, false, type, address, value, flags);                                                \
	}                                                                                                              \
	cu_result symbol##_ptsz(cu_stream stream, cu_deviceptr address, value_type value, unsigned flags)              \
	{                                                                                                              \
		API(symbol##_ptsz, NEED_CONTEXT);                                                                      \
		return one(stream, true, type, address, value, flags);                                                 \
	}

ONE(cuStreamWriteValue32_v2, CUX_OP_WRITE_32, uint32_t)
ONE(cuStreamWaitValue32_v2, CUX_OP_WAIT_32, uint32_t)
ONE(cuStreamWriteValue64_v2, CUX_OP_WRITE_64, uint64_t)
ONE(cuStreamWaitValue64_v2, CUX_OP_WAIT_64, uint64_t)

/* ---- as a node ---- */

cu_result cuGraphAddBatchMemOpNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
				   const struct cux_batch_params *params)
{
	API(cuGraphAddBatchMemOpNode, NEED_CONTEXT);
	return node_add(node, graph, deps, NULL, n, CU_NODE_BATCH_MEM_OP, params,
			params && params->ctx ? params->ctx : context_current());
}

cu_result cuGraphBatchMemOpNodeGetParams(cu_graph_node node, struct cux_batch_params *params)
{
	API(cuGraphBatchMemOpNodeGetParams, NEED_INIT);
	if (!params || !is_node(node, CU_NODE_BATCH_MEM_OP))
		return CU_INVALID_VALUE;
	*params = (struct cux_batch_params) { node->work->ctx, node->work->batch.n, node->work->batch.op, 0 };
	return CU_SUCCESS;
}

cu_result cuGraphBatchMemOpNodeSetParams(cu_graph_node node, const struct cux_batch_params *params)
{
	API(cuGraphBatchMemOpNodeSetParams, NEED_INIT);
	return node_set(node, CU_NODE_BATCH_MEM_OP, params);
}
