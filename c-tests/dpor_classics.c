/* The programs of the papers on dynamic partial-order reduction (Flanagan and Godefroid, POPL 2005): threads that put what they have
   into a hash table (indexer), and that give blocks of a disk to files (filesystem). With up to 11 and 13 threads no two of them meet.
   How the threads end is nothing to anybody. */
#include "t.h"

#define SIZE 128
#define MAX 4
#define INODES 32
#define BLOCKS 26

static int threads, leave;

static int table[SIZE];
static pthread_mutex_t cas[SIZE];

static void *ends(void)
{
    if (leave)
        pthread_exit(NULL);
    return NULL;
}

static void *indexer(void *number)
{
    int tid = (int)(intptr_t)number;

    for (int i = 1; i <= MAX; i++) {
        int w = i * 11 + tid, h = w * 7 % SIZE, ok = 0;
        while (!ok) {
            MUST(pthread_mutex_lock(&cas[h]));
            if (table[h] == 0) {
                table[h] = w;
                ok = 1;
            }
            MUST(pthread_mutex_unlock(&cas[h]));
            h = (h + 1) % SIZE;
        }
    }
    return ends();
}

static pthread_mutex_t inodes[INODES], blocks[BLOCKS];
static int inode[INODES], busy[BLOCKS];

static void *filesystem(void *number)
{
    int i = (int)(intptr_t)number % INODES, b = i * 2 % BLOCKS;

    MUST(pthread_mutex_lock(&inodes[i]));
    while (inode[i] == 0) {
        MUST(pthread_mutex_lock(&blocks[b]));
        if (!busy[b]) {
            busy[b] = 1;
            inode[i] = b + 1;
        }
        MUST(pthread_mutex_unlock(&blocks[b]));
        b = (b + 1) % BLOCKS;
    }
    MUST(pthread_mutex_unlock(&inodes[i]));
    return ends();
}

int main(int argc, char **argv)
{
    pthread_t t[64];

    if (argc < 4 || (threads = atoi(argv[2])) > 64)
        return 2;
    leave = strcmp(argv[3], "exit") == 0;
    for (int i = 0; i < SIZE; i++)
        MUST(pthread_mutex_init(&cas[i], NULL));
    for (int i = 0; i < INODES; i++)
        MUST(pthread_mutex_init(&inodes[i], NULL));
    for (int i = 0; i < BLOCKS; i++)
        MUST(pthread_mutex_init(&blocks[i], NULL));
    for (int i = 0; i < threads; i++)
        t[i] = go(arg_is(argc, argv, "indexer") ? indexer : filesystem, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++)
        join(t[i]);
    return 0;
}
