/* A hash map from 64-bit keys to pointers: open addressing, linear probing, no key 0. */
#ifndef RLPROF_MAP_H
#define RLPROF_MAP_H

#include <stdint.h>
#include <stdlib.h>

typedef struct {
    uint64_t key; /* 0: free */
    void *value;
} MapSlot;

typedef struct {
    MapSlot *slots;
    uint32_t capacity; /* a power of two, or 0 before the first entry */
    uint32_t used;
} Map;

static inline uint32_t
map_home(const Map *map, uint64_t key)
{
    return (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32) & (map->capacity - 1);
}

/* In a map that has been reserved. */
static inline void *
map_look(const Map *map, uint64_t key)
{
    uint32_t i = map_home(map, key);
    const MapSlot *slot = &map->slots[i];
    while (__builtin_expect(slot->key != key, 0)) {
        if (slot->key == 0) {
            return NULL;
        }
        i = (i + 1) & (map->capacity - 1);
        slot = &map->slots[i];
    }
    return slot->value;
}

static inline void *
map_get(const Map *map, uint64_t key)
{
    return map->capacity == 0 ? NULL : map_look(map, key);
}

static inline int map_put(Map *map, uint64_t key, void *value);

/* Makes room for one more; returns -1 without memory. */
static inline int
map_reserve(Map *map)
{
    if ((map->used + 1) * 2 > map->capacity) {
        Map bigger = {NULL, map->capacity ? map->capacity * 2 : 64, 0};
        bigger.slots = calloc(bigger.capacity, sizeof(MapSlot));
        if (bigger.slots == NULL) {
            return -1;
        }
        for (uint32_t i = 0; i < map->capacity; i++) {
            if (map->slots[i].key != 0) {
                map_put(&bigger, map->slots[i].key, map->slots[i].value);
            }
        }
        free(map->slots);
        *map = bigger;
    }
    return 0;
}

/* Returns -1 without memory. The key must not be in the map. */
static inline int
map_put(Map *map, uint64_t key, void *value)
{
    if (map_reserve(map) < 0) {
        return -1;
    }
    uint32_t i = map_home(map, key);
    while (map->slots[i].key != 0) {
        i = (i + 1) & (map->capacity - 1);
    }
    map->slots[i] = (MapSlot){key, value};
    map->used++;
    return 0;
}

/* Closes the gap that a removal leaves, so that no search stops short of an entry behind it. */
static inline void
map_remove(Map *map, uint64_t key)
{
    if (map_get(map, key) == NULL) {
        return;
    }
    uint32_t mask = map->capacity - 1;
    uint32_t hole = map_home(map, key);
    while (map->slots[hole].key != key) {
        hole = (hole + 1) & mask;
    }
    for (uint32_t i = (hole + 1) & mask; map->slots[i].key != 0; i = (i + 1) & mask) {
        uint32_t home = map_home(map, map->slots[i].key);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole].key = 0;
    map->used--;
}

static inline void
map_free(Map *map)
{
    free(map->slots);
    *map = (Map){NULL, 0, 0};
}

#endif
