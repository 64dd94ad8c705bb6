/* Prints the driver's facts of the GPUs as JSON. */
#ifndef PEAKMARK_GPU_LIST_H
#define PEAKMARK_GPU_LIST_H

void list_gpus(int count);

#endif
