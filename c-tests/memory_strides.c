/* Accesses of one instruction at one distance make one record: a thread goes over a matrix by columns, and another one writes to one word of it.
 * strides SHAPE PLACE: "down" one column, "up" the same from its end, "long" more than a record holds, "pairs" places that are far apart and come
 * in no order, "wide" further apart than a record can say, "bytes"; "stores" to a column; "shared": another process in memory that both map. PLACE: "hit", a word that the
 * first thread reads; "beside", one in between; "last", the last one. What is hit is read before or after it is written: both sums are seen. */
#include "t.h"

#define SIDE 40
#define LONG 700
static long matrix[SIDE][SIDE], line[2 * LONG], far[5 << 19];
static char text[LONG];
static volatile long sum;
static const char *shape;
static long (*both)[SIDE];

static const int places[] = {7, 300, 2, 90, 41, 512, 6, 333};

static void *reads(void *unused)
{
    long all = 0;
    if (!strcmp(shape, "down") || !strcmp(shape, "shared"))
        for (int i = 0; i < SIDE; i++) all += both[i][3];
    else if (!strcmp(shape, "up"))
        for (int i = SIDE - 1; i >= 0; i--) all += matrix[i][3];
    else if (!strcmp(shape, "long"))
        for (int i = 0; i < LONG; i++) all += line[2 * i];
    else if (!strcmp(shape, "pairs"))
        for (int i = 0; i < 8; i++) all += line[places[i]];
    else if (!strcmp(shape, "wide"))
        for (int i = 0; i < 5; i++) all += far[(long)i << 19];
    else if (!strcmp(shape, "stores"))
        for (int i = 0; i < SIDE; i++) matrix[i][3] = 2;
    else
        for (int i = 0; i < LONG; i += 3) all += text[i];
    sum = all;
    return unused;
}

static long *place(const char *which)
{
    int hit = !strcmp(which, "hit"), last = !strcmp(which, "last");
    if (!strcmp(shape, "down") || !strcmp(shape, "up") || !strcmp(shape, "stores") || !strcmp(shape, "shared"))
        return &both[last ? SIDE - 1 : 17][hit || last ? 3 : 4];
    if (!strcmp(shape, "long"))
        return &line[last ? 2 * (LONG - 1) : hit ? 600 : 601];
    if (!strcmp(shape, "pairs"))
        return &line[last ? 333 : hit ? 90 : 91];
    return &far[(last ? 4l << 19 : 3l << 19) + !(hit || last)];
}

static void *writes(void *at)
{
    if (!strcmp(shape, "bytes"))
        *(char *)at = 1;
    else
        *(long *)at = 1;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc < 3)
        return 2;
    shape = argv[1];
    both = matrix;
    if (!strcmp(shape, "shared")) {
        both = mmap(NULL, sizeof matrix, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert(both != MAP_FAILED);
        pid_t child = fork();
        assert(child >= 0);
        if (child == 0) {
            writes(place(argv[2]));
            _exit(0);
        }
        reads(NULL);
        assert(waitpid(child, NULL, 0) == child);
    } else {
        long at = !strcmp(argv[2], "last") ? (LONG - 1) / 3 * 3 : 399;
        void *to = strcmp(shape, "bytes") ? (void *)place(argv[2]) : &text[at + !strcmp(argv[2], "beside")];
        MUST(pthread_create(&thread, NULL, writes, to));
        reads(NULL);
        MUST(pthread_join(thread, NULL));
        if (!strcmp(shape, "stores"))
            sum = *place(strcmp(argv[2], "last") ? "hit" : "last") == 1;
    }
    return sum != 0;
}
