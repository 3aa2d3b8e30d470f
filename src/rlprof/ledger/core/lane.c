/* Lanes: lines of execution with a call tree each. Threads and tasks take them and give them back. */
#include "core.h"

#include <string.h>

bool
lane_grow(Lane *lane)
{
    size_t used = (size_t)(lane->top - lane->stack) + 1;
    size_t wanted = (size_t)(lane->end - lane->stack) * 2;
    Entry *stack = realloc(lane->stack, wanted * sizeof *stack);
    if (stack == NULL) {
        return false;
    }
    memset(stack + used, 0, (wanted - used) * sizeof *stack);
    lane->stack = stack;
    lane_set_top(lane, stack + used - 1);
    lane->end = stack + wanted;
    return true;
}

uint32_t
open_spans(const Ledger *ledger)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        open += (uint32_t)(ledger->lanes[i]->top - ledger->lanes[i]->stack);
    }
    return open;
}

static Pool *
pool_get(Ledger *ledger, LaneKind kind, bool on_driver, PyObject *group)
{
    return map_get(&ledger->pools, (uintptr_t)group | (uintptr_t)kind << 1 | on_driver);
}

/* NULL: no memory. */
static Pool *
pool_make(Ledger *ledger, LaneKind kind, bool on_driver, PyObject *group)
{
    Pool *pool = pool_get(ledger, kind, on_driver, group);
    if (pool == NULL && (pool = calloc(1, sizeof *pool)) != NULL) {
        if (map_put(&ledger->pools, (uintptr_t)group | (uintptr_t)kind << 1 | on_driver, pool) < 0) {
            free(pool);
            return NULL;
        }
        pool->group = Py_NewRef(group); /* so that no other string gets its address */
    }
    return pool;
}

static void
pool_add(Lane *lane)
{
    Pool *pool = lane->pool;
    lane->before = pool->last;
    lane->after = NULL;
    *(pool->last ? &pool->last->after : &pool->first) = lane;
    pool->last = lane;
    pool->ended++;
}

static void
pool_remove(Lane *lane)
{
    Pool *pool = lane->pool;
    *(lane->before ? &lane->before->after : &pool->first) = lane->after;
    *(lane->after ? &lane->after->before : &pool->last) = lane->before;
    lane->before = lane->after = NULL;
    pool->ended--;
}

static Lane *
lane_allocate(Ledger *ledger, LaneKind kind, size_t entries)
{
    if (ledger->lanes_used == ledger->lanes_capacity) {
        uint32_t wanted = ledger->lanes_capacity ? ledger->lanes_capacity * 2 : 16;
        Lane **lanes = realloc(ledger->lanes, wanted * sizeof *lanes);
        if (lanes == NULL) {
            return NULL;
        }
        ledger->lanes = lanes;
        ledger->lanes_capacity = wanted;
    }
    Lane *lane = calloc(1, sizeof *lane);
    Entry *stack = calloc(entries, sizeof *stack);
    if (lane == NULL || stack == NULL) {
        free(stack);
        free(lane);
        return NULL;
    }
    lane->stack = lane->top = stack;
    lane->end = stack + entries;
    lane->kind = kind;
    return lane;
}

static Lane *
lane_new(Ledger *ledger, LaneKind kind, bool on_driver, PyObject *name, PyObject *group)
{
    Pool *pool = pool_make(ledger, kind, on_driver, group);
    Lane *lane = pool ? lane_allocate(ledger, kind, 16) : NULL;
    Node *root = lane ? node_new(ledger, NULL, NULL, lane) : NULL;
    if (root == NULL) {
        if (lane != NULL) {
            free(lane->stack);
            free(lane);
        }
        return NULL;
    }
    lane->stack[0].node = root;
    lane->name = Py_NewRef(name);
    lane->pool = pool;
    pool->trees++;
    lane->id = ledger->trees++;
    ledger->lanes[ledger->lanes_used++] = lane;
    return lane;
}

/* An ended lane to use again: one of the same name, or, if there are many, the one that ended first. asyncio never uses
 * its own names again. */
static Lane *
pool_reuse(Pool *pool, LaneKind kind, PyObject *name)
{
    if (PyUnicode_CompareWithASCIIString(pool->group, "Task-#") != 0) {
        Lane *lane = pool->last;
        for (int i = 0; lane != NULL && i < MAX_TREES; i++, lane = lane->before) {
            if (PyUnicode_Compare(lane->name, name) == 0) {
                return lane;
            }
        }
    }
    bool many = pool->ended >= MAX_TREES || (kind == LANE_TASK && pool->trees >= MAX_TREES);
    if (!many || pool->first == NULL) {
        return NULL;
    }
    Py_SETREF(pool->first->name, Py_NewRef(pool->group));
    return pool->first;
}

