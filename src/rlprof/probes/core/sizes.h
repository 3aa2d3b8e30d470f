/* How often each batch size was seen. Trainings use few sizes; what does not fit into the table is counted together. */
#ifndef RLPROF_SIZES_H
#define RLPROF_SIZES_H

#include <stdint.h>

#define MAX_SIZES 16
typedef struct {
    int64_t size[MAX_SIZES], count[MAX_SIZES];
    int64_t others; /* of sizes that found no place */
    unsigned used;
} Sizes;

static inline void
sizes_add(Sizes *sizes, int64_t size)
{
    for (unsigned i = 0; i < sizes->used; i++) {
        if (sizes->size[i] == size) {
            sizes->count[i]++;
            return;
        }
    }
    if (sizes->used == MAX_SIZES) {
        sizes->others++;
        return;
    }
    sizes->size[sizes->used] = size;
    sizes->count[sizes->used++] = 1;
}

#endif
