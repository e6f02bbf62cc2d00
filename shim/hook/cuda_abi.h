/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_abi.h: the part of the CUDA driver's ABI that slotprobe touches, declared here so that no toolkit is needed to
 * build. Own names throughout, so that tests/unit/abi_check.c can include the toolkit's cuda.h beside it and compare
 * every size, offset and value.
 */
#ifndef CUDA_ABI_H
#define CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int cu_result; /* CUresult */
typedef int cu_device;
typedef uint64_t cu_deviceptr;
typedef struct cu_context_st *cu_context;
typedef struct cu_stream_st *cu_stream;
typedef struct cu_event_st *cu_event;
typedef struct cu_module_st *cu_module;
typedef struct cu_library_st *cu_library;
typedef struct cu_kernel_st *cu_kernel;
typedef struct cu_function_st *cu_function;
typedef struct cu_graph_st *cu_graph;
typedef struct cu_graph_node_st *cu_graph_node;
typedef struct cu_graph_exec_st *cu_graph_exec;
typedef struct cu_green_ctx_st *cu_green_ctx;

enum {
	CU_SUCCESS = 0,
	CU_INVALID_VALUE = 1,
	CU_OUT_OF_MEMORY = 2,
	CU_NOT_INITIALIZED = 3,
	CU_DEINITIALIZED = 4,
	CU_NOT_FOUND = 500,
	CU_NOT_SUPPORTED = 801,
	CU_CAPTURE_UNSUPPORTED = 900,
	CU_CAPTURE_INVALIDATED = 901,
	CU_CAPTURE_IMPLICIT = 906,
	CU_CAPTURE_WRONG_THREAD = 908,
};

/* The two legacy handles and the per-thread one. */
#define CU_LEGACY     ((cu_stream)(uintptr_t)1)
#define CU_PER_THREAD ((cu_stream)(uintptr_t)2)

enum cu_capture_status { CU_CAPTURE_NONE, CU_CAPTURE_ACTIVE, CU_CAPTURE_BROKEN };
enum cu_capture_mode { CU_MODE_GLOBAL, CU_MODE_THREAD_LOCAL, CU_MODE_RELAXED };

enum cu_node_type {
	CU_NODE_KERNEL = 0,
	CU_NODE_MEMCPY = 1,
	CU_NODE_MEMSET = 2,
	CU_NODE_HOST = 3,
	CU_NODE_GRAPH = 4,
	CU_NODE_EMPTY = 5,
	CU_NODE_WAIT_EVENT = 6,
	CU_NODE_EVENT_RECORD = 7,
	CU_NODE_SEMAS_SIGNAL = 8,
	CU_NODE_SEMAS_WAIT = 9,
	CU_NODE_MEM_ALLOC = 10,
	CU_NODE_MEM_FREE = 11,
	CU_NODE_BATCH_MEM_OP = 12,
	CU_NODE_CONDITIONAL = 13,
};

struct cu_kernel_params_v1 { /* CUDA_KERNEL_NODE_PARAMS_v1 */
	cu_function func;
	unsigned grid[3], block[3], shared_bytes;
	void **params;
	void **extra;
};

struct cu_kernel_params { /* CUDA_KERNEL_NODE_PARAMS_v2 */
	cu_function func;
	unsigned grid[3], block[3], shared_bytes;
	void **params;
	void **extra;
	cu_kernel kern;
	cu_context ctx;
};

/* `extra` of a launch: {1, buffer, 2, &size, 0} */
#define CU_EXTRA_END    ((void *)0)
#define CU_EXTRA_BUFFER ((void *)1)
#define CU_EXTRA_SIZE   ((void *)2)

struct cu_memcpy_params { /* CUDA_MEMCPY3D */
	size_t src_x, src_y, src_z, src_lod;
	unsigned src_type; /* 1 host, 2 device, 3 array, 4 unified */
	const void *src_host;
	cu_deviceptr src_device;
	void *src_array, *reserved0;
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_lod;
	unsigned dst_type;
	void *dst_host;
	cu_deviceptr dst_device;
	void *dst_array, *reserved1;
	size_t dst_pitch, dst_height;
	size_t width, height, depth;
};

struct cu_memset_params { /* CUDA_MEMSET_NODE_PARAMS_v1 */
	cu_deviceptr dst;
	size_t pitch;
	unsigned value, element_bytes;
	size_t width, height;
};

struct cu_instantiate_params { /* CUDA_GRAPH_INSTANTIATE_PARAMS */
	uint64_t flags;
	cu_stream upload_stream;
	cu_graph_node error_node;
	int result;
};

struct cu_node_params { /* CUgraphNodeParams */
	int type;       /* enum cu_node_type */
	int reserved0[3];
	union {
		long long reserved1[29];
		struct cu_kernel_params kernel;
		struct {
			int flags, reserved;
			cu_context ctx;
			struct cu_memcpy_params params;
		} copy;
		struct cu_memset_params memset; /* a context follows, which nobody here reads */
		cu_graph graph;
	};
	long long reserved2;
};

struct cu_update_result { /* CUgraphExecUpdateResultInfo */
	int result;
	cu_graph_node error_node, error_from_node;
};

enum {
	CU_HOSTREGISTER_PORTABLE = 1,
	CU_HOSTREGISTER_DEVICEMAP = 2,
	CU_STREAM_NON_BLOCKING = 1,
	CU_ATTRIBUTE_MULTIPROCESSORS = 16,
	CU_ATTRIBUTE_CAPABILITY_MAJOR = 75,
	CU_ATTRIBUTE_CAPABILITY_MINOR = 76,
};

struct cu_uuid {
	unsigned char bytes[16];
};

#endif
