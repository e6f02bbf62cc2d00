/* SPDX-License-Identifier: Apache-2.0
 *
 * abi.h: the part of the driver's ABI that the CPU driver implements beyond what slotprobe itself touches
 * (shim/hook/cuda_abi.h), under the prefix cux_, so that the two never collide. tests/unit/cpudriver/test_abi.c compares
 * it with the toolkit's cuda.h where there is one.
 */
#ifndef CPUDRIVER_ABI_H
#define CPUDRIVER_ABI_H

#include "shim/hook/cuda_abi.h"

enum {
	CUX_NO_DEVICE = 100,
	CUX_INVALID_DEVICE = 101,
	CUX_INVALID_IMAGE = 200,
	CUX_INVALID_CONTEXT = 201,
	CUX_NO_BINARY_FOR_GPU = 209,
	CUX_INVALID_PTX = 218,
	CUX_INVALID_HANDLE = 400,
	CUX_ILLEGAL_STATE = 401,
	CUX_LOSSY_QUERY = 402,
	CUX_NOT_READY = 600,
	CUX_ILLEGAL_ADDRESS = 700,
	CUX_LAUNCH_OUT_OF_RESOURCES = 701,
	CUX_CONTEXT_IS_DESTROYED = 709,
	CUX_HOST_ALREADY_REGISTERED = 712,
	CUX_HOST_NOT_REGISTERED = 713,
	CUX_NOT_PERMITTED = 800,
	CUX_CAPTURE_MERGE = 902,
	CUX_CAPTURE_UNMATCHED = 903,
	CUX_CAPTURE_UNJOINED = 904,
	CUX_CAPTURE_ISOLATION = 905,
	CUX_CAPTURED_EVENT = 907,
	CUX_CAPTURE_WRONG_THREAD = 908,
	CUX_UPDATE_FAILURE = 910,
	CUX_INVALID_CLUSTER_SIZE = 912,
};

/* CUgraphExecUpdateResult */
enum cux_update_code {
	CUX_UPDATE_SUCCESS,
	CUX_UPDATE_ERROR,
	CUX_UPDATE_TOPOLOGY_CHANGED,
	CUX_UPDATE_TYPE_CHANGED,
	CUX_UPDATE_FUNCTION_CHANGED,
	CUX_UPDATE_PARAMETERS_CHANGED,
	CUX_UPDATE_NOT_SUPPORTED,
	CUX_UPDATE_UNSUPPORTED_FUNCTION,
};

enum { CUX_MEMORY_HOST = 1, CUX_MEMORY_DEVICE = 2, CUX_MEMORY_ARRAY = 3, CUX_MEMORY_UNIFIED = 4 };

/* flags and answers of cuGetProcAddress */
enum { CUX_PROC_LEGACY = 1, CUX_PROC_PER_THREAD = 2 };
enum { CUX_PROC_FOUND, CUX_PROC_UNKNOWN, CUX_PROC_TOO_NEW };

enum { CUX_EVENT_DISABLE_TIMING = 2 };
enum { CUX_EVENT_EXTERNAL = 1 };
enum { CUX_CAPTURE_DEPENDENCIES_ADD, CUX_CAPTURE_DEPENDENCIES_SET };

typedef void (*cux_host_fn)(void *data);
typedef struct cu_resource_desc_st *cux_resource_desc;
typedef struct cu_mem_pool_st *cux_mem_pool;
typedef uint64_t cux_mem_handle; /* CUmemGenericAllocationHandle */

struct cux_edge_data { /* CUgraphEdgeData */
	unsigned char from_port, to_port, type, reserved[5];
};

enum cux_launch_attribute_id {
	CUX_ATTR_IGNORE = 0,
	CUX_ATTR_ACCESS_POLICY = 1,
	CUX_ATTR_COOPERATIVE = 2,
	CUX_ATTR_SYNC_POLICY = 3,
	CUX_ATTR_CLUSTER = 4,
	CUX_ATTR_CLUSTER_SCHEDULING = 5,
	CUX_ATTR_PROGRAMMATIC = 6,
	CUX_ATTR_PROGRAMMATIC_EVENT = 7,
	CUX_ATTR_PRIORITY = 8,
	CUX_ATTR_DOMAIN_MAP = 9,
	CUX_ATTR_DOMAIN = 10,
	CUX_ATTR_PREFERRED_CLUSTER = 11,
	CUX_ATTR_COMPLETION_EVENT = 12,
	CUX_ATTR_DEVICE_UPDATABLE = 13,
	CUX_ATTR_CARVEOUT = 14,
};

