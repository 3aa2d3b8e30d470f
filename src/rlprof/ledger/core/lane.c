/* Lanes: lines of execution with a call tree each, taken by threads and tasks and given back. */
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
    lane->top = stack + used - 1;
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

static Lane *
lane_new(Ledger *ledger, LaneKind kind, PyObject *name, PyObject *group)
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
    Entry *stack = calloc(16, sizeof *stack);
    Node *root = lane && stack ? node_new(ledger, NULL, NULL, lane) : NULL;
    if (root == NULL) {
        free(stack);
        free(lane);
        return NULL;
    }
    lane->stack = lane->top = stack;
    lane->end = stack + 16;
    stack[0].node = root;
    lane->kind = kind;
    lane->name = Py_NewRef(name);
    lane->group = Py_NewRef(group);
    lane->id = ledger->lanes_used;
    ledger->lanes[ledger->lanes_used++] = lane;
    return lane;
}

/* An ended lane to go on with: of the same name, or any of its (interned) group once there are many. Lanes of the driver's thread
 * and of others are never mixed, for their times are booked by different formulas. */
static Lane *
lane_reuse(Ledger *ledger, LaneKind kind, PyObject *name, PyObject *group, bool on_driver)
{
    Lane *oldest = NULL;
    int ended = 0;
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        if (lane->host != NULL || lane->kind != kind || lane->on_driver != on_driver || lane->group != group) {
            continue;
        }
        if (PyUnicode_Compare(lane->name, name) == 0) {
            return lane;
        }
        oldest = oldest ? oldest : lane;
        ended++;
    }
    if (ended < MAX_ENDED_LANES) {
        return NULL;
    }
    Py_INCREF(group);
    Py_SETREF(oldest->name, group);
    return oldest;
}

Lane *
lane_take(Thread *host, LaneKind kind, PyObject *name, PyObject *group, int64_t now)
{
    Ledger *ledger = host->ledger;
    bool on_driver = ledger->driver == host || ledger->driver == NULL;
    Py_INCREF(group);
    PyUnicode_InternInPlace(&group);
    Lane *lane = lane_reuse(ledger, kind, name, group, on_driver);
    if (lane == NULL) {
        lane = lane_new(ledger, kind, name, group);
    }
    Py_DECREF(group);
    if (lane == NULL) {
        return NULL;
    }
    lane->on_driver = on_driver;
    lane->host = host;
    lane->mark = now;
    lane->uses++;
    return lane;
}

/* Gives a task's lane back once it has no span open. */
void
lane_release(Lane *lane)
{
    if (lane->kind == LANE_TASK && lane->top == lane->stack) {
        lane->host = NULL;
    }
}

static void
lane_free(Lane *lane)
{
    for (Entry *entry = lane->stack; entry <= lane->top; entry++) {
        Py_CLEAR(entry->device_event);
    }
    Py_CLEAR(lane->name);
    Py_CLEAR(lane->group);
    free(lane->stack);
    free(lane);
}

void
lanes_free(Ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        lane_free(ledger->lanes[i]);
    }
    ledger->lanes_used = 0;
    map_free(&ledger->tasks);
}
