// Single-thread code while a second thread is alive, for scripts/cost.sh: work KERNEL ROUNDS EVERY
//
// KERNEL: sort, hash, bytes, matrix, squeeze (what gzip does first: matches by chains of hashes, and counts of symbols); and two that touch no
// memory of which others could know: calls (the stack alone) and local (an array on the stack). A lock that both threads use is taken and
// released about once in EVERY accesses to memory. Prints a sum, the same for the same kernel and rounds.
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t over;
static long every, left;

static inline uint32_t next(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

// So many accesses have been made.
static inline void made(long accesses) {
    left -= accesses;
    if (__builtin_expect(left < 0, 0)) {
        left = every;
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
}

#define SORTED 100000
static int numbers[SORTED];

static void sort(int *at, long n) {
    while (n > 16) {
        int middle = at[n / 2], swap;
        long i = 0, j = n - 1;
        while (i <= j) {
            long from = i + n - j;
            while (at[i] < middle) i++;
            while (at[j] > middle) j--;
            if (i <= j) {
                swap = at[i], at[i] = at[j], at[j] = swap;
                i++, j--;
            }
            made(2 + i + n - j - from);
        }
        sort(at, j + 1);
        at += i, n -= i;
    }
    for (long i = 1; i < n; i++) {
        int one = at[i];
        long j = i;
        for (; j > 0 && at[j - 1] > one; j--) at[j] = at[j - 1];
        at[j] = one;
    }
    made(6 * n);
}

static uint32_t run_sort(long round) {
    uint32_t state = 1 + round, sum = 0;
    for (long i = 0; i < SORTED; i++) numbers[i] = next(&state) >> 1;
    sort(numbers, SORTED);
    for (long i = 0; i < SORTED; i++) sum = sum * 31 + numbers[i];
    return sum;
}

#define SLOTS (1 << 16)
struct node { uint32_t key, value; struct node *next; };
static struct node *table[SLOTS], nodes[SLOTS];

static uint32_t run_hash(long round) {
    uint32_t state = 1 + round, used = 0, sum = 0;
    memset(table, 0, sizeof table);
    for (long i = 0; i < 4 * SLOTS; i++) {
        uint32_t key = next(&state) % (2 * SLOTS), at = key * 2654435761u >> 16;
        struct node *node = table[at];
        while (node && node->key != key) node = node->next;
        if (node) sum += node->value++;
        else if (used < SLOTS) {
            node = &nodes[used++];
            *node = (struct node){key, i, table[at]};
            table[at] = node;
        }
        made(6);
    }
    return sum;
}

#define BYTES (1 << 20)
static uint8_t text[BYTES], other[BYTES], swapped[256];

static void some_text(long round, long length) {
    static const char *words[] = {"lock", "thread ", "and", " the ", "of memory", "\n", "is", "a ", "schedule", "0123"};
    uint32_t state = 7 + round;
    for (long at = 0; at < length;) {
        const char *word = words[next(&state) % 10];
        for (; *word && at < length; word++) text[at++] = *word;
        if (at < length && next(&state) % 8 == 0) text[at++] = next(&state);
        made(12);
    }
}

static uint32_t run_bytes(long round) {
    uint32_t sum = 0;
    if (round == 0) {
        some_text(0, BYTES);
        for (int i = 0; i < 256; i++) swapped[i] = i * 7 + 3;
    }
    for (long from = 0; from < BYTES; from += 128) {
        for (long i = from; i < from + 128; i++) {
            uint8_t byte = swapped[text[i]];
            other[i] = byte;
            sum += byte;
        }
        made(3 * 128);
    }
    return sum;
}

#define SIDE 120
static double left_side[SIDE][SIDE], right_side[SIDE][SIDE], product[SIDE][SIDE];

static uint32_t run_matrix(long round) {
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            left_side[i][j] = i - j + round % 3;
            right_side[i][j] = i * j % 17;
        }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0;
            for (int k = 0; k < SIDE; k++) sum += left_side[i][k] * right_side[k][j];
            product[i][j] = sum;
            made(2 * SIDE);
        }
    return (uint32_t)product[SIDE / 3][SIDE / 2];
}

