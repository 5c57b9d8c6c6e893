/* A stack of nodes that are used again: a pop compares an address that has come back. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

struct node { struct node *next; };
static _Atomic(struct node *) top;
static struct node nodes[3];

static struct node *pop(void)
{
    for (;;) {
        struct node *first = top;
        if (!first)
            return NULL;
        struct node *next = *(struct node *volatile *)&first->next;
        if (atomic_compare_exchange_strong(&top, &first, next))
            return first;
    }
}

static void push(struct node *node)
{
    struct node *first = top;
    do
        node->next = first;
    while (!atomic_compare_exchange_strong(&top, &first, node));
}

static void *one(void *arg)
{
    struct node *node = pop();
    *(struct node **)arg = node;
    return NULL;
}

static void *two(void *arg)
{
    struct node *a = pop(), *b = pop();
    if (a)
        push(a);
    *(struct node **)arg = b;
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    struct node *had[2] = { NULL, NULL };
    for (int i = 0; i < 3; i++)
        push(&nodes[i]);
    pthread_create(&a, NULL, one, &had[0]);
    pthread_create(&b, NULL, two, &had[1]);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    struct node *third = pop();
    assert(!third || (third != had[0] && third != had[1]));
}
