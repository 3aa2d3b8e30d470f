/* Ends a span earlier, where it turns out only later that something else had begun. */
#include "core.h"

/* Moves what a node has gained in the last `gap` ns, since the lane's last span ended, to another node. Returns how
 * much time that is: gains of an iteration that has ended are written, and stay. */
static int64_t
move_rest(const Lane *lane, Node *node, Node *other, int64_t gap)
{
    int64_t own = node->self - node->marked.self;
    bool marked = gap > own;
    gap = marked ? own : gap;
    int64_t covered = node->covered - lane->stood.covered;
    if (marked && !lane->on_driver) {
        covered = gap - (node->waited - node->marked.waited) - (node_overlapped(node) - node->marked.overlapped);
    }
    Node moved = {
        .self = gap,
        .covered = covered,
        .shift = node->shift - (marked ? node->marked.shift : lane->stood.shift),
        .waited = node->waited - (marked ? node->marked.waited : lane->stood.waited),
        .off_cpu = node->off_cpu - (marked ? node->marked.off_cpu : lane->stood.off_cpu),
        .cost = node->cost - lane->stood.cost,
    };
#define MOVE(field)              \
    node->field -= moved.field; \
    other->field += moved.field
    MOVE(self);
    MOVE(covered);
    MOVE(shift);
    MOVE(waited);
    MOVE(off_cpu);
    MOVE(cost);
#undef MOVE
    return gap;
}

/* split(outer, rest): ends the innermost span where its last inner span ended. The time since becomes a call of `rest`
 * beside it. Returns that time in ns; -1 if `outer` is not the innermost span. */
PyObject *
ledger_split(Ledger *ledger, PyObject *args)
{
    Span *outer, *rest;
    if (!PyArg_ParseTuple(args, "O!O!", Span_Type, &outer, Span_Type, &rest)) {
        return NULL;
    }
    Thread *thread = ledger->mode & MODE_ENABLED ? thread_known(ledger) : NULL;
    Lane *lane = thread ? lane_here(thread, false) : NULL;
    if (lane == NULL || lane->top->span != outer || rest->ledger != ledger || outer->flags != 0) {
        return PyLong_FromLong(-1);
    }
    Node *node = lane->top->node;
    int64_t now = larger(clock_now(&ledger->clock), lane->mark);
    pulse_check(ledger, lane->mark, now);
    sharing_lock(ledger);
    now = not_before(ledger, now);
    charge(thread, now, true);
    int64_t since = larger(lane->left, lane->top->start);
    Node *other = now > since ? node_of(ledger, (lane->top - 1)->node, rest->operation) : NULL;
    int64_t gap = other != NULL ? move_rest(lane, node, other, now - since) : 0;
    if (gap > 0) {
        stacks_move(ledger, node, other, now - gap);
    }
    Entry ended = lane_remove(ledger, lane, lane->top, now - gap);
    if (gap > 0) {
        Entry *place = lane->top + 1; /* of the span that has just ended */
        *place = (Entry){.node = other, .span = rest, .start = now - gap};
        entry_close(ledger, lane, place, now);
    }
    restate(thread, now);
    sharing_unlock(ledger);
    if (ledger->mode & MODE_WATCHED) {
        watch_report(ledger, outer, false);
    }
    if (ledger->mode & MODE_SLOWED) {
        slowdown_end(ledger, &ended, now - gap);
    }
    return PyLong_FromLongLong(gap);
}
