/* The cold side of the histogram: its table of bucket borders and its memory. */
#include "histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

HistogramCell histogram_cells[64];

void
histogram_init_cells(void)
{
    for (int i = 0; i < 64; i++) {
        long double low = 1.0L + (long double)i / 64;
        int below = (int)floorl(32 * log2l(low) + 1e-12L);
        long double border = exp2l((below + 1) / 32.0L);
        histogram_cells[i].below = (uint8_t)below;
        /* The octave's last border is the next octave's first: no mantissa reaches it. */
        histogram_cells[i].border = border >= 2.0L ? UINT64_MAX : (uint64_t)ceill(border * 0x1p63L);
    }
}

HistogramOctave *
histogram_new_octave(Histogram *histogram, int octave)
{
    return histogram->octave[octave] = calloc(1, sizeof(HistogramOctave));
}

void
histogram_overflow(HistogramOctave *octave, int sub)
{
    if (octave->overflows == NULL) {
        octave->overflows = calloc(HISTOGRAM_SUB, sizeof(uint32_t));
    }
    if (octave->overflows != NULL) {
        octave->overflows[sub]++;
    }
}

uint64_t
histogram_count(const Histogram *histogram, int bucket)
{
    const HistogramOctave *octave = histogram->octave[bucket / HISTOGRAM_SUB];
    if (octave == NULL) {
        return 0;
    }
    uint64_t over = octave->overflows ? octave->overflows[bucket % HISTOGRAM_SUB] : 0;
    return (over << 32) + octave->counts[bucket % HISTOGRAM_SUB];
}

void
histogram_zero(Histogram *histogram)
{
    for (int i = 0; i < HISTOGRAM_OCTAVES; i++) {
        HistogramOctave *octave = histogram->octave[i];
        if (octave != NULL) {
            memset(octave->counts, 0, sizeof octave->counts);
            free(octave->overflows);
            octave->overflows = NULL;
        }
    }
}

void
histogram_free(Histogram *histogram)
{
    histogram_zero(histogram);
    for (int i = 0; i < HISTOGRAM_OCTAVES; i++) {
        free(histogram->octave[i]);
        histogram->octave[i] = NULL;
    }
}