union cux_attribute_value { /* CUlaunchAttributeValue */
	unsigned char bytes[64];
	int number;
	unsigned cluster[3];
};

struct cux_launch_attribute { /* CUlaunchAttribute */
	int id;
	unsigned char pad[4];
	union cux_attribute_value value;
};

struct cux_launch_config { /* CUlaunchConfig */
	unsigned grid[3], block[3], shared_bytes;
	cu_stream stream;
	struct cux_launch_attribute *attributes;
	unsigned n_attributes;
};

struct cux_host_params { /* CUDA_HOST_NODE_PARAMS */
	cux_host_fn fn;
	void *data;
};

struct cux_memcpy_node_params { /* CUDA_MEMCPY_NODE_PARAMS */
	int flags, reserved;
	cu_context ctx;
	struct cu_memcpy_params copy;
};

struct cux_memset_params_v2 { /* CUDA_MEMSET_NODE_PARAMS_v2 */
	struct cu_memset_params set;
	cu_context ctx;
};

struct cux_mem_location {
	int type, id;
};

struct cux_mem_access { /* CUmemAccessDesc */
	struct cux_mem_location location;
	int flags; /* 1 read, 3 read and write */
};

struct cux_pool_props { /* CUmemPoolProps */
	int alloc_type, handle_types;
	struct cux_mem_location location;
	void *win32;
	size_t max_bytes;
	unsigned short usage;
	unsigned char reserved[54];
};

struct cux_alloc_params { /* CUDA_MEM_ALLOC_NODE_PARAMS */
	struct cux_pool_props pool;
	const struct cux_mem_access *access;
	size_t n_access, bytes;
	cu_deviceptr ptr;
};

enum cux_mem_op_type {
	CUX_OP_WAIT_32 = 1,
	CUX_OP_WRITE_32 = 2,
	CUX_OP_WAIT_64 = 4,
	CUX_OP_WRITE_64 = 5,
	CUX_OP_BARRIER = 6
};

union cux_mem_op { /* CUstreamBatchMemOpParams */
	int type;
	struct {
		int type;
		cu_deviceptr address;
		uint64_t value; /* the 32-bit forms use its lower half */
		unsigned flags; /* of a wait: 0 >=, 1 ==, 2 &, 3 nor */
		cu_deviceptr alias;
	} value;
	uint64_t pad[6];
};

struct cux_batch_params { /* CUDA_BATCH_MEM_OP_NODE_PARAMS */
	cu_context ctx;
	unsigned n;
	union cux_mem_op *op;
	unsigned flags;
};

enum cux_conditional_type { CUX_COND_IF, CUX_COND_WHILE, CUX_COND_SWITCH };
enum { CUX_COND_ASSIGN_DEFAULT = 1 };

struct cux_conditional_params { /* CUDA_CONDITIONAL_NODE_PARAMS */
	uint64_t handle;
	int type;
	unsigned n_bodies;
	cu_graph *body; /* written by the driver */
	cu_context ctx;
};

struct cux_node_params { /* CUgraphNodeParams */
	int type;
	int reserved0[3];
	union {
		long long reserved1[29];
		struct cu_kernel_params kernel;
		struct cux_memcpy_node_params memcpy;
		struct cux_memset_params_v2 memset;
		struct cux_host_params host;
		cu_graph child;
		cu_event event;
		struct cux_alloc_params alloc;
		cu_deviceptr free;
		struct cux_batch_params batch;
		struct cux_conditional_params conditional;
	};
	long long reserved2;
};

struct cux_ctx_create_params { /* CUctxCreateParams */
	void *affinity;
	int n_affinity;
	void *cig;
};

struct cux_mem_prop { /* CUmemAllocationProp */
	int type, handle_types;
	struct cux_mem_location location;
	void *win32;
	unsigned char compression, rdma;
	unsigned short usage;
	unsigned char reserved[4];
};

struct cux_dev_resource { /* CUdevResource */
	int type;         /* 1: multiprocessors */
	unsigned char internal[92];
	union {
		struct {
			unsigned count, min_partition, alignment;
		} sm;
		unsigned char oversize[48];
	};
};

#endif
