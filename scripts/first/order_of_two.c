/* A cache that is filled under one lock after the other and emptied under both: an entry is valid that is not present. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER, entry_lock = PTHREAD_MUTEX_INITIALIZER;
static int present, valid;

static void *fill(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&index_lock);
        present = 1;
        pthread_mutex_unlock(&index_lock);
        pthread_mutex_lock(&entry_lock);
        valid = 1;
        pthread_mutex_unlock(&entry_lock);
    }
    return NULL;
}

static void *drop(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&index_lock);
        present = 0;
        pthread_mutex_lock(&entry_lock);
        valid = 0;
        pthread_mutex_unlock(&entry_lock);
        pthread_mutex_unlock(&index_lock);
    }
    return NULL;
}

static void *look(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&index_lock);
        int there = present;
        pthread_mutex_lock(&entry_lock);
        int usable = valid;
        pthread_mutex_unlock(&entry_lock);
        pthread_mutex_unlock(&index_lock);
        assert(!usable || there);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, fill, NULL);
    pthread_create(&threads[1], NULL, drop, NULL);
    pthread_create(&threads[2], NULL, look, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}
