/* An order system: two shops send orders to a warehouse through one System V message queue and take their confirmations from another one.
 * Each queue has room for one message. A shop sends all its orders before it looks for confirmations, so the warehouse may be unable to
 * confirm what a shop has ordered that still waits to order more. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHOPS 2
#define ORDERS 2 /* of each shop */

struct message {
    long type; /* of an order 1, of a confirmation 1 + the shop */
    struct {
        int shop;
        int article;
    } order;
};

static int orders, confirmations;

static void die(const char *what)
{
    perror(what);
    exit(2);
}

/* A queue with room for so many messages. */
static int queue_create(int room)
{
    struct msqid_ds settings;
    int queue = msgget(IPC_PRIVATE, 0600);

    if (queue < 0 || msgctl(queue, IPC_STAT, &settings) != 0)
        die("msgget");
    settings.msg_qbytes = (msglen_t)room * sizeof(((struct message *)0)->order);
    if (msgctl(queue, IPC_SET, &settings) != 0)
        die("msgctl");
    return queue;
}

static void queue_put(int queue, const struct message *message)
{
    if (msgsnd(queue, message, sizeof message->order, 0) != 0)
        die("msgsnd");
}

static void queue_take(int queue, long type, struct message *message)
{
    if (msgrcv(queue, message, sizeof message->order, type, 0) < 0)
        die("msgrcv");
}

/* ------------------------------------------------------------------ the shops */

static void shop_order(int shop, int article)
{
    struct message message = { 1, { shop, article } };

    queue_put(orders, &message);
}

static void shop_confirm(int shop)
{
    struct message message;

    queue_take(confirmations, 1 + shop, &message);
    if (message.order.shop != shop)
        _exit(1);
}

static void shop_run(int shop)
{
    for (int article = 0; article < ORDERS; article++)
        shop_order(shop, article);
    for (int article = 0; article < ORDERS; article++)
        shop_confirm(shop);
    _exit(0);
}

/* ------------------------------------------------------------------ the warehouse */

static void warehouse_run(void)
{
    for (int n = 0; n < SHOPS * ORDERS; n++) {
        struct message message;

        queue_take(orders, 1, &message);
        message.type = 1 + message.order.shop;
        queue_put(confirmations, &message);
    }
}

int main(void)
{
    pid_t shops[SHOPS];
    int status, failed = 0;

    orders = queue_create(1);
    confirmations = queue_create(1);
    for (int shop = 0; shop < SHOPS; shop++) {
        shops[shop] = fork();
        if (shops[shop] < 0)
            die("fork");
        if (shops[shop] == 0)
            shop_run(1 + shop);
    }
    warehouse_run();
    for (int shop = 0; shop < SHOPS; shop++)
        if (waitpid(shops[shop], &status, 0) != shops[shop] || status != 0)
            failed = 1;
    msgctl(orders, IPC_RMID, NULL);
    msgctl(confirmations, IPC_RMID, NULL);
    return failed;
}
