/* SPDX-License-Identifier: Apache-2.0
 *
 * missing.h: what the driver of CUDA 13.0 exports and the CPU driver has no code for. These rows exist, for dlsym and
 * cuGetProcAddress alike, so that a program that comes to need one is told which, and not left with a null pointer.
 * Giving one code means moving its row to api.h. Most are declared without parameters: their callers know them, and
 * nothing here reads them.
 */
#ifndef CPUDRIVER_MISSING_H
#define CPUDRIVER_MISSING_H

/* clang-format off */
#define CPU_CALLS_MISSING(X, P) \
	X(cuArray3DCreate, cuArray3DCreate, 2000, (void)) \
	X(cuArray3DCreate_v2, cuArray3DCreate, 3020, (void)) \
	X(cuArray3DGetDescriptor, cuArray3DGetDescriptor, 2000, (void)) \
	X(cuArray3DGetDescriptor_v2, cuArray3DGetDescriptor, 3020, (void)) \
	X(cuArrayCreate, cuArrayCreate, 2000, (void)) \
	X(cuArrayCreate_v2, cuArrayCreate, 3020, (void)) \
	X(cuArrayDestroy, cuArrayDestroy, 2000, (void)) \
	X(cuArrayGetDescriptor, cuArrayGetDescriptor, 2000, (void)) \
	X(cuArrayGetDescriptor_v2, cuArrayGetDescriptor, 3020, (void)) \
	X(cuArrayGetMemoryRequirements, cuArrayGetMemoryRequirements, 11060, (void)) \
	X(cuArrayGetPlane, cuArrayGetPlane, 11020, (void)) \
	X(cuArrayGetSparseProperties, cuArrayGetSparseProperties, 11010, (void)) \
	X(cuCheckpointProcessCheckpoint, cuCheckpointProcessCheckpoint, 12080, (void)) \
	X(cuCheckpointProcessGetRestoreThreadId, cuCheckpointProcessGetRestoreThreadId, 12080, (void)) \
	X(cuCheckpointProcessGetState, cuCheckpointProcessGetState, 12080, (void)) \
	X(cuCheckpointProcessLock, cuCheckpointProcessLock, 12080, (void)) \
	X(cuCheckpointProcessRestore, cuCheckpointProcessRestore, 12080, (void)) \
	X(cuCheckpointProcessUnlock, cuCheckpointProcessUnlock, 12080, (void)) \
	X(cuCoredumpGetAttribute, cuCoredumpGetAttribute, 12010, (void)) \
	X(cuCoredumpGetAttributeGlobal, cuCoredumpGetAttributeGlobal, 12010, (void)) \
	X(cuCoredumpSetAttribute, cuCoredumpSetAttribute, 12010, (void)) \
	X(cuCoredumpSetAttributeGlobal, cuCoredumpSetAttributeGlobal, 12010, (void)) \
	X(cuCtxAttach, cuCtxAttach, 2000, (void)) \
	X(cuCtxDetach, cuCtxDetach, 2000, (void)) \
	X(cuCtxDisablePeerAccess, cuCtxDisablePeerAccess, 4000, (void)) \
	X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000, (void)) \
	X(cuCtxGetCacheConfig, cuCtxGetCacheConfig, 3020, (void)) \
	X(cuCtxGetDevResource, cuCtxGetDevResource, 12040, (void)) \
	X(cuCtxGetExecAffinity, cuCtxGetExecAffinity, 11040, (void)) \
	X(cuCtxGetLimit, cuCtxGetLimit, 3010, (void)) \
	X(cuCtxGetSharedMemConfig, cuCtxGetSharedMemConfig, 4020, (void)) \
	X(cuCtxRecordEvent, cuCtxRecordEvent, 12050, (void)) \
	X(cuCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000, (void)) \
	X(cuCtxSetCacheConfig, cuCtxSetCacheConfig, 3020, (void)) \
	X(cuCtxSetFlags, cuCtxSetFlags, 12010, (void)) \
	X(cuCtxSetLimit, cuCtxSetLimit, 3010, (void)) \
	X(cuCtxSetSharedMemConfig, cuCtxSetSharedMemConfig, 4020, (void)) \
	X(cuCtxWaitEvent, cuCtxWaitEvent, 12050, (void)) \
	X(cuDestroyExternalMemory, cuDestroyExternalMemory, 10000, (void)) \
	X(cuDestroyExternalSemaphore, cuDestroyExternalSemaphore, 10000, (void)) \
	X(cuDevSmResourceSplitByCount, cuDevSmResourceSplitByCount, 12040, (void)) \
	X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000, (void)) \
	X(cuDeviceComputeCapability, cuDeviceComputeCapability, 2000, (void)) \
	X(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, 4010, (void)) \
	X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, (void)) \
	X(cuDeviceGetExecAffinitySupport, cuDeviceGetExecAffinitySupport, 11040, (void)) \
	X(cuDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute, 11040, (void)) \
	X(cuDeviceGetHostAtomicCapabilities, cuDeviceGetHostAtomicCapabilities, 13000, (void)) \
	X(cuDeviceGetLuid, cuDeviceGetLuid, 10000, (void)) \
	X(cuDeviceGetMemPool, cuDeviceGetMemPool, 11020, (void)) \
	X(cuDeviceGetNvSciSyncAttributes, cuDeviceGetNvSciSyncAttributes, 10020, (void)) \
	X(cuDeviceGetP2PAtomicCapabilities, cuDeviceGetP2PAtomicCapabilities, 13000, (void)) \
	X(cuDeviceGetP2PAttribute, cuDeviceGetP2PAttribute, 8000, (void)) \
	X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, (void)) \
	X(cuDeviceGetProperties, cuDeviceGetProperties, 2000, (void)) \
	X(cuDeviceGetTexture1DLinearMaxWidth, cuDeviceGetTexture1DLinearMaxWidth, 11010, (void)) \
	X(cuDeviceRegisterAsyncNotification, cuDeviceRegisterAsyncNotification, 12040, (void)) \
	X(cuDeviceSetGraphMemAttribute, cuDeviceSetGraphMemAttribute, 11040, (void)) \
	X(cuDeviceSetMemPool, cuDeviceSetMemPool, 11020, (void)) \
	X(cuDeviceTotalMem, cuDeviceTotalMem, 2000, (void)) \
	X(cuDeviceUnregisterAsyncNotification, cuDeviceUnregisterAsyncNotification, 12040, (void)) \
	X(cuExternalMemoryGetMappedBuffer, cuExternalMemoryGetMappedBuffer, 10000, (void)) \
	X(cuExternalMemoryGetMappedMipmappedArray, cuExternalMemoryGetMappedMipmappedArray, 10000, (void)) \
	X(cuFlushGPUDirectRDMAWrites, cuFlushGPUDirectRDMAWrites, 11030, (void)) \
	X(cuFuncSetBlockShape, cuFuncSetBlockShape, 2000, (void)) \
	X(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 3000, (void)) \
	X(cuFuncSetSharedMemConfig, cuFuncSetSharedMemConfig, 4020, (void)) \
	X(cuFuncSetSharedSize, cuFuncSetSharedSize, 2000, (void)) \
	X(cuGetExportTable, cuGetExportTable, 3000, (void)) \
	X(cuGraphAddExternalSemaphoresSignalNode, cuGraphAddExternalSemaphoresSignalNode, 11020, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, const void *params)) \
	X(cuGraphAddExternalSemaphoresWaitNode, cuGraphAddExternalSemaphoresWaitNode, 11020, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, const void *params)) \
	X(cuGraphDebugDotPrint, cuGraphDebugDotPrint, 11030, (void)) \
	X(cuGraphExecExternalSemaphoresSignalNodeSetParams, cuGraphExecExternalSemaphoresSignalNodeSetParams, 11020, (cu_graph_exec exec, cu_graph_node node, const void *params)) \
	X(cuGraphExecExternalSemaphoresWaitNodeSetParams, cuGraphExecExternalSemaphoresWaitNodeSetParams, 11020, (cu_graph_exec exec, cu_graph_node node, const void *params)) \
	X(cuGraphExternalSemaphoresSignalNodeGetParams, cuGraphExternalSemaphoresSignalNodeGetParams, 11020, (void)) \
	X(cuGraphExternalSemaphoresSignalNodeSetParams, cuGraphExternalSemaphoresSignalNodeSetParams, 11020, (void)) \
	X(cuGraphExternalSemaphoresWaitNodeGetParams, cuGraphExternalSemaphoresWaitNodeGetParams, 11020, (void)) \
	X(cuGraphExternalSemaphoresWaitNodeSetParams, cuGraphExternalSemaphoresWaitNodeSetParams, 11020, (void)) \
	X(cuGraphReleaseUserObject, cuGraphReleaseUserObject, 11030, (void)) \
	X(cuGraphRetainUserObject, cuGraphRetainUserObject, 11030, (void)) \
	P(cuGraphicsMapResources, _ptsz, cuGraphicsMapResources, 3000, (void)) \
	X(cuGraphicsResourceGetMappedMipmappedArray, cuGraphicsResourceGetMappedMipmappedArray, 5000, (void)) \
	X(cuGraphicsResourceGetMappedPointer, cuGraphicsResourceGetMappedPointer, 3000, (void)) \
	X(cuGraphicsResourceGetMappedPointer_v2, cuGraphicsResourceGetMappedPointer, 3020, (void)) \
	X(cuGraphicsResourceSetMapFlags, cuGraphicsResourceSetMapFlags, 3000, (void)) \
	X(cuGraphicsResourceSetMapFlags_v2, cuGraphicsResourceSetMapFlags, 6050, (void)) \
	X(cuGraphicsSubResourceGetMappedArray, cuGraphicsSubResourceGetMappedArray, 3000, (void)) \
	P(cuGraphicsUnmapResources, _ptsz, cuGraphicsUnmapResources, 3000, (void)) \
	X(cuGraphicsUnregisterResource, cuGraphicsUnregisterResource, 3000, (void)) \
	X(cuGreenCtxGetDevResource, cuGreenCtxGetDevResource, 12040, (void)) \
	X(cuGreenCtxGetId, cuGreenCtxGetId, 12090, (void)) \
	X(cuGreenCtxRecordEvent, cuGreenCtxRecordEvent, 12040, (void)) \
	X(cuGreenCtxWaitEvent, cuGreenCtxWaitEvent, 12040, (void)) \
	X(cuImportExternalMemory, cuImportExternalMemory, 10000, (void)) \
	X(cuImportExternalSemaphore, cuImportExternalSemaphore, 10000, (void)) \
	X(cuIpcGetEventHandle, cuIpcGetEventHandle, 4010, (void)) \
	X(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010, (void)) \
	X(cuIpcOpenEventHandle, cuIpcOpenEventHandle, 4010, (void)) \
	X(cuIpcOpenMemHandle, cuIpcOpenMemHandle, 4010, (void)) \
	X(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle, 11000, (void)) \
	X(cuKernelGetAttribute, cuKernelGetAttribute, 12000, (void)) \
	X(cuKernelGetLibrary, cuKernelGetLibrary, 12050, (void)) \
	X(cuKernelSetAttribute, cuKernelSetAttribute, 12000, (void)) \
	X(cuKernelSetCacheConfig, cuKernelSetCacheConfig, 12000, (void)) \
	X(cuLaunch, cuLaunch, 2000, (void)) \
	P(cuLaunchCooperativeKernel, _ptsz, cuLaunchCooperativeKernel, 9000, (void)) \
	X(cuLaunchCooperativeKernelMultiDevice, cuLaunchCooperativeKernelMultiDevice, 9000, (void)) \
	X(cuLaunchGrid, cuLaunchGrid, 2000, (void)) \
	X(cuLaunchGridAsync, cuLaunchGridAsync, 2000, (void)) \
	X(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040, (void)) \
	X(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000, (void)) \
	X(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 12040, (void)) \
	X(cuLibraryGetManaged, cuLibraryGetManaged, 12000, (void)) \
	X(cuLibraryGetModule, cuLibraryGetModule, 12000, (void)) \
	X(cuLibraryGetUnifiedFunction, cuLibraryGetUnifiedFunction, 12000, (void)) \
	X(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, (void)) \
	X(cuLinkAddData, cuLinkAddData, 5050, (void)) \
	X(cuLinkAddData_v2, cuLinkAddData, 6050, (void)) \
	X(cuLinkAddFile, cuLinkAddFile, 5050, (void)) \
	X(cuLinkAddFile_v2, cuLinkAddFile, 6050, (void)) \
	X(cuLinkComplete, cuLinkComplete, 5050, (void)) \
	X(cuLinkCreate, cuLinkCreate, 5050, (void)) \
	X(cuLinkCreate_v2, cuLinkCreate, 6050, (void)) \
	X(cuLinkDestroy, cuLinkDestroy, 5050, (void)) \
	X(cuLogsCurrent, cuLogsCurrent, 12090, (void)) \
	X(cuLogsDumpToFile, cuLogsDumpToFile, 12090, (void)) \
	X(cuLogsDumpToMemory, cuLogsDumpToMemory, 12090, (void)) \
	X(cuLogsRegisterCallback, cuLogsRegisterCallback, 12090, (void)) \
	X(cuLogsUnregisterCallback, cuLogsUnregisterCallback, 12090, (void)) \
	X(cuMemAdvise, cuMemAdvise, 8000, (void)) \
	X(cuMemAdvise_v2, cuMemAdvise, 12020, (void)) \
	P(cuMemAllocFromPoolAsync, _ptsz, cuMemAllocFromPoolAsync, 11020, (void)) \
	X(cuMemAllocHost, cuMemAllocHost, 2000, (void)) \
	X(cuMemAllocManaged, cuMemAllocManaged, 6000, (void)) \
	X(cuMemAllocPitch, cuMemAllocPitch, 2000, (void)) \
	X(cuMemAllocPitch_v2, cuMemAllocPitch, 3020, (void)) \
	P(cuMemBatchDecompressAsync, _ptsz, cuMemBatchDecompressAsync, 12060, (void)) \
	P(cuMemDiscardAndPrefetchBatchAsync, _ptsz, cuMemDiscardAndPrefetchBatchAsync, 13000, (void)) \
	P(cuMemDiscardBatchAsync, _ptsz, cuMemDiscardBatchAsync, 13000, (void)) \
	X(cuMemExportToShareableHandle, cuMemExportToShareableHandle, 10020, (void)) \
	X(cuMemGetAccess, cuMemGetAccess, 10020, (void)) \
	X(cuMemGetAddressRange, cuMemGetAddressRange, 2000, (void)) \
	X(cuMemGetAllocationPropertiesFromHandle, cuMemGetAllocationPropertiesFromHandle, 10020, (void)) \
	X(cuMemGetDefaultMemPool, cuMemGetDefaultMemPool, 13000, (void)) \
	X(cuMemGetHandleForAddressRange, cuMemGetHandleForAddressRange, 11070, (void)) \
	X(cuMemGetInfo, cuMemGetInfo, 2000, (void)) \
	X(cuMemGetMemPool, cuMemGetMemPool, 13000, (void)) \
	X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer, 2020, (void)) \
	X(cuMemHostGetFlags, cuMemHostGetFlags, 2030, (void)) \
	X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020, (void)) \
	P(cuMemMapArrayAsync, _ptsz, cuMemMapArrayAsync, 11010, (void)) \
	X(cuMemPoolCreate, cuMemPoolCreate, 11020, (void)) \
	X(cuMemPoolDestroy, cuMemPoolDestroy, 11020, (void)) \
	X(cuMemPoolExportPointer, cuMemPoolExportPointer, 11020, (void)) \
	X(cuMemPoolExportToShareableHandle, cuMemPoolExportToShareableHandle, 11020, (void)) \
	X(cuMemPoolGetAccess, cuMemPoolGetAccess, 11020, (void)) \
	X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020, (void)) \
	X(cuMemPoolImportFromShareableHandle, cuMemPoolImportFromShareableHandle, 11020, (void)) \
	X(cuMemPoolImportPointer, cuMemPoolImportPointer, 11020, (void)) \
	X(cuMemPoolSetAccess, cuMemPoolSetAccess, 11020, (void)) \
	X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020, (void)) \
	X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, (void)) \
	P(cuMemPrefetchAsync, _ptsz, cuMemPrefetchAsync, 8000, (void)) \
	P(cuMemPrefetchAsync_v2, _ptsz, cuMemPrefetchAsync, 12020, (void)) \
	P(cuMemPrefetchBatchAsync, _ptsz, cuMemPrefetchBatchAsync, 13000, (void)) \
	X(cuMemRangeGetAttribute, cuMemRangeGetAttribute, 8000, (void)) \
	X(cuMemRangeGetAttributes, cuMemRangeGetAttributes, 8000, (void)) \
	X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000, (void)) \
	X(cuMemSetMemPool, cuMemSetMemPool, 13000, (void)) \
	X(cuMemcpy2D, cuMemcpy2D, 2000, (void)) \
	X(cuMemcpy2DAsync, cuMemcpy2DAsync, 2000, (void)) \
	P(cuMemcpy2DAsync_v2, _ptsz, cuMemcpy2DAsync, 3020, (void)) \
	X(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned, 2000, (void)) \
	P(cuMemcpy2DUnaligned_v2, _ptds, cuMemcpy2DUnaligned, 3020, (void)) \
	P(cuMemcpy2D_v2, _ptds, cuMemcpy2D, 3020, (void)) \
	X(cuMemcpy3D, cuMemcpy3D, 2000, (void)) \
	X(cuMemcpy3DAsync, cuMemcpy3DAsync, 2000, (void)) \
	P(cuMemcpy3DAsync_v2, _ptsz, cuMemcpy3DAsync, 3020, (void)) \
	P(cuMemcpy3DBatchAsync, _ptsz, cuMemcpy3DBatchAsync, 12080, (void)) \
	P(cuMemcpy3DBatchAsync_v2, _ptsz, cuMemcpy3DBatchAsync, 13000, (void)) \
	P(cuMemcpy3DPeer, _ptds, cuMemcpy3DPeer, 4000, (void)) \
	P(cuMemcpy3DPeerAsync, _ptsz, cuMemcpy3DPeerAsync, 4000, (void)) \
	P(cuMemcpy3D_v2, _ptds, cuMemcpy3D, 3020, (void)) \
	X(cuMemcpyAtoA, cuMemcpyAtoA, 2000, (void)) \
	P(cuMemcpyAtoA_v2, _ptds, cuMemcpyAtoA, 3020, (void)) \
	X(cuMemcpyAtoD, cuMemcpyAtoD, 2000, (void)) \
	P(cuMemcpyAtoD_v2, _ptds, cuMemcpyAtoD, 3020, (void)) \
	X(cuMemcpyAtoH, cuMemcpyAtoH, 2000, (void)) \
	X(cuMemcpyAtoHAsync, cuMemcpyAtoHAsync, 2000, (void)) \
	P(cuMemcpyAtoHAsync_v2, _ptsz, cuMemcpyAtoHAsync, 3020, (void)) \
	P(cuMemcpyAtoH_v2, _ptds, cuMemcpyAtoH, 3020, (void)) \
	P(cuMemcpyBatchAsync, _ptsz, cuMemcpyBatchAsync, 12080, (void)) \
	P(cuMemcpyBatchAsync_v2, _ptsz, cuMemcpyBatchAsync, 13000, (void)) \
	X(cuMemcpyDtoA, cuMemcpyDtoA, 2000, (void)) \
	P(cuMemcpyDtoA_v2, _ptds, cuMemcpyDtoA, 3020, (void)) \
	X(cuMemcpyDtoD, cuMemcpyDtoD, 2000, (void)) \
	X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync, 3000, (void)) \
	X(cuMemcpyDtoH, cuMemcpyDtoH, 2000, (void)) \
	X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync, 2000, (void)) \
	X(cuMemcpyHtoA, cuMemcpyHtoA, 2000, (void)) \
	X(cuMemcpyHtoAAsync, cuMemcpyHtoAAsync, 2000, (void)) \
	P(cuMemcpyHtoAAsync_v2, _ptsz, cuMemcpyHtoAAsync, 3020, (void)) \
	P(cuMemcpyHtoA_v2, _ptds, cuMemcpyHtoA, 3020, (void)) \
	X(cuMemcpyHtoD, cuMemcpyHtoD, 2000, (void)) \
	X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync, 2000, (void)) \
	P(cuMemcpyPeer, _ptds, cuMemcpyPeer, 4000, (void)) \
	P(cuMemcpyPeerAsync, _ptsz, cuMemcpyPeerAsync, 4000, (void)) \
	X(cuMemsetD16, cuMemsetD16, 2000, (void)) \
	X(cuMemsetD2D16, cuMemsetD2D16, 2000, (void)) \
	P(cuMemsetD2D16Async, _ptsz, cuMemsetD2D16Async, 3020, (void)) \
	P(cuMemsetD2D16_v2, _ptds, cuMemsetD2D16, 3020, (void)) \
	X(cuMemsetD2D32, cuMemsetD2D32, 2000, (void)) \
	P(cuMemsetD2D32Async, _ptsz, cuMemsetD2D32Async, 3020, (void)) \
	P(cuMemsetD2D32_v2, _ptds, cuMemsetD2D32, 3020, (void)) \
	X(cuMemsetD2D8, cuMemsetD2D8, 2000, (void)) \
	P(cuMemsetD2D8Async, _ptsz, cuMemsetD2D8Async, 3020, (void)) \
	P(cuMemsetD2D8_v2, _ptds, cuMemsetD2D8, 3020, (void)) \
	X(cuMemsetD32, cuMemsetD32, 2000, (void)) \
	X(cuMemsetD8, cuMemsetD8, 2000, (void)) \
	X(cuMipmappedArrayCreate, cuMipmappedArrayCreate, 5000, (void)) \
	X(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy, 5000, (void)) \
	X(cuMipmappedArrayGetLevel, cuMipmappedArrayGetLevel, 5000, (void)) \
	X(cuMipmappedArrayGetMemoryRequirements, cuMipmappedArrayGetMemoryRequirements, 11060, (void)) \
	X(cuMipmappedArrayGetSparseProperties, cuMipmappedArrayGetSparseProperties, 11010, (void)) \
	X(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 12040, (void)) \
	X(cuModuleGetFunctionCount, cuModuleGetFunctionCount, 12040, (void)) \
	X(cuModuleGetGlobal, cuModuleGetGlobal, 2000, (void)) \
	X(cuModuleGetGlobal_v2, cuModuleGetGlobal, 3020, (void)) \
	X(cuModuleGetLoadingMode, cuModuleGetLoadingMode, 11070, (void)) \
	X(cuModuleGetSurfRef, cuModuleGetSurfRef, 3000, (void)) \
	X(cuModuleGetTexRef, cuModuleGetTexRef, 2000, (void)) \
	X(cuModuleLoad, cuModuleLoad, 2000, (void)) \
	X(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, (void)) \
	X(cuMulticastAddDevice, cuMulticastAddDevice, 12010, (void)) \
	X(cuMulticastBindAddr, cuMulticastBindAddr, 12010, (void)) \
	X(cuMulticastBindMem, cuMulticastBindMem, 12010, (void)) \
	X(cuMulticastCreate, cuMulticastCreate, 12010, (void)) \
	X(cuMulticastGetGranularity, cuMulticastGetGranularity, 12010, (void)) \
	X(cuMulticastUnbind, cuMulticastUnbind, 12010, (void)) \
	X(cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock, 10020, (void)) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, (void)) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, (void)) \
	X(cuOccupancyMaxActiveClusters, cuOccupancyMaxActiveClusters, 11070, (void)) \
	X(cuOccupancyMaxPotentialBlockSize, cuOccupancyMaxPotentialBlockSize, 6050, (void)) \
	X(cuOccupancyMaxPotentialBlockSizeWithFlags, cuOccupancyMaxPotentialBlockSizeWithFlags, 7000, (void)) \
	X(cuOccupancyMaxPotentialClusterSize, cuOccupancyMaxPotentialClusterSize, 11070, (void)) \
	X(cuParamSetSize, cuParamSetSize, 2000, (void)) \
	X(cuParamSetTexRef, cuParamSetTexRef, 2000, (void)) \
	X(cuParamSetf, cuParamSetf, 2000, (void)) \
	X(cuParamSeti, cuParamSeti, 2000, (void)) \
	X(cuParamSetv, cuParamSetv, 2000, (void)) \
	X(cuPointerGetAttributes, cuPointerGetAttributes, 7000, (void)) \
	X(cuPointerSetAttribute, cuPointerSetAttribute, 6000, (void)) \
	P(cuSignalExternalSemaphoresAsync, _ptsz, cuSignalExternalSemaphoresAsync, 10000, (void)) \
	P(cuStreamAddCallback, _ptsz, cuStreamAddCallback, 5000, (void)) \
	P(cuStreamAttachMemAsync, _ptsz, cuStreamAttachMemAsync, 6000, (void)) \
	P(cuStreamBatchMemOp, _ptsz, cuStreamBatchMemOp, 8000, (void)) \
	P(cuStreamCopyAttributes, _ptsz, cuStreamCopyAttributes, 11000, (void)) \
	P(cuStreamGetAttribute, _ptsz, cuStreamGetAttribute, 11000, (void)) \
	P(cuStreamGetDevice, _ptsz, cuStreamGetDevice, 12080, (void)) \
	P(cuStreamSetAttribute, _ptsz, cuStreamSetAttribute, 11000, (void)) \
	P(cuStreamWaitValue32, _ptsz, cuStreamWaitValue32, 8000, (void)) \
	P(cuStreamWaitValue64, _ptsz, cuStreamWaitValue64, 9000, (void)) \
	P(cuStreamWriteValue32, _ptsz, cuStreamWriteValue32, 8000, (void)) \
	P(cuStreamWriteValue64, _ptsz, cuStreamWriteValue64, 9000, (void)) \
	X(cuSurfObjectCreate, cuSurfObjectCreate, 5000, (void)) \
	X(cuSurfObjectDestroy, cuSurfObjectDestroy, 5000, (void)) \
	X(cuSurfObjectGetResourceDesc, cuSurfObjectGetResourceDesc, 5000, (void)) \
	X(cuSurfRefGetArray, cuSurfRefGetArray, 3000, (void)) \
	X(cuSurfRefSetArray, cuSurfRefSetArray, 3000, (void)) \
	X(cuTensorMapEncodeIm2col, cuTensorMapEncodeIm2col, 12000, (void)) \
	X(cuTensorMapEncodeIm2colWide, cuTensorMapEncodeIm2colWide, 12080, (void)) \
	X(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled, 12000, (void)) \
	X(cuTensorMapReplaceAddress, cuTensorMapReplaceAddress, 12000, (void)) \
	X(cuTexObjectCreate, cuTexObjectCreate, 5000, (void)) \
	X(cuTexObjectDestroy, cuTexObjectDestroy, 5000, (void)) \
	X(cuTexObjectGetResourceDesc, cuTexObjectGetResourceDesc, 5000, (void)) \
	X(cuTexObjectGetResourceViewDesc, cuTexObjectGetResourceViewDesc, 5000, (void)) \
	X(cuTexObjectGetTextureDesc, cuTexObjectGetTextureDesc, 5000, (void)) \
	X(cuTexRefCreate, cuTexRefCreate, 2000, (void)) \
	X(cuTexRefDestroy, cuTexRefDestroy, 2000, (void)) \
	X(cuTexRefGetAddress, cuTexRefGetAddress, 2000, (void)) \
	X(cuTexRefGetAddressMode, cuTexRefGetAddressMode, 2000, (void)) \
	X(cuTexRefGetAddress_v2, cuTexRefGetAddress, 3020, (void)) \
	X(cuTexRefGetArray, cuTexRefGetArray, 2000, (void)) \
	X(cuTexRefGetBorderColor, cuTexRefGetBorderColor, 8000, (void)) \
	X(cuTexRefGetFilterMode, cuTexRefGetFilterMode, 2000, (void)) \
	X(cuTexRefGetFlags, cuTexRefGetFlags, 2000, (void)) \
	X(cuTexRefGetFormat, cuTexRefGetFormat, 2000, (void)) \
	X(cuTexRefGetMaxAnisotropy, cuTexRefGetMaxAnisotropy, 5000, (void)) \
	X(cuTexRefGetMipmapFilterMode, cuTexRefGetMipmapFilterMode, 5000, (void)) \
	X(cuTexRefGetMipmapLevelBias, cuTexRefGetMipmapLevelBias, 5000, (void)) \
	X(cuTexRefGetMipmapLevelClamp, cuTexRefGetMipmapLevelClamp, 5000, (void)) \
	X(cuTexRefGetMipmappedArray, cuTexRefGetMipmappedArray, 5000, (void)) \
	X(cuTexRefSetAddress, cuTexRefSetAddress, 2000, (void)) \
	X(cuTexRefSetAddress2D, cuTexRefSetAddress2D, 2020, (void)) \
	X(cuTexRefSetAddress2D_v2, cuTexRefSetAddress2D, 3020, (void)) \
	X(cuTexRefSetAddress2D_v3, cuTexRefSetAddress2D, 4010, (void)) \
	X(cuTexRefSetAddressMode, cuTexRefSetAddressMode, 2000, (void)) \
	X(cuTexRefSetAddress_v2, cuTexRefSetAddress, 3020, (void)) \
	X(cuTexRefSetArray, cuTexRefSetArray, 2000, (void)) \
	X(cuTexRefSetBorderColor, cuTexRefSetBorderColor, 8000, (void)) \
	X(cuTexRefSetFilterMode, cuTexRefSetFilterMode, 2000, (void)) \
	X(cuTexRefSetFlags, cuTexRefSetFlags, 2000, (void)) \
	X(cuTexRefSetFormat, cuTexRefSetFormat, 2000, (void)) \
	X(cuTexRefSetMaxAnisotropy, cuTexRefSetMaxAnisotropy, 5000, (void)) \
	X(cuTexRefSetMipmapFilterMode, cuTexRefSetMipmapFilterMode, 5000, (void)) \
	X(cuTexRefSetMipmapLevelBias, cuTexRefSetMipmapLevelBias, 5000, (void)) \
	X(cuTexRefSetMipmapLevelClamp, cuTexRefSetMipmapLevelClamp, 5000, (void)) \
	X(cuTexRefSetMipmappedArray, cuTexRefSetMipmappedArray, 5000, (void)) \
	X(cuUserObjectCreate, cuUserObjectCreate, 11030, (void)) \
	X(cuUserObjectRelease, cuUserObjectRelease, 11030, (void)) \
	X(cuUserObjectRetain, cuUserObjectRetain, 11030, (void)) \
	P(cuWaitExternalSemaphoresAsync, _ptsz, cuWaitExternalSemaphoresAsync, 10000, (void))
/* clang-format on */

#endif