#define SQUEEZED (BYTES / 4)
#define WINDOW 32768
#define HASHES 32768
static int32_t head[HASHES], previous[WINDOW];
static uint32_t literals[286], distances[30], tokens[BYTES];

static inline uint32_t three(const uint8_t *at) { return (at[0] << 10 ^ at[1] << 5 ^ at[2]) % HASHES; }

static long match(long at, long *distance) {
    long best = 2, limit = SQUEEZED - at < 258 ? SQUEEZED - at : 258, accesses = 0;
    for (long tries = 32, old = head[three(text + at)]; old >= 0 && at - old < WINDOW && tries > 0; tries--) {
        if (text[old + best] == text[at + best]) {
            long n = 0;
            while (n < limit && text[old + n] == text[at + n]) n++;
            accesses += 2 * n;
            if (n > best) {
                best = n, *distance = at - old;
                if (n == limit) break;
            }
        }
        accesses += 3;
        old = previous[old % WINDOW];
    }
    made(accesses + 8);
    return best;
}

static uint32_t run_squeeze(long round) {
    uint32_t n = 0, sum = 0;
    some_text(round, SQUEEZED);
    memset(head, 0xff, sizeof head);
    memset(literals, 0, sizeof literals);
    memset(distances, 0, sizeof distances);
    for (long at = 0; at + 3 < SQUEEZED;) {
        long distance = 0, length = at + 258 < SQUEEZED ? match(at, &distance) : 2;
        if (length < 3) {
            length = 1;
            literals[text[at]]++;
            tokens[n++] = text[at];
        } else {
            literals[257 + length % 29]++;
            distances[31 - __builtin_clz(distance)]++;
            tokens[n++] = length << 16 | distance;
        }
        for (long end = at + length; at < end && at + 3 < SQUEEZED; at++) {
            uint32_t hash = three(text + at);
            previous[at % WINDOW] = head[hash];
            head[hash] = at;
        }
        made(5 * length + 4);
    }
    for (uint32_t i = 0; i < n; i++) sum = sum * 31 + tokens[i];
    return sum;
}

static __attribute__((noinline)) uint32_t calls(uint32_t n) { return n < 2 ? n : calls(n - 1) + calls(n - 2); }

static uint32_t run_calls(long round) {
    uint32_t sum = 0;
    for (int i = 0; i < 20; i++) {
        sum += calls(20 + (round + i) % 3);
        made(100000);
    }
    return sum;
}

static uint32_t run_local(long round) {
    uint32_t here[64], state = 3 + round;
    for (int i = 0; i < 64; i++) here[i] = i;
    for (long i = 0; i < 20000; i++) {
        for (int k = 0; k < 32; k++) here[(k * 7 + i) % 64] += here[k] ^ state;
        state = state * 31 + here[i % 64];
        made(64);
    }
    return state;
}

static const struct { const char *name; uint32_t (*run)(long); } kernels[] = {
    {"sort", run_sort}, {"hash", run_hash}, {"bytes", run_bytes}, {"matrix", run_matrix},
    {"squeeze", run_squeeze}, {"calls", run_calls}, {"local", run_local},
};

static void *second(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    sem_wait(&over);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc != 4) return 2;
    left = every = atol(argv[3]);
    sem_init(&over, 0, 0);
    if (pthread_create(&thread, NULL, second, NULL)) return 2;
    for (unsigned k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        if (strcmp(kernels[k].name, argv[1])) continue;
        uint32_t sum = 0;
        for (long round = 0; round < atol(argv[2]); round++) sum = sum * 33 + kernels[k].run(round);
        printf("%s %u\n", argv[1], sum);
    }
    sem_post(&over);
    return pthread_join(thread, NULL);
}
