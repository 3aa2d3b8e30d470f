/* The process's exact peak inside a span.
 *
 * The kernel keeps a high-water mark of resident memory and can be told to start it anew (proc(5), clear_refs, "5").
 * The mark is one for the whole process, so before it is cleared what it says is folded into every tracked span that is
 * open, on any lane. Where it cannot be cleared a peak is known only if the mark rose inside the span. */
#include "core.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t
high_water(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
    return usage.ru_maxrss;
#else
    return (int64_t)usage.ru_maxrss * 1024;
#endif
}

static void
clear_high_water(Ledger *ledger)
{
    if (ledger->clear_refs == -1) {
        ledger->clear_refs = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    }
    if (ledger->clear_refs >= 0 && write(ledger->clear_refs, "5", 1) != 1) {
        close(ledger->clear_refs);
        ledger->clear_refs = -1;
    }
    if (ledger->clear_refs == -1) {
        ledger->clear_refs = -2;
    }
}

static void
fold_high_water(Ledger *ledger)
{
    int64_t peak = high_water();
    if (peak > ledger->process_peak) {
        ledger->process_peak = peak;
    }
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        for (Entry *entry = lane->stack + 1; entry <= lane->top; entry++) {
            if ((entry->span->flags & SPAN_MEMORY) && entry->memory_start >= 0 && peak > entry->memory_peak) {
                entry->memory_peak = peak;
            }
        }
    }
}

void
memory_enter(Ledger *ledger, Entry *entry)
{
    entry->memory_start = -1; /* the mark of before is not this span's */
    fold_high_water(ledger);
    clear_high_water(ledger);
    entry->memory_start = entry->memory_peak = high_water();
}

void
memory_exit(Ledger *ledger, Entry *entry)
{
    fold_high_water(ledger);
    Node *node = entry->node;
    if (ledger->clear_refs < 0 && entry->memory_peak == entry->memory_start) {
        return; /* the mark is an older peak's */
    }
    if (entry->memory_peak > node->memory_peak) {
        node->memory_peak = entry->memory_peak;
    }
    if (entry->memory_peak - entry->memory_start > node->memory_rise) {
        node->memory_rise = entry->memory_peak - entry->memory_start;
    }
}

int64_t
memory_process_peak(Ledger *ledger)
{
    fold_high_water(ledger);
    return ledger->process_peak;
}

/* The open file is the parent's: writing to it would clear the parent's mark. */
void
memory_after_fork(Ledger *ledger)
{
    if (ledger->clear_refs >= 0) {
        close(ledger->clear_refs);
        ledger->clear_refs = -1;
    }
    ledger->process_peak = 0;
}
