/*
 * A read-write lock that threads only read is no place to switch: the counts are those of the mutexes alone. Once one writes, each use is: the value that is
 * read is told. `late`: the writer comes to it only where a reader has come first. `little`: they read once, so that all orders can be gone through.
 */
#include <assert.h>
#include <pthread.h>
#include <string.h>

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int entry, counted, writes, late, rounds = 3;

static void *reader(void *unused)
{
    int first, second;

    for (int i = 0; i < rounds; i++) {
        pthread_rwlock_rdlock(&table);
        first = entry;
        pthread_rwlock_unlock(&table);
    }
    pthread_mutex_lock(&lock);
    counted++;
    pthread_mutex_unlock(&lock);
    pthread_rwlock_rdlock(&table);
    second = entry;
    pthread_rwlock_unlock(&table);
    assert(first == second);
    return unused;
}

static void *writer(void *unused)
{
    int come;

    pthread_mutex_lock(&lock);
    come = counted;
    pthread_mutex_unlock(&lock);
    if (late && come < 2)
        return unused;
    pthread_rwlock_wrlock(&table);
    entry = 1;
    pthread_rwlock_unlock(&table);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread[3];
    int n = 2;

    if (argc > 1 && !strcmp(argv[1], "little"))
        rounds = 1;
    writes = argc > 1 && rounds > 1;
    late = writes && !strcmp(argv[1], "late");
    pthread_rwlock_wrlock(&table);
    entry = 0;
    pthread_rwlock_unlock(&table);
    for (int i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, reader, NULL);
    if (writes)
        pthread_create(&thread[n++], NULL, writer, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    pthread_rwlock_wrlock(&table);
    entry = 2;
    pthread_rwlock_unlock(&table);
    pthread_rwlock_destroy(&table);
    return 0;
}
