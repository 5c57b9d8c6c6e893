/* Two transfers that lock two accounts in opposite orders, among many other transfers. */
#include <pthread.h>

enum { N = 6, ROUNDS = 8 };
static pthread_mutex_t locks[N];
static int balance[N];

static void transfer(int from, int to)
{
    pthread_mutex_lock(&locks[from]);
    pthread_mutex_lock(&locks[to]);
    balance[from]--;
    balance[to]++;
    pthread_mutex_unlock(&locks[to]);
    pthread_mutex_unlock(&locks[from]);
}

static void *upwards(void *arg)
{
    int number = (int)(long)arg;
    for (int i = 0; i < ROUNDS; i++)
        transfer((number + i) % (N - 1), (number + i) % (N - 1) + 1);
    return NULL;
}

static void *back(void *arg)
{
    (void)arg;
    upwards((void *)1);
    transfer(4, 3);
    return NULL;
}

int main(void)
{
    pthread_t a, b, c;
    for (int i = 0; i < N; i++)
        pthread_mutex_init(&locks[i], NULL);
    pthread_create(&a, NULL, upwards, (void *)0);
    pthread_create(&b, NULL, upwards, (void *)2);
    pthread_create(&c, NULL, back, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    pthread_join(c, NULL);
}