/* A lane in the tree that the thread's further tasks of this group share. */
static Lane *
lane_join(Thread *host, bool on_driver, PyObject *group)
{
    Ledger *ledger = host->ledger;
    Lane *shared = host->shared;
    while (shared != NULL && shared->pool->group != group) {
        shared = shared->after;
    }
    if (shared == NULL) {
        shared = lane_new(ledger, LANE_TASK, on_driver, group, group);
        if (shared == NULL) {
            return NULL;
        }
        shared->shared = true;
        shared->on_driver = on_driver;
        shared->host = host;
        shared->after = host->shared;
        host->shared = shared;
    }
    Lane *guest = ledger->spare;
    if (guest != NULL) {
        ledger->spare = guest->after;
        guest->after = NULL;
    }
    else {
        guest = lane_allocate(ledger, LANE_TASK, 4);
        if (guest == NULL) {
            return NULL;
        }
        guest->guest = true;
        ledger->lanes[ledger->lanes_used++] = guest;
    }
    guest->stack[0].node = shared->stack[0].node;
    guest->id = shared->id;
    shared->uses++;
    return guest;
}

Lane *
lane_take(Thread *host, LaneKind kind, PyObject *name, PyObject *group, int64_t now)
{
    Ledger *ledger = host->ledger;
    bool on_driver = ledger->driver == host || ledger->driver == NULL;
    Py_INCREF(group);
    PyUnicode_InternInPlace(&group);
    Pool *pool = pool_get(ledger, kind, on_driver, group);
    Lane *lane = pool ? pool_reuse(pool, kind, name) : NULL;
    if (lane != NULL) {
        pool_remove(lane);
    }
    else if (kind == LANE_TASK && pool != NULL && pool->trees >= MAX_TREES) {
        lane = lane_join(host, on_driver, group);
    }
    else if (kind == LANE_TASK && ledger->trees >= MAX_TASK_LANES) {
        Py_SETREF(group, PyUnicode_InternFromString("other tasks"));
        lane = group ? lane_join(host, on_driver, group) : NULL;
    }
    else {
        lane = lane_new(ledger, kind, on_driver, name, group);
    }
    Py_XDECREF(group);
    if (lane == NULL) {
        return NULL;
    }
    lane->on_driver = on_driver;
    lane->host = host;
    lane->mark = now;
    lane->uses++;
    return lane;
}

void
lane_retake(Lane *lane, Thread *host, int64_t now)
{
    pool_remove(lane);
    lane->host = host;
    lane->mark = now;
}

/* Frees the lane for the next thread or task. */
void
lane_end(Ledger *ledger, Lane *lane)
{
    lane->host = NULL;
    lane->shared = false;
    if (!lane->guest) {
        pool_add(lane);
        return;
    }
    if (lane->task != NULL) {
        map_remove(&ledger->tasks, (uintptr_t)lane->task);
        lane->task = NULL;
    }
    lane->after = ledger->spare;
    ledger->spare = lane;
}

/* Gives a task's lane back once it has no span open. */
void
lane_release(Ledger *ledger, Lane *lane)
{
    if (lane->kind == LANE_TASK && lane->top == lane->stack && lane->host != NULL) {
        lane_end(ledger, lane);
    }
}

void
lane_move(Ledger *ledger, Lane *lane, bool on_driver)
{
    Pool *pool = lane->guest ? NULL : pool_make(ledger, lane->kind, on_driver, lane->pool->group);
    if (pool != NULL) { /* without memory it stays: its tree then mixes two formulas, if it is used again */
        if (lane->host == NULL) {
            pool_remove(lane);
        }
        lane->pool->trees--;
        pool->trees++;
        lane->pool = pool;
        if (lane->host == NULL) {
            pool_add(lane);
        }
    }
    lane->on_driver = on_driver;
}

static void
lane_free(Lane *lane)
{
    for (Entry *entry = lane->stack; entry <= lane->top; entry++) {
        Py_CLEAR(entry->device_event);
    }
    Py_CLEAR(lane->name);
    free(lane->stack);
    free(lane);
}

void
lanes_free(Ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        lane_free(ledger->lanes[i]);
    }
    ledger->lanes_used = ledger->trees = 0;
    ledger->lanes_life++;
    ledger->spare = NULL;
    map_free(&ledger->tasks);
    for (uint32_t i = 0; i < ledger->pools.capacity; i++) {
        if (ledger->pools.slots[i].key != 0) {
            Pool *pool = ledger->pools.slots[i].value;
            Py_DECREF(pool->group);
            free(pool);
        }
    }
    map_free(&ledger->pools);
}
