// Two threads take two locks of the heap in different order.
#include <pthread.h>
#include <stdlib.h>

struct node { struct node *next; pthread_mutex_t lock; };
static struct node *first, *second;

static struct node *node(struct node *next)
{
    struct node *n = malloc(sizeof *n);
    n->next = next;
    pthread_mutex_init(&n->lock, 0);
    return n;
}

static void *worker(void *arg)
{
    struct node *a = arg ? first : second, *b = arg ? second : first;
    pthread_mutex_lock(&a->lock);
    pthread_mutex_lock(&b->lock);
    pthread_mutex_unlock(&b->lock);
    pthread_mutex_unlock(&a->lock);
    return 0;
}

int main(void)
{
    pthread_t t[2];
    first = node(0);
    second = node(first);
    for (long i = 0; i < 2; i++)
        pthread_create(&t[i], 0, worker, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    return 0;
}
